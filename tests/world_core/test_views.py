from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from world_core.errors import BadInputError, BadWorldError, DamagedFileError
from world_core.types import FOREVER, Instant
from world_core.views import UNKNOWN, Columns, View, at_clock

NAMES = (
    "version_page",
    "valid_from",
    "valid_to",
    "published",
    "language",
    "host",
    "group",
    "passage_version",
)


def columns_of(
    pages: list[list[tuple[int, int, int | None]]], passages: list[int], hosts: int = 2
) -> Columns:
    """Make columns of pages, each a list of (valid from, valid to, published)."""
    rows = [(page, *version) for page, versions in enumerate(pages) for version in versions]
    count = len(rows)
    return Columns(
        version_page=np.array([row[0] for row in rows], np.int32),
        valid_from=np.array([row[1] for row in rows], np.int64),
        valid_to=np.array([row[2] for row in rows], np.int64),
        published=np.array([UNKNOWN if row[3] is None else row[3] for row in rows], np.int64),
        language=np.zeros(count, np.int16),
        host=np.arange(count, dtype=np.int32) % hosts,
        group=np.full(count, -1, np.int32),
        passage_version=np.repeat(np.arange(count, dtype=np.int32), passages),
        hosts=tuple(f"h{number}.example" for number in range(hosts)),
    )


@pytest.fixture
def columns() -> Columns:
    """Give three pages with 2, 1 and 2 versions and 2, 0, 1, 3, 1 passages."""
    return columns_of(
        [[(10, 20, 5), (20, FOREVER, 15)], [(30, FOREVER, None)], [(0, 10, 1), (15, FOREVER, 2)]],
        [2, 0, 1, 3, 1],
    )


TIMES = st.integers(-30, 30)


@st.composite
def worlds(draw: st.DrawFn) -> Columns:
    pages = []
    for _ in range(draw(st.integers(0, 6))):
        times = sorted(draw(st.lists(TIMES, unique=True, min_size=2, max_size=5)))
        ends = [end if draw(st.booleans()) else end - 1 for end in times[1:]]
        versions = [
            (start, max(end, start + 1), draw(st.none() | TIMES))
            for start, end in zip(times, ends, strict=False)
        ]
        if draw(st.booleans()):
            versions[-1] = (versions[-1][0], FOREVER, versions[-1][2])
        pages.append(versions)
    count = sum(map(len, pages))
    return columns_of(pages, draw(st.lists(st.integers(0, 3), min_size=count, max_size=count)))


@given(worlds(), TIMES)
def test_clock_agrees_with_brute_force(columns: Columns, clock: Instant) -> None:
    view = at_clock(columns, clock)
    expected = [
        start <= clock < end
        for start, end in zip(columns.valid_from, columns.valid_to, strict=True)
    ]
    assert view.versions.tolist() == expected
    assert view.count == sum(expected)
    for page in range(columns.page_count):
        visible: list[int | None] = [
            version
            for version in range(columns.version_count)
            if columns.version_page[version] == page and expected[version]
        ]
        assert [view.version_of(page)] == (visible or [None])


@given(worlds(), TIMES)
def test_units_agree_with_brute_force(columns: Columns, clock: Instant) -> None:
    view = at_clock(columns, clock)
    flags = view.versions.tolist()
    assert view.units("version").tolist() == flags
    assert view.units("passage").tolist() == [flags[v] for v in columns.passage_version]
    for unit in ("version", "passage"):
        allowed = view.allowed(unit)
        if all(flags):
            assert allowed is None
        else:
            assert allowed is not None
            assert allowed.tolist() == view.units(unit).tolist()


@given(worlds(), TIMES, st.none() | TIMES, st.none() | TIMES)
def test_published_between_agrees_with_brute_force(
    columns: Columns, clock: Instant, start: Instant | None, end: Instant | None
) -> None:
    view = at_clock(columns, clock)
    part = view.published_between(start, end)

    def inside(published: int) -> bool:
        if start is None and end is None:
            return True
        if published == UNKNOWN:
            return False
        return (start is None or start <= published) and (end is None or published < end)

    expected = [
        bool(seen) and inside(int(published))
        for seen, published in zip(view.versions, columns.published, strict=True)
    ]
    assert part.versions.tolist() == expected
    again = part.published_between(start, end)
    assert again.versions.tolist() == expected


