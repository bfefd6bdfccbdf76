"""The cast of a block: kinds, unique addresses, like-named neighbours."""

from __future__ import annotations

from collections import Counter

import pytest

from corpus_builder.atlas import cast
from corpus_builder.atlas.cast import BLOCK, CAST, FIGURES, Cast, Kind
from world_core import urls


@pytest.fixture(scope="module")
def made() -> Cast:
    return Cast(1)


def test_a_block_has_forty_pages_of_every_kind() -> None:
    assert BLOCK == 40
    assert set(CAST) == set(Kind)
    assert Counter(CAST)[Kind.PERSON] == 8


@pytest.mark.parametrize(
    ("slots", "kind"),
    [
        (cast.TOWNS, Kind.TOWN),
        (cast.RIVERS, Kind.RIVER),
        (cast.COMPANIES, Kind.COMPANY),
        (cast.BUILDINGS, Kind.BUILDING),
        (cast.FESTIVALS, Kind.FESTIVAL),
        (cast.SHIPS, Kind.SHIP),
        (cast.BOOKS, Kind.BOOK),
        (cast.FINDINGS, Kind.FINDING),
        ((*cast.NEWS, cast.SYNDICATED), Kind.NEWS),
        (cast.CHOIRS, Kind.CHOIR),
        ((*cast.FOREBEARS, *cast.MODERNS), Kind.PERSON),
        ((cast.STUB,), Kind.STUB),
        ((0,), Kind.PROVINCE),
    ],
)
def test_named_slots_are_all_slots_of_their_kind(slots: tuple[int, ...], kind: Kind) -> None:
    assert sorted(slots) == [slot for slot, found in enumerate(CAST) if found is kind]


def test_addresses_are_unique_and_in_canonical_form(made: Cast) -> None:
    addresses = [made.identity(block, slot).url for block in range(60) for slot in range(BLOCK)]
    assert len(set(addresses)) == len(addresses)
    assert all(urls.canonical(url) == url for url in addresses)


def test_hosts_are_reserved_names(made: Cast) -> None:
    hosts = {urls.host_of(made.identity(0, slot).url) for slot in range(BLOCK)}
    assert hosts == {
        "atlas.example",
        "wiki.example",
        "museum.example",
        "news.atlas.example",
        "harbour-gazette.example",
    }


def test_an_identity_is_the_same_however_it_is_reached(made: Cast) -> None:
    backwards = Cast(1)
    found = [backwards.identity(2, slot) for slot in reversed(range(BLOCK))]
    assert found[::-1] == [made.identity(2, slot) for slot in range(BLOCK)]


def test_another_seed_is_another_cast(made: Cast) -> None:
    other = Cast(2)
    same = [s for s in range(BLOCK) if other.identity(0, s).name == made.identity(0, s).name]
    assert same == []


@pytest.mark.parametrize("block", [0, 5, 31])
def test_every_block_holds_decoys(made: Cast, block: int) -> None:
    first = made.identity(block, cast.FIRST_NAMESAKE)
    second = made.identity(block, cast.SECOND_NAMESAKE)
    assert first.name == second.name
    assert first.sort != second.sort
    assert first.url != second.url
    assert first.title != second.title
    town, new = made.identity(block, cast.OLD_TOWN), made.identity(block, cast.NEW_TOWN)
    assert new.name == f"New {town.name}"
    ship, heir = made.identity(block, cast.SHIP), made.identity(block, cast.SECOND_SHIP)
    assert heir.name == f"{ship.name} II"


def test_choirs_sing_in_four_languages(made: Cast) -> None:
    sorts = {made.identity(block, slot).sort for block in range(2) for slot in cast.CHOIRS}
    assert sorts == {"de", "es", "fr", "zh"}


def test_figures_are_nobody_with_a_page(made: Cast) -> None:
    figures = {made.figure(block, n) for block in range(5) for n in range(FIGURES)}
    assert len(figures) == 5 * FIGURES
    persons = {
        made.identity(block, slot).name
        for block in range(5)
        for slot in (*cast.FOREBEARS, *cast.MODERNS)
    }
    assert not figures & persons


def test_stories_are_about_somebody_of_the_block(made: Cast) -> None:
    for slot, subject in cast.NEWS_SUBJECTS.items():
        assert made.identity(3, slot).name.startswith(made.identity(3, subject).name)
    original, copy = made.identity(3, cast.NEWS[-1]), made.identity(3, cast.SYNDICATED)
    assert original.title == copy.title
    assert urls.host_of(original.url) != urls.host_of(copy.url)
