from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from world_core.errors import BadInputError, IndexFailedError
from world_core.indexes import clauses as module
from world_core.indexes.clauses import Clause
from world_core.types import Candidates, LexicalField, LexicalPhrase, LexicalQuery, Occur

TERMS = st.text(st.characters(), max_size=70)
GOOD = st.text(
    st.characters(exclude_categories=("Cs", "Zs", "Zl", "Zp", "Cc")), min_size=1, max_size=64
)


def field(name: str, weight: float, *terms: str) -> LexicalField:
    return LexicalField(name, weight, terms)


def phrase(occur: Occur, *fields: LexicalField) -> LexicalPhrase:
    return LexicalPhrase(occur, fields)


def test_each_term_of_a_field_is_one_clause_in_order() -> None:
    query = LexicalQuery(
        (
            field("title", 2.0, "b", "a", "b"),
            field("body", 1.0, "b"),
            field("title", 0.5, "a", "c"),
        )
    )
    assert module.plan(query) == (
        [
            Clause("title", ("b",), 4.0),
            Clause("title", ("a",), 2.5),
            Clause("body", ("b",), 1.0),
            Clause("title", ("c",), 0.5),
        ],
        [],
        [],
    )


def test_fields_of_weight_zero_are_left_out_but_checked() -> None:
    assert module.plan(LexicalQuery((field("body", 0.0, "a"),))).scored == []
    with pytest.raises(BadInputError, match="two words"):
        module.plan(LexicalQuery((field("body", 0.0, "two words"),)))


def test_phrases_score_unless_forbidden_and_wanted_ones_are_required() -> None:
    should = phrase(Occur.SHOULD, field("body", 0.5, "a", "b"))
    must = phrase(Occur.MUST, field("title", 2.0, "c", "d"), field("body", 0.0, "c", "d"))
    must_not = phrase(Occur.MUST_NOT, field("title", 3.0, "e"), field("body", 1.0, "e"))
    plan = module.plan(LexicalQuery((field("body", 1.0, "a"),), (must_not, should, must)))
    title, body = Clause("title", ("c", "d"), 2.0), Clause("body", ("c", "d"), 0.0)
    assert plan.scored == [Clause("body", ("a",), 1.0), Clause("body", ("a", "b"), 0.5), title]
    assert plan.required == [[title, body]]
    assert plan.forbidden == [Clause("title", ("e",), 3.0), Clause("body", ("e",), 1.0)]


def test_a_phrase_of_one_term_is_that_term() -> None:
    query = LexicalQuery(
        (field("body", 1.0, "a"),), (phrase(Occur.SHOULD, field("body", 2.0, "a")),)
    )
    assert module.plan(query).scored == [Clause("body", ("a",), 3.0)]


def test_a_phrase_without_terms_stands_nowhere() -> None:
    empty = field("body", 1.0)
    assert module.plan(LexicalQuery((), (phrase(Occur.MUST, empty),))) == ([], [[]], [])
    assert module.plan(LexicalQuery((), (phrase(Occur.MUST_NOT, empty),))) == ([], [], [])
    assert module.plan(LexicalQuery((), (phrase(Occur.SHOULD, empty),))) == ([], [], [])


@pytest.mark.parametrize("occur", list(Occur))
def test_phrases_are_checked_like_fields(occur: Occur) -> None:
    with pytest.raises(BadInputError, match="two words"):
        module.plan(LexicalQuery((), (phrase(occur, field("body", 1.0, "two words")),)))
    with pytest.raises(BadInputError, match="-1"):
        module.plan(LexicalQuery((), (phrase(occur, field("body", -1.0, "a")),)))


def test_a_query_is_empty_when_nothing_can_match() -> None:
    body = field("body", 1.0, "a")
    assert LexicalQuery((field("body", 1.0),)).is_empty
    assert LexicalQuery((), (phrase(Occur.MUST_NOT, body),)).is_empty
    assert LexicalQuery((), (phrase(Occur.MUST, field("body", 1.0)),)).is_empty
    assert not LexicalQuery((body,), (phrase(Occur.MUST_NOT, body),)).is_empty
    assert not LexicalQuery((), (phrase(Occur.SHOULD, body),)).is_empty


