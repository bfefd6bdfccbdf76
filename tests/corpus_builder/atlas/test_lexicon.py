"""Names: invented, unique, known by number, free of markup."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus_builder.atlas import lexicon
from corpus_builder.atlas.lexicon import Names, Walk, slug, stream, words
from corpus_builder.sources.atlas import MAX_SIZE

TABLES = {
    name: value
    for name, value in vars(lexicon).items()
    if name.isupper() and not name.startswith("_") and isinstance(value, tuple)
}
KINDS = sorted(lexicon._PARTS)


@pytest.mark.parametrize("table", sorted(TABLES))
def test_tables_have_no_double_entry(table: str) -> None:
    assert len(set(TABLES[table])) == len(TABLES[table])


@pytest.mark.parametrize("table", sorted(TABLES))
def test_tables_hold_no_markup_and_no_digits(table: str) -> None:
    assert not any(set(entry) & set('<>&"0123456789') for entry in TABLES[table])


def test_words_splits_at_bars_or_spaces() -> None:
    assert words("a b") == ("a", "b")
    assert words("a b|c") == ("a b", "c")


@given(
    st.integers(0, 2**64),
    st.lists(st.integers(1, 9), min_size=1, max_size=3),
)
def test_a_walk_meets_every_combination_once(seed: int, sizes: list[int]) -> None:
    walk = Walk(
        seed, "any", *[[f"{place}-{n}" for n in range(size)] for place, size in enumerate(sizes)]
    )
    seen = [walk[n] for n in range(walk.total)]
    assert len(set(seen)) == walk.total
    assert all(len(entry) == len(sizes) for entry in seen)


def test_a_walk_has_ends() -> None:
    walk = Walk(1, "any", ["a", "b"])
    with pytest.raises(IndexError, match="name 2 of 2"):
        walk[2]
    with pytest.raises(IndexError, match="name -1 of 2"):
        walk[-1]


@pytest.mark.parametrize("kind", KINDS)
def test_no_two_names_of_a_kind_are_equal(kind: str) -> None:
    names = Names(7)
    total = names._walks[kind].total
    assert len({names.name(kind, n)[0] for n in range(total)}) == total


def test_names_read_as_they_should() -> None:
    names = Names(1)
    assert names.name("town", 0)[0].isalpha()
    assert len(names.name("person", 3)[0].split()) == 2
    name, sort = names.name("building", 5)
    assert name.endswith(f" {sort}")
    assert sort in lexicon.BUILDING_TYPES
    assert names.name("press", 0)[1] == "Press"
    assert names.name("ship", 0)[1] == ""


def test_another_seed_has_other_names() -> None:
    assert Names(1).name("town", 0) != Names(2).name("town", 0)


def test_a_name_does_not_depend_on_what_was_asked_before() -> None:
    busy, fresh = Names(3), Names(3)
    for n in range(20):
        busy.name("river", n)
    assert busy.name("river", 40) == fresh.name("river", 40)


def test_streams_differ_by_purpose_and_repeat() -> None:
    assert stream(1, "a", 2).random() == stream(1, "a", 2).random()
    assert stream(1, "a", 2).random() != stream(1, "b", 2).random()
    assert stream(1, "a", 2).random() != stream(2, "a", 2).random()


@given(st.text(max_size=40))
def test_a_slug_is_lower_case_without_doubled_hyphens(name: str) -> None:
    made = slug(name)
    assert "--" not in made
    assert made == made.strip("-")
    assert all(c.isalnum() or c == "-" for c in made)


def test_slugs() -> None:
    assert slug("The Silver Heron II") == "the-silver-heron-ii"
    assert slug("Saddler's Edge") == "saddler-s-edge"


def test_the_lexicon_has_names_for_the_largest_world() -> None:
    blocks = MAX_SIZE // 40
    needed = {"person": 120, "town": 3, "river": 2, "company": 2, "building": 3, "festival": 3}
    needed |= {"finding": 2, "book": 3, "ship": 1, "province": 1}
    needed |= {"shipyard": 1, "press": 1, "observatory": 1}
    assert set(needed) == set(KINDS)
    names = Names(1)
    assert all(names._walks[kind].total >= count * blocks for kind, count in needed.items())
