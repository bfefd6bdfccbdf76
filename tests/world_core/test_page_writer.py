from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from world_core.errors import BadInputError, PageStoreError
from world_core.page_writer import PageWriter
from world_core.types import DeadLink, Link, PageRecord, VersionRecord
from world_core.urls import page_id

if TYPE_CHECKING:
    from tests.world_core.conftest import Place, Sample


def page_of(key: str, *versions: VersionRecord, aliases: tuple[str, ...] = ()) -> PageRecord:
    chosen = versions or (VersionRecord("t", "x", "en", 0),)
    return PageRecord(page_id(key), key, key, chosen, aliases)


def in_order(*keys: str) -> list[PageRecord]:
    return sorted((page_of(key) for key in keys), key=lambda page: page.page_id)


def test_equal_input_gives_equal_bytes(tmp_path: Path, sample: Sample) -> None:
    pages, dead = sample
    turned = [replace(page, aliases=page.aliases[::-1]) for page in pages]
    for name, given in (("a", pages), ("b", pages), ("c", turned), ("d", pages[1:])):
        with PageWriter(tmp_path / name) as writer:
            for page in given:
                writer.add(page)
            for link in dead:
                writer.add_dead(link)
    files = [(tmp_path / name).read_bytes() for name in "abcd"]
    assert files[0] == files[1] == files[2]
    assert files[0] != files[3]


def test_batches_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
    source = random.Random(1)
    pages = in_order(*(f"https://a.example/{number}" for number in range(300)))
    pages = [
        replace(page, versions=(VersionRecord("t", "x" * source.randrange(2000), "en", 0),))
        for page in pages
    ]
    monkeypatch.setattr("world_core.page_writer._BATCH_ROWS", 7)
    monkeypatch.setattr("world_core.page_writer._BATCH_CHARACTERS", 5000)
    store = place.fill(pages, [])
    assert list(store.pages()) == pages
    store.close()


def refuse(place: Place, pages: list[PageRecord], dead: list[DeadLink], match: str) -> None:
    with pytest.raises(BadInputError, match=match):
        place.fill(pages, dead)
    with pytest.raises(PageStoreError):
        place.open()


def test_pages_out_of_order_or_twice_are_refused(place: Place) -> None:
    first, second = in_order("a", "b")
    refuse(place, [second, first], [], "strictly ascending")
    refuse(place, [first, first], [], "strictly ascending")


def test_dead_links_out_of_order_or_twice_are_refused(sqlite_place: Place) -> None:
    one, other = DeadLink("a", "a", 404, 1), DeadLink("b", "b", 404, 1)
    refuse(sqlite_place, [], [other, one], "dead link 'a' came after 'b'")
    refuse(sqlite_place, [], [one, replace(one, status=410)], "strictly ascending")
    refuse(sqlite_place, [], [replace(one, key="")], "strictly ascending")


def test_page_id_must_be_that_of_the_key(sqlite_place: Place) -> None:
    wrong = replace(page_of("a"), page_id="00" * 10)
    refuse(sqlite_place, [wrong], [], f"not that of 'a': {page_id('a')}")
    refuse(sqlite_place, [page_of("")], [], "the empty key")


@pytest.mark.parametrize(
    ("aliases", "dead", "what"),
    [
        ({"a": ("x",), "b": ("x",)}, [], "'x' is an alias twice"),
        ({"a": ("x", "x")}, [], "'x' is an alias twice"),
        ({"a": ("b",), "b": ()}, [], "'b' is a page and an alias"),
        ({"a": ("a",)}, [], "'a' is a page and an alias"),
        ({"a": ()}, ["a"], "'a' is a page and a dead link"),
        ({"a": ("x",)}, ["x"], "'x' is an alias and a dead link"),
    ],
)
def test_address_is_one_thing_only(
    place: Place, aliases: dict[str, tuple[str, ...]], dead: list[str], what: str
) -> None:
    pages = [replace(page, aliases=aliases[page.key]) for page in in_order(*aliases)]
    refuse(place, pages, [DeadLink(key, key, 404, 0) for key in dead], what)


@pytest.mark.parametrize(
    "times", [((5, 5),), ((6, 5),), ((0, 5), (4, 6)), ((5, 6), (0, 5)), ((0, 2**62), (1, 2))]
)
def test_versions_must_follow_each_other(
    sqlite_place: Place, times: tuple[tuple[int, int], ...]
) -> None:
    versions = (VersionRecord("t", "x", "en", start, end) for start, end in times)
    refuse(sqlite_place, [page_of("a", *versions)], [], "is valid from")


def test_versions_may_leave_gaps(sqlite_place: Place) -> None:
    times = ((0, 5), (5, 6), (9, 10))
    versions = [VersionRecord("t", "x", "en", start, end) for start, end in times]
    store = sqlite_place.fill([page_of("a", *versions)], [])
    assert store.versions(0) == range(3)
    store.close()


def test_page_without_versions_is_refused(sqlite_place: Place) -> None:
    refuse(sqlite_place, [replace(page_of("a"), versions=())], [], "has no version")