@given(worlds(), TIMES, TIMES)
def test_clock_only_brings_pages_into_being(columns: Columns, one: Instant, two: Instant) -> None:
    early, late = sorted((one, two))
    for version in np.flatnonzero(at_clock(columns, early).versions):
        assert columns.valid_from[version] <= early <= late


def test_what_was_captured_after_the_clock_does_not_exist(columns: Columns) -> None:
    view = at_clock(columns, 20)
    assert view.versions.tolist() == [False, True, False, False, True]
    assert [view.version_of(page) for page in range(3)] == [1, None, 4]
    assert view.units("passage").tolist() == [False] * 6 + [True]
    assert view.count == 2


def test_page_between_two_captures_with_a_gap_is_absent(columns: Columns) -> None:
    assert at_clock(columns, 12).version_of(2) is None
    assert at_clock(columns, 15).version_of(2) == 4


def test_edges_of_validity_and_publication(columns: Columns) -> None:
    assert at_clock(columns, 19).version_of(0) == 0
    assert at_clock(columns, 20).version_of(0) == 1
    view = at_clock(columns, 20)
    assert view.published_between(15, 16).versions.tolist()[1]
    assert view.published_between(14, 15).count == 0
    assert view.published_between(None, None) is view


def test_extreme_dates_do_not_overflow(columns: Columns) -> None:
    dated = replace(columns, published=np.full(5, np.iinfo(np.int64).max, np.int64))
    assert at_clock(dated, 40).published_between(0, None).count == 3
    assert at_clock(columns, 40).published_between(UNKNOWN, None).count == 2
    assert at_clock(columns, FOREVER).count == 0
    assert at_clock(columns, FOREVER - 1).count == 3


def test_view_cannot_be_changed(columns: Columns) -> None:
    flags = np.ones(5, np.bool_)
    flags[[0, 3]] = False
    view = View(columns, flags)
    flags[:] = False
    assert view.count == 3
    assert view.versions.tolist() == [False, True, True, False, True]
    for bitmap in (view.versions, view.units("version"), view.units("passage")):
        with pytest.raises(ValueError, match="read-only"):
            bitmap[0] = True
    with pytest.raises(AttributeError):
        view.versions = flags  # type: ignore[misc]


def test_derived_bitmaps_are_made_once_for_all_threads(columns: Columns) -> None:
    view = at_clock(columns, 20)
    with ThreadPoolExecutor(8) as threads:
        bitmaps = list(threads.map(lambda _: view.units("passage"), range(64)))
        versions = list(threads.map(lambda _: view.version_of(0), range(64)))
    assert all(bitmap is bitmaps[0] for bitmap in bitmaps)
    assert set(versions) == {1}


def test_two_versions_of_a_page_are_refused(columns: Columns) -> None:
    view = View(columns, np.ones(5, np.bool_))
    with pytest.raises(BadWorldError, match="Page 0 has the versions 0 and 1 at once"):
        view.version_of(0)


@pytest.mark.parametrize("page", [-1, 3, 2**40])
def test_unknown_page_is_no_absence(columns: Columns, page: int) -> None:
    with pytest.raises(BadWorldError, match=f"no page {page}"):
        at_clock(columns, 20).version_of(page)


def test_unknown_unit_is_refused(columns: Columns) -> None:
    for view in (at_clock(columns, 20), at_clock(columns_of([[(0, 1, None)]], [1]), 0)):
        with pytest.raises(BadInputError, match="no unit 'page'"):
            view.units("page")
        with pytest.raises(BadInputError, match="no unit 'page'"):
            view.allowed("page")


@pytest.mark.parametrize("flags", [np.ones(4, np.bool_), np.ones(5, np.int8), np.ones((5, 1), "?")])
def test_bitmap_of_another_shape_is_refused(columns: Columns, flags: NDArray[Any]) -> None:
    with pytest.raises(BadInputError, match="needs 5 flags"):
        View(columns, flags)


@given(worlds())
def test_columns_survive_the_disk(
    tmp_path_factory: pytest.TempPathFactory, columns: Columns
) -> None:
    folder = tmp_path_factory.mktemp("world")
    columns.write(folder)
    mapped = Columns.open(folder)
    for name in NAMES:
        array, original = getattr(mapped, name), getattr(columns, name)
        assert array.tolist() == original.tolist()
        assert array.dtype == original.dtype
        assert isinstance(array, np.memmap)
        assert not array.flags.writeable
    assert mapped.hosts == columns.hosts
    assert mapped.version_count == columns.version_count
    assert mapped.passage_count == columns.passage_count
    assert at_clock(mapped, 3).versions.tolist() == at_clock(columns, 3).versions.tolist()


