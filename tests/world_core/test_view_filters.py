"""Views made of views: masks, sites, languages and their conjunctions against brute force."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from world_core.errors import BadInputError, BadWorldError
from world_core.types import FOREVER
from world_core.views import UNKNOWN, Columns, View, at_clock

HOSTS = ("a.example", "b.a.example", "c.org", "example")


@st.composite
def worlds(draw: st.DrawFn) -> Columns:
    counts = draw(st.lists(st.integers(1, 3), max_size=8))
    pages = np.repeat(np.arange(len(counts)), counts).astype(np.int32)
    count = len(pages)
    order = np.array([step for size in counts for step in range(size)], dtype=np.int64)
    last = np.array([step == size - 1 for size in counts for step in range(size)], dtype=np.bool_)
    host = draw(st.lists(st.integers(0, 3), min_size=len(counts), max_size=len(counts)))
    some = st.lists(st.integers(0, 3), min_size=count, max_size=count)
    days = np.array(draw(some), dtype=np.int64)
    return Columns(
        version_page=pages,
        valid_from=order * 10,
        valid_to=np.where(last, FOREVER, order * 10 + 10),
        published=np.where(days == 0, UNKNOWN, days),
        language=np.array(draw(some), dtype=np.int16),
        host=np.array(host, dtype=np.int32)[pages],
        group=np.full(count, -1, dtype=np.int32),
        passage_version=np.repeat(np.arange(count), draw(some)).astype(np.int32),
        hosts=HOSTS,
    )


class Filter:
    """A way to narrow a view, and what it means for one version."""

    def __init__(
        self, apply: Callable[[View], View], keeps: Callable[[Columns, int], bool]
    ) -> None:
        self.apply = apply
        self.keeps = keeps


def of_pages(columns: Columns) -> st.SearchStrategy[Filter]:
    pages = (
        st.lists(st.integers(0, columns.page_count - 1), max_size=6)
        if columns.page_count
        else st.builds(list)
    )

    def made(chosen: list[int], hide: bool) -> Filter:
        numbers = np.array(chosen, dtype=np.int64)
        if hide:
            return Filter(
                lambda view: view.without_pages(numbers),
                lambda columns, v: columns.version_page[v] not in chosen,
            )
        return Filter(
            lambda view: view.only_pages(numbers),
            lambda columns, v: columns.version_page[v] in chosen,
        )

    return st.builds(made, pages, st.booleans())


def of_sites(sites: list[str], on: bool) -> Filter:
    def lies_there(columns: Columns, v: int) -> bool:
        host = columns.hosts[columns.host[v]]
        return any(host == site or host.endswith(f".{site}") for site in sites)

    if on:
        return Filter(lambda view: view.on_sites(sites), lies_there)
    return Filter(lambda view: view.off_sites(sites), lambda c, v: not lies_there(c, v))


def of_languages(wanted: set[int]) -> Filter:
    return Filter(
        lambda view: view.in_languages(wanted), lambda columns, v: columns.language[v] in wanted
    )


def of_dates(start: int | None, end: int | None) -> Filter:
    def inside(columns: Columns, v: int) -> bool:
        day = int(columns.published[v])
        if start is None and end is None:
            return True
        known = day != UNKNOWN
        return known and (start is None or start <= day) and (end is None or day < end)

    return Filter(lambda view: view.published_between(start, end), inside)


def of_clock(clock: int) -> Filter:
    return Filter(
        lambda view: view.within(view.world_at(clock)),
        lambda columns, v: bool(columns.valid_from[v] <= clock < columns.valid_to[v]),
    )


def filters(columns: Columns) -> st.SearchStrategy[Filter]:
    sites = st.lists(st.sampled_from([*HOSTS, "org", "b.org"]), max_size=3)
    days = st.none() | st.integers(-1, 4)
    return st.one_of(
        of_pages(columns),
        st.builds(of_sites, sites, st.booleans()),
        st.builds(of_languages, st.sets(st.integers(0, 4))),
        st.builds(of_dates, days, days),
        st.builds(of_clock, st.integers(-5, 35)),
    )


@given(worlds(), st.integers(-5, 35), st.data())
def test_conjunctions_agree_with_brute_force(
    columns: Columns, clock: int, data: st.DataObject
) -> None:
    base = at_clock(columns, clock)
    chosen = data.draw(st.lists(filters(columns), max_size=4))

    view = base
    for one in chosen:
        view = one.apply(view)

    expected = [
        bool(columns.valid_from[v] <= clock < columns.valid_to[v])
        and all(one.keeps(columns, v) for one in chosen)
        for v in range(columns.version_count)
    ]
    assert view.versions.tolist() == expected
    assert view.count == sum(expected)
    assert view.units("passage").tolist() == [expected[v] for v in columns.passage_version]
    for page in range(columns.page_count):
        shown = [v for v in np.flatnonzero(columns.version_page == page).tolist() if expected[v]]
        assert view.version_of(page) == (shown[0] if shown else None)
        assert len(shown) <= 1
    view.check_pages()


@given(worlds(), st.data())
def test_the_order_of_filters_leaves_no_trace(columns: Columns, data: st.DataObject) -> None:
    base = at_clock(columns, 5)
    one, other = data.draw(filters(columns)), data.draw(filters(columns))

    first, second = other.apply(one.apply(base)), one.apply(other.apply(base))

    assert first.versions.tolist() == second.versions.tolist()


@given(worlds(), st.data())
def test_the_same_narrowing_gives_the_same_view(columns: Columns, data: st.DataObject) -> None:
    base = at_clock(columns, 5)
    one = data.draw(filters(columns))

    assert one.apply(base) is one.apply(base)
    assert one.apply(base.world_at(7)).versions.tolist() == [
        bool(columns.valid_from[v] <= 7 < columns.valid_to[v]) and one.keeps(columns, v)
        for v in range(columns.version_count)
    ]


@pytest.fixture
def columns() -> Columns:
    """Give four pages of one version, each on a host of its own."""
    return Columns(
        version_page=np.arange(4, dtype=np.int32),
        valid_from=np.zeros(4, np.int64),
        valid_to=np.full(4, FOREVER),
        published=np.full(4, UNKNOWN),
        language=np.arange(4, dtype=np.int16),
        host=np.arange(4, dtype=np.int32),
        group=np.full(4, -1, np.int32),
        passage_version=np.arange(4, dtype=np.int32),
        hosts=HOSTS,
    )


def test_order_and_repetition_of_what_is_named_leave_no_trace(columns: Columns) -> None:
    view = at_clock(columns, 1)

    assert view.without_pages(np.array([2, 0, 2])) is view.without_pages(np.array([0, 2]))
    assert view.on_sites(["c.org", "example"]) is view.on_sites(["example", "c.org", "c.org"])
    assert view.in_languages([3, 1]) is view.in_languages({1, 3})


def test_a_mask_of_nothing_hides_nothing_and_nothing_named_shows_nothing(columns: Columns) -> None:
    view = at_clock(columns, 1)

    assert view.without_pages(np.zeros(0, np.int64)).allowed("version") is None
    assert view.off_sites([]).count == 4
    assert view.only_pages(np.zeros(0, np.int64)).count == 0
    assert view.on_sites([]).count == 0
    assert view.in_languages([]).count == 0


def test_subdomains_belong_to_a_site_and_lookalikes_do_not(columns: Columns) -> None:
    view = at_clock(columns, 1)

    assert np.flatnonzero(view.on_sites(["a.example"]).versions).tolist() == [0, 1]
    assert np.flatnonzero(view.on_sites(["example"]).versions).tolist() == [0, 1, 3]
    assert view.on_sites(["xample"]).count == 0


@pytest.mark.parametrize("page", [-1, 4, 2**40])
def test_a_page_that_is_not_there_cannot_be_masked(columns: Columns, page: int) -> None:
    for narrowed in (at_clock(columns, 1).without_pages, at_clock(columns, 1).only_pages):
        with pytest.raises(BadInputError, match=f"no page {page} in a world of 4"):
            narrowed(np.array([0, page]))


def test_what_was_given_can_change_afterwards(columns: Columns) -> None:
    pages = np.array([1, 2])
    view = at_clock(columns, 1).without_pages(pages)

    pages[:] = 0

    assert view.versions.tolist() == [True, False, False, True]
    assert at_clock(columns, 1).without_pages(pages).versions.tolist() == [False, True, True, True]


def test_bitmaps_of_made_views_are_frozen(columns: Columns) -> None:
    view = at_clock(columns, 1).without_pages(np.array([1]))

    for bitmap in (view.versions, view.units("passage")):
        with pytest.raises(ValueError, match="read-only"):
            bitmap[0] = False


def test_a_view_keeps_its_time_and_an_intersection_only_a_common_one(columns: Columns) -> None:
    view = at_clock(columns, 1)
    bare = View(columns, np.ones(4, np.bool_))

    assert view.without_pages(np.array([1])).clock == 1
    assert view.on_sites(["example"]).in_languages([0]).clock == 1
    assert view.within(bare).clock == 1
    assert view.within(view.world_at(1)).clock == 1
    assert view.within(view.world_at(2)).clock is None
    assert view.world_at(2).clock == 2


def test_views_of_two_worlds_have_nothing_in_common(columns: Columns) -> None:
    other = Columns(**{name: getattr(columns, name) for name in columns.__slots__})

    with pytest.raises(BadInputError, match="different worlds"):
        at_clock(columns, 1).within(at_clock(other, 1))


def test_two_versions_at_once_are_found_when_a_view_is_made(columns: Columns) -> None:
    twice = Columns(
        **{name: getattr(columns, name) for name in columns.__slots__ if name != "version_page"},
        version_page=np.array([0, 1, 1, 2], np.int32),
    )

    with pytest.raises(BadWorldError, match="Page 1 has the versions 1 and 2 at once"):
        at_clock(twice, 1)