BAD_TEXTS = ["a\0b", "\ud83d", "\udc00x", "\0"]


@pytest.mark.parametrize("bad", BAD_TEXTS)
@pytest.mark.parametrize("where", ["title", "text", "language", "mime", "link", "link text"])
def test_texts_of_a_version_are_checked(sqlite_place: Place, bad: str, where: str) -> None:
    record = VersionRecord("t", "x", "en", 0)
    changes: dict[str, VersionRecord] = {
        "title": replace(record, title=bad),
        "text": replace(record, text=bad),
        "language": replace(record, language=bad),
        "mime": replace(record, mime=bad),
        "link": replace(record, links=(Link(bad, ""),)),
        "link text": replace(record, links=(Link("", bad),)),
    }
    refuse(sqlite_place, [page_of("a", changes[where])], [], "NUL|surrogate")


@pytest.mark.parametrize("bad", BAD_TEXTS)
def test_addresses_are_checked(sqlite_place: Place, bad: str) -> None:
    for page in (page_of(bad), replace(page_of("a"), url=bad), page_of("a", aliases=(bad,))):
        refuse(sqlite_place, [page], [], "NUL|surrogate")
    for link in (DeadLink(bad, "u", 404, 0), DeadLink("k", bad, 404, 0)):
        refuse(sqlite_place, [], [link], "NUL|surrogate")


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1])
def test_numbers_are_checked(sqlite_place: Place, number: int) -> None:
    record = VersionRecord("t", "x", "en", 0)
    for change in (replace(record, published=number), replace(record, modified=number)):
        refuse(sqlite_place, [page_of("a", change)], [], "does not fit 64 bits")
    for link in (DeadLink("k", "u", number, 0), DeadLink("k", "u", 404, number)):
        refuse(sqlite_place, [], [link], "does not fit 64 bits")


def test_refused_page_leaves_no_trace(sqlite_place: Place) -> None:
    good, other = in_order("a", "b")
    with sqlite_place.writer() as writer:
        writer.add(good)
        for bad in (
            replace(other, url="\0"),
            replace(other, aliases=("x", "\0")),
            replace(
                other, versions=(*other.versions, VersionRecord("\0", "", "", 2**62, 2**62 + 1))
            ),
        ):
            with pytest.raises(BadInputError):
                writer.add(bad)
        with pytest.raises(BadInputError):
            writer.add_dead(DeadLink("d", "\0", 404, 0))
        writer.add_dead(DeadLink("d", "d", 404, 0))
        writer.add(other)
    store = sqlite_place.open()
    assert list(store.pages()) == [good, other]
    assert list(store.dead_links()) == [DeadLink("d", "d", 404, 0)]
    store.close()


def test_nothing_is_to_be_seen_before_the_end(place: Place, sample: Sample) -> None:
    with place.writer() as writer:
        for page in sample[0]:
            writer.add(page)
        with pytest.raises(PageStoreError):
            place.open()
    place.open().close()


def test_error_in_the_block_drops_everything(place: Place, sample: Sample) -> None:

    def fail_half_way() -> None:
        with place.writer() as writer:
            writer.add(sample[0][0])
            raise KeyError("of the caller")

    with pytest.raises(KeyError):
        fail_half_way()
    with pytest.raises(PageStoreError):
        place.open()
    place.fill(*sample).close()


def test_killed_writer_leaves_no_obstacle(sqlite_place: Place, sample: Sample) -> None:
    path = Path(sqlite_place.where)
    path.with_name(f"{path.name}.part").write_bytes(b"half a file")
    sqlite_place.fill(*sample).close()
    assert list(path.parent.iterdir()) == [path]


def test_file_is_replaced_in_one_step(sqlite_place: Place, sample: Sample) -> None:
    old = sqlite_place.fill(in_order("a"), [])
    new = sqlite_place.fill(*sample)
    assert old.read(0).text == "x"
    assert new.counts().pages == 50
    old.close()
    new.close()


def test_world_in_a_database_is_never_overwritten(
    new_postgres_place: Callable[[], Place], sample: Sample
) -> None:
    place = new_postgres_place()
    place.fill(*sample).close()
    with pytest.raises(BadInputError, match="already") as caught:
        place.fill(in_order("a"), [])
    assert f'DROP SCHEMA "{place.schema}"' in caught.value.hint
    store = place.open()
    assert store.counts().pages == 50
    store.close()


def test_folder_that_is_missing_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(PageStoreError, match="unable to open"):
        PageWriter(tmp_path / "missing" / "pages.sqlite").__enter__()


def test_full_disk_is_a_failure(tmp_path: Path, sample: Sample) -> None:
    def fill_up() -> None:
        with PageWriter(tmp_path / "pages.sqlite") as writer:
            writer._connection.exec_driver_sql("PRAGMA max_page_count=8")
            for page in sample[0]:
                writer.add(page)

    with pytest.raises(PageStoreError, match="full"):
        fill_up()
    assert list(tmp_path.iterdir()) == []