def test_clauses_of_one_term_come_together() -> None:
    row = Clause("title", ("a", "b"), 1.0)
    a = [Clause(name, ("a",), 1.0) for name in ("title", "stem_en", "body")]
    b = Clause("body", ("b",), 2.0)
    scored = [a[0], row, a[1], b, a[2]]
    assert module.by_term(scored, ("title", "body")) == [[a[0], a[2]], [row], [a[1]], [b]]
    assert module.by_term(scored, ()) == [[clause] for clause in scored]


@pytest.mark.parametrize("weight", [-0.1, float("nan"), float("inf"), 1e7])
def test_weights_are_bounded(weight: float) -> None:
    with pytest.raises(BadInputError, match=f"{weight!r}"):
        module.plan(LexicalQuery((field("body", weight, "a"),)))


@given(st.lists(GOOD, max_size=20))
def test_joined_terms_cut_at_white_space_are_the_terms(terms: list[str]) -> None:
    assert module.joined("body", terms).split() == terms
    assert module.joined("body", terms).split(" ") == (terms or [""])


@given(st.lists(TERMS, max_size=6))
def test_any_text_is_joined_whole_or_refused(terms: list[str]) -> None:
    proper = all(term.split() == [term] and len(term) <= 64 for term in terms)
    whole = not any("\ud800" <= character <= "\udfff" for term in terms for character in term)
    if proper and whole:
        assert module.joined("body", terms).split() == terms
    else:
        with pytest.raises(BadInputError, match="'body'"):
            module.joined("body", terms)


def test_two_faults_that_cancel_out_are_noticed() -> None:
    with pytest.raises(BadInputError, match="a b"):
        module.joined("body", ["a b", ""])


def test_half_a_surrogate_pair_is_named() -> None:
    with pytest.raises(BadInputError, match=r"'\\ud83d'") as caught:
        module.joined("title", ["fine", "half\ud83d"])
    assert "'title'" in caught.value.sentence


def test_texts_are_those_of_fields_with_terms() -> None:
    fields = {"title": [], "body": ["a", "b"]}
    assert module.texts(fields, ("body", "title")) == {"body": "a b"}
    with pytest.raises(BadInputError, match=r"no field 'title'.*\['body'\]"):
        module.texts(fields, ("body",))


def test_a_fresh_folder_is_made_with_its_parents(tmp_path: Path) -> None:
    module.fresh_folder(tmp_path / "a" / "b")
    module.fresh_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    with pytest.raises(IndexFailedError, match="it holds b"):
        module.fresh_folder(tmp_path / "a")


def test_field_names() -> None:
    assert module.check_fields(["title", "stem_en"]) == ("title", "stem_en")
    for bad in ([], ["a", "a"], ["pid"], ["ä"], ["a-b"], ["1a"]):
        with pytest.raises(BadInputError):
            module.check_fields(bad)


def test_a_bitmap_restricts_only_when_something_is_forbidden() -> None:
    some = np.asarray([True, False])
    assert module.restriction(some, 2) is some
    assert module.restriction(np.ones(2, dtype=np.bool_), 2) is None
    assert module.restriction(np.ones(0, dtype=np.bool_), 0) is None
    assert module.restriction(None, 2) is None
    with pytest.raises(BadInputError, match="3 units"):
        module.restriction(some, 3)


@given(
    st.lists(st.tuples(st.integers(0, 30), st.floats(0.1, 9)), unique_by=lambda pair: pair[0]),
    st.lists(st.integers(0, 30), max_size=40),
)
def test_spread_is_a_lookup(found: list[tuple[int, float]], units: list[int]) -> None:
    numbers = np.asarray([unit for unit, _ in found], dtype=np.int64)
    scores = np.asarray([score for _, score in found], dtype=np.float64)
    spread = module.spread(np.asarray(units, dtype=np.int64), Candidates(numbers, scores))
    known = dict(found)
    assert spread.tolist() == [known.get(unit, 0.0) for unit in units]


def test_candidates_are_the_first_positive_ones() -> None:
    answer = module.candidates([7, 3, 9, 1], [2.0, 1.0, 0.0, 0.5], 2)
    assert answer.units.tolist() == [7, 3]
    assert module.candidates([7, 3, 9, 1], [2.0, 1.0, 0.0, 0.0], 9).scores.tolist() == [2.0, 1.0]
    empty = module.candidates((), (), 5)
    assert empty.units.shape == empty.scores.shape == (0,)
    assert empty.units.dtype == np.int64
