from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from world_core.content import ContentDigest
from world_core.errors import PageStoreError
from world_core.page_tables import PageCounts
from world_core.pages import PageStore
from world_core.types import DeadLink, Link, PageRecord, VersionRecord
from world_core.urls import page_id

if TYPE_CHECKING:
    from tests.world_core.conftest import Place, Sample


def page_of(key: str, *versions: VersionRecord, aliases: tuple[str, ...] = ()) -> PageRecord:
    return PageRecord(page_id(key), key, f"{key}#shown", versions, aliases)


def in_order(pages: list[PageRecord]) -> list[PageRecord]:
    return sorted(pages, key=lambda page: page.page_id)


def test_pages_come_back_in_canonical_order(filled: PageStore, sample: Sample) -> None:
    pages, dead = sample
    assert list(filled.pages()) == pages
    assert list(filled.dead_links()) == dead


def test_world_id_from_the_store_is_that_of_the_records(filled: PageStore, sample: Sample) -> None:
    def world_id(pages: list[PageRecord], dead: list[DeadLink]) -> str:
        digest = ContentDigest()
        digest.header(recipe={}, encoder_id="e", analyzer_id="a")
        for page in pages:
            digest.page(page)
        for link in dead:
            digest.dead(link)
        return digest.hexdigest()

    assert world_id(list(filled.pages()), list(filled.dead_links())) == world_id(*sample)


def test_counts(filled: PageStore, sample: Sample) -> None:
    pages, dead = sample
    versions = [version for page in pages for version in page.versions]
    assert filled.counts() == PageCounts(
        pages=50,
        versions=len(versions),
        aliases=sum(len(page.aliases) for page in pages),
        dead_links=len(dead),
        links=sum(len(version.links) for version in versions),
        characters=sum(len(version.text) for version in versions),
    )


def test_find_by_key_alias_and_dead_link(filled: PageStore, sample: Sample) -> None:
    pages, dead = sample
    for number, page in enumerate(pages):
        assert [filled.find(key) for key in (page.key, *page.aliases)] == [number] * (
            1 + len(page.aliases)
        )
    assert filled.find(dead[17].key) == dead[17]


@pytest.mark.parametrize(
    "key",
    [
        "",
        "https://a.example/",
        "https://A.example/1",
        "x" * 100_000,
        "a\0b",
        "\ud83d",
        "' OR 1=1 --",
    ],
)
def test_unknown_key_is_none(filled: PageStore, key: str) -> None:
    assert filled.find(key) is None


