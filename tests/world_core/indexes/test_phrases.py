"""Phrases in both engines, held to brute force over the units' terms."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.world_core.indexes import lexical_cases as cases
from world_core.analysis import Analyzer
from world_core.indexes.lexical import LexicalIndex
from world_core.types import LexicalField, LexicalPhrase, LexicalQuery, Occur

COUNT = 900
WORDS = 12  # few, so that phrases of four terms are found
UNITS = cases.random_units(17, COUNT, WORDS)

CHINESE = [
    "北京大学在北京",
    "北京的大学",
    "大学北京",
    "上海交通大学，北京大学",
    "京大学生北",
    "北京\u3000大学",
    "IBM在北京大学",
    "東京大学の学生は学生",
]


@pytest.fixture(scope="module", params=cases.PARAMETERS)
def engine(request: pytest.FixtureRequest) -> cases.Engine:
    return cases.engine(request.param)


@pytest.fixture(scope="module")
def index(engine: cases.Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LexicalIndex]:
    opened = engine.index(tmp_path_factory.mktemp("phrases") / engine.name, UNITS)
    yield opened
    opened.close()


def asked(occur: Occur, terms: Sequence[str], *names: str, weight: float = 1.0) -> LexicalPhrase:
    """Return a phrase asked of these fields."""
    return LexicalPhrase(occur, tuple(LexicalField(name, weight, tuple(terms)) for name in names))


def times(unit: Mapping[str, Sequence[str]], part: LexicalField) -> int:
    """Return how often a unit's field holds the part's terms in a row."""
    held, wanted = list(unit.get(part.name, ())), list(part.terms)
    starts = range(len(held) - len(wanted) + 1)
    return sum(held[start : start + len(wanted)] == wanted for start in starts) if wanted else 0


def stands(unit: Mapping[str, Sequence[str]], phrase: LexicalPhrase) -> bool:
    return any(times(unit, part) for part in phrase.fields)


def matches(unit: Mapping[str, Sequence[str]], query: LexicalQuery) -> bool:
    """Say by brute force whether the query finds the unit."""
    scoring = any(
        part.weight > 0 and set(part.terms) & set(unit.get(part.name, ())) for part in query.fields
    ) or any(
        part.weight > 0 and times(unit, part)
        for phrase in query.phrases
        if phrase.occur is not Occur.MUST_NOT
        for part in phrase.fields
    )
    must = [phrase for phrase in query.phrases if phrase.occur is Occur.MUST]
    must_not = [phrase for phrase in query.phrases if phrase.occur is Occur.MUST_NOT]
    return (
        scoring
        and all(stands(unit, phrase) for phrase in must)
        and not any(stands(unit, phrase) for phrase in must_not)
    )


def found(index: LexicalIndex, query: LexicalQuery, k: int = COUNT) -> list[int]:
    units: list[int] = index.search(query, k).units.tolist()
    return units


def random_phrase(source: random.Random) -> LexicalPhrase:
    terms = source.choices(cases.vocabulary(WORDS), k=source.randint(0, 4))
    names = source.sample(["title", "body", "absent"], source.randint(1, 3))
    return asked(source.choice(list(Occur)), terms, *names, weight=source.choice([0.0, 0.7, 2.0]))


def random_query(source: random.Random) -> LexicalQuery:
    words = source.choices(cases.vocabulary(WORDS), k=source.randint(0, 2))
    parts = tuple(LexicalField(name, 1.3, tuple(words)) for name in ("title", "body"))
    return LexicalQuery(parts, tuple(random_phrase(source) for _ in range(source.randint(1, 3))))


def test_random_phrases_match_as_brute_force_says(index: LexicalIndex) -> None:
    source = random.Random(1)
    hits = 0
    for _ in range(150):
        query = random_query(source)
        expected = [unit for unit in range(COUNT) if matches(UNITS[unit], query)]
        assert sorted(found(index, query)) == expected
        scores = index.score(query, np.arange(COUNT))
        assert np.flatnonzero(scores > 0).tolist() == expected
        hits += len(expected)
    assert hits > 5_000


def test_search_and_score_agree_to_the_bit_and_order_is_total(index: LexicalIndex) -> None:
    source = random.Random(2)
    for _ in range(80):
        query = random_query(source)
        scores = index.score(query, np.arange(COUNT))
        order = np.lexsort((np.arange(COUNT), -scores))
        order = order[scores[order] > 0]
        for k in (1, 10, COUNT):
            answer = index.search(query, k)
            assert answer.units.tolist() == order[:k].tolist()
            assert answer.scores.tolist() == scores[order[:k]].tolist()


@pytest.mark.parametrize("share", [0.01, 0.4, 0.97])
def test_a_filter_is_the_filtered_ranking(index: LexicalIndex, share: float) -> None:
    source = random.Random(3)
    for _ in range(25):
        query = random_query(source)
        allowed = np.asarray([source.random() < share for _ in range(COUNT)])
        everything = index.search(query, COUNT)
        keep = allowed[everything.units]
        answer = index.search(query, 20, allowed)
        assert answer.units.tolist() == everything.units[keep][:20].tolist()
        assert answer.scores.tolist() == everything.scores[keep][:20].tolist()


def test_a_constraint_leaves_the_scores_alone(index: LexicalIndex) -> None:
    words = (LexicalField("body", 1.0, ("w1", "w5")),)
    plain = index.score(LexicalQuery(words), np.arange(COUNT))
    constrained = LexicalQuery(
        words,
        (
            asked(Occur.MUST, ["w0", "w1"], "title", "body", weight=0.0),
            asked(Occur.MUST_NOT, ["w2", "w0"], "body"),
        ),
    )
    scores = index.score(constrained, np.arange(COUNT))
    held = scores > 0
    assert 0 < held.sum() < (plain > 0).sum()
    assert scores[held].tolist() == plain[held].tolist()


def test_a_must_phrase_scores_like_a_should_phrase(index: LexicalIndex) -> None:
    terms = ["w0", "w1"]
    should = LexicalQuery((), (asked(Occur.SHOULD, terms, "title", "body"),))
    must = LexicalQuery((), (asked(Occur.MUST, terms, "title", "body"),))
    units = np.arange(COUNT)
    assert index.score(must, units).tolist() == index.score(should, units).tolist()


def test_more_of_a_phrase_scores_more(engine: cases.Engine, tmp_path: Path) -> None:
    units = [
        {"body": ["a", "b", "a", "b", "x", "x"]},
        {"body": ["a", "b", "x", "b", "a", "x"]},
        {"body": ["b", "a", "x", "a", "x", "b"]},
    ]
    index = engine.index(tmp_path / "index", units)
    assert found(index, LexicalQuery((), (asked(Occur.SHOULD, ["a", "b"], "body"),))) == [0, 1]
    index.close()


@pytest.mark.parametrize(
    "phrase",
    [
        asked(Occur.MUST, ["w0", "nowhere"], "body"),
        asked(Occur.MUST, ["nowhere"], "body", "title"),
        asked(Occur.MUST, ["w0", "w1"], "absent"),
        asked(Occur.MUST, [], "body"),
    ],
)
def test_a_phrase_without_a_match_is_an_empty_list(
    index: LexicalIndex, phrase: LexicalPhrase
) -> None:
    query = LexicalQuery((LexicalField("body", 1.0, ("w0",)),), (phrase,))
    assert found(index, query) == []
    assert index.score(query, np.arange(5)).tolist() == [0.0] * 5


def test_a_query_of_exclusions_alone_finds_nothing(index: LexicalIndex) -> None:
    assert found(index, LexicalQuery((), (asked(Occur.MUST_NOT, ["w0"], "body"),))) == []


def test_character_pairs_in_a_row(engine: cases.Engine, tmp_path: Path) -> None:
    analyzer = Analyzer(["zh"])
    units = [analyzer.document("", text, "zh") for text in CHINESE]
    index = engine.index(tmp_path / "index", units, analyzer.fields)
    for text in ("北京大学", "大学", "北京的大学", "学生", "京大", "上海大学", "の学生"):
        terms = [token.term for token in analyzer.tokens(text)]
        query = LexicalQuery((), (asked(Occur.MUST, terms, "body"),))
        expected = {unit for unit, terms in enumerate(units) if matches(terms, query)}
        assert set(found(index, query)) == expected, text
        # No text without punctuation inside can hold the pairs and not the phrase.
        assert {unit for unit, held in enumerate(CHINESE) if text in held} <= expected
    index.close()


def test_holders_are_counted(index: LexicalIndex) -> None:
    terms = ["w0", "nowhere", "w11"]
    expected = [sum(term in unit["title"] for unit in UNITS) for term in terms]
    assert index.holders("title", terms) == expected
    assert index.holders("absent", terms) == [0, 0, 0]
    assert index.holders("title", []) == []