def test_files_are_as_the_format_says(tmp_path: Path, columns: Columns) -> None:
    columns.write(tmp_path)
    names = sorted(path.name for path in (tmp_path / "columns").iterdir())
    assert names == sorted([*(f"{name}.npy" for name in NAMES), "hosts.txt"])
    assert (tmp_path / "columns/hosts.txt").read_bytes() == b"h0.example\nh1.example\n"
    (tmp_path / "other").mkdir()
    Columns.open(tmp_path).write(tmp_path / "other")
    for path in (tmp_path / "columns").iterdir():
        assert (tmp_path / "other/columns" / path.name).read_bytes() == path.read_bytes()


def test_empty_world(tmp_path: Path) -> None:
    empty = columns_of([], [], hosts=1)
    empty.write(tmp_path)
    columns = Columns.open(tmp_path)
    assert (columns.page_count, columns.version_count, columns.passage_count) == (0, 0, 0)
    view = at_clock(columns, 0)
    assert view.count == 0
    assert view.allowed("passage") is None


@pytest.mark.parametrize("name", [*(f"{name}.npy" for name in NAMES), "hosts.txt"])
def test_missing_or_cut_column_is_damage(tmp_path: Path, columns: Columns, name: str) -> None:
    columns.write(tmp_path)
    path = tmp_path / "columns" / name
    good = path.read_bytes()
    for size in (0, 1, len(good) // 2, len(good) - 1):
        path.write_bytes(good[:size])
        with pytest.raises(DamagedFileError) as caught:
            Columns.open(tmp_path)
        assert "columns/" in caught.value.sentence
        assert f"world-server check {tmp_path}" in caught.value.hint
    path.unlink()
    with pytest.raises(DamagedFileError, match=name):
        Columns.open(tmp_path)


def test_pickles_are_not_opened(tmp_path: Path, columns: Columns) -> None:
    columns.write(tmp_path)
    array = np.array([{}, []], dtype=object)
    np.save(tmp_path / "columns/host.npy", array, allow_pickle=True)
    with pytest.raises(DamagedFileError, match=r"host\.npy"):
        Columns.open(tmp_path)


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("valid_from", np.zeros(4, np.int64), r"valid_from is int64 of shape \(4,\)"),
        ("valid_to", np.zeros(5, np.int32), "valid_to is int32"),
        ("language", np.zeros((5, 1), np.int16), "language is int16"),
        ("version_page", np.array([0, 0, 1, 1, 3], np.int32), "version_page does not ascend"),
        ("version_page", np.array([1, 1, 1, 2, 2], np.int32), "version_page does not ascend"),
        ("version_page", np.array([0, 1, 0, 1, 2], np.int32), "version_page does not ascend"),
        ("passage_version", np.array([0, 5], np.int32), "passage_version does not ascend"),
        ("passage_version", np.array([-1, 0], np.int32), "passage_version does not ascend"),
        ("passage_version", np.array([1, 0], np.int32), "passage_version does not ascend"),
        ("passage_version", np.array([0, 2**31 - 1, -(2**31), 3], np.int32), "does not ascend"),
        ("host", np.array([0, 0, 0, 0, 2], np.int32), "host leaves the 2 hosts"),
        ("host", np.array([0, 0, 0, 0, -1], np.int32), "host leaves the 2 hosts"),
        ("hosts", ("b", "a"), "not sorted"),
        ("hosts", ("a", "a"), "not sorted"),
    ],
)
def test_columns_that_do_not_fit_are_refused(
    columns: Columns, name: str, value: object, match: str
) -> None:
    changes: dict[str, Any] = {name: value}
    with pytest.raises(BadInputError, match=match):
        replace(columns, **changes)


def test_columns_of_two_worlds_are_damage(tmp_path: Path, columns: Columns) -> None:
    columns.write(tmp_path)
    np.save(tmp_path / "columns/valid_to.npy", np.zeros(6, np.int64))
    with pytest.raises(DamagedFileError, match="do not fit together: The column valid_to"):
        Columns.open(tmp_path)


def test_a_view_knows_its_time_and_keeps_it_under_filters(columns: Columns) -> None:
    view = at_clock(columns, 20)
    assert view.clock == 20
    assert view.published_between(0, None).clock == 20
    assert View(columns, np.zeros(5, np.bool_)).clock is None