def test_same_id_of_another_key_is_no_hit(
    filled: PageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = page_id("https://a.example/1")
    monkeypatch.setattr("world_core.pages.page_id", lambda key: known)
    assert filled.find("https://other.example/") is None
    assert filled.find("https://a.example/1") is not None


def test_versions_are_numbered_by_page_and_time(filled: PageStore, sample: Sample) -> None:
    pages, _ = sample
    first = 0
    for number, page in enumerate(pages):
        assert filled.versions(number) == range(first, first + len(page.versions))
        for version, record in zip(filled.versions(number), page.versions, strict=True):
            stored = filled.read(version)
            assert (stored.text, stored.links, stored.mime) == (
                record.text,
                record.links,
                record.mime,
            )
            assert stored.meta.characters == len(record.text)
            assert (stored.meta.page, stored.meta.page_id) == (number, page.page_id)
            assert (stored.meta.url, stored.meta.title) == (page.url, record.title)
        first += len(page.versions)


def test_metas_come_in_the_order_asked(filled: PageStore) -> None:
    asked = [7, 3, 3, 0, filled.counts().versions - 1, 7]
    metas = filled.metas(asked)
    assert [meta.version for meta in metas] == asked
    assert metas == [filled.read(version).meta for version in asked]
    assert filled.metas([]) == []


def test_metas_and_read_ask_once(filled: PageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[sa.Executable] = []
    rows = filled._reader.rows

    def counted(statement: sa.Executable, values: dict[str, object]) -> object:
        asked.append(statement)
        return rows(statement, values)

    monkeypatch.setattr(filled._reader, "rows", counted)
    filled.metas(list(range(10)))
    filled.read(4)
    filled.find("https://a.example/1")
    queries = filled._queries
    assert asked == [queries.metas, queries.read, queries.find]


@pytest.mark.parametrize("number", [-1, 10**6, 2**70])
def test_unknown_numbers_are_failures_not_absences(filled: PageStore, number: int) -> None:
    calls: list[Callable[[], object]] = [
        lambda: filled.versions(number),
        lambda: filled.read(number),
        lambda: filled.metas([0, number]),
    ]
    for call in calls:
        with pytest.raises(PageStoreError, match=str(number)):
            call()


def test_ping_answers(filled: PageStore) -> None:
    filled.ping()


def test_empty_store(place: Place) -> None:
    store = place.fill([], [])
    assert store.counts() == PageCounts(0, 0, 0, 0, 0, 0)
    assert list(store.pages()) == []
    assert list(store.dead_links()) == []
    assert store.find("https://a.example/") is None
    store.close()


def test_empty_and_huge_text(place: Place) -> None:
    source = random.Random(5)
    huge = "".join(chr(source.randrange(0x4E00, 0x9FFF)) for _ in range(100_000)) * 100
    keys = ["https://a.example/empty", "https://a.example/huge"]
    texts = dict(zip(keys, ["", huge], strict=True))
    pages = [page_of(key, VersionRecord("", text, "", 0)) for key, text in texts.items()]
    store = place.fill(in_order(pages), [])
    for key, text in texts.items():
        page = store.find(key)
        assert isinstance(page, int)
        stored = store.read(store.versions(page)[0])
        assert stored.text == text
        assert stored.meta.characters == len(text)
    assert len(huge.encode()) == 30_000_000
    store.close()


def test_long_and_odd_addresses(place: Place) -> None:
    keys = ["https://a.example/" + "x" * 8000, "https://a.example/%C3%BC?a=b'c\"d\\", "k"]
    pages = in_order([page_of(key, VersionRecord("t", "x", "en", 0)) for key in keys])
    store = place.fill(pages, [])
    assert sorted(str(store.find(key)) for key in keys) == ["0", "1", "2"]
    store.close()


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
TIMES = st.integers(-(2**63), 2**63 - 1)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_record_survives(sqlite_place: Place, data: st.DataObject) -> None:
    names = data.draw(st.lists(TEXT.filter(bool), unique=True, min_size=1, max_size=8))
    pages = []
    for key in names[::2]:
        times = sorted(data.draw(st.lists(TIMES, unique=True, min_size=2, max_size=4)))
        versions = [
            VersionRecord(
                *data.draw(st.tuples(TEXT, TEXT, TEXT)),
                valid_from=start,
                valid_to=end,
                published=data.draw(st.none() | TIMES),
                links=tuple(data.draw(st.lists(st.builds(Link, TEXT, TEXT), max_size=2))),
            )
            for start, end in itertools.pairwise(times)
        ]
        pages.append(page_of(key, *versions))
    dead = [DeadLink(key, data.draw(TEXT), 410, data.draw(TIMES)) for key in sorted(names[1::2])]
    store = sqlite_place.fill(in_order(pages), dead)
    assert list(store.pages()) == in_order(pages)
    assert list(store.dead_links()) == dead
    store.close()


def test_many_threads_read_at_once_and_wait_for_a_connection(place: Place, sample: Sample) -> None:
    place.fill(*sample).close()
    store = place.open(connections=2)
    pages, _ = sample
    barrier = threading.Barrier(12)

    def work(seed: int) -> bool:
        source = random.Random(seed)
        barrier.wait()
        good = True
        for _ in range(20):
            number = source.randrange(len(pages))
            version = store.versions(number)[-1]
            good &= store.find(pages[number].key) == number
            good &= store.read(version).text == pages[number].versions[-1].text
            good &= [meta.page for meta in store.metas([version])] == [number]
        return good

    with ThreadPoolExecutor(12) as threads:
        assert all(threads.map(work, range(12)))
    store.close()


def test_aliases_come_sorted(place: Place) -> None:
    page = page_of("k", VersionRecord("t", "x", "en", 0), aliases=("b", "c", "a"))
    store = place.fill([page], [])
    assert list(store.pages()) == [replace(page, aliases=("a", "b", "c"))]
    store.close()
