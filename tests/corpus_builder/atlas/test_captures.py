"""What a crawl saw: pages over time, redirects, copies, dead links, and nothing twice."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest

from corpus_builder.atlas import cast
from corpus_builder.atlas.captures import (
    MIRRORED,
    captures,
    dead_addresses,
    extra_links,
    mirror_of,
    redirects,
)
from corpus_builder.atlas.cast import BLOCK
from corpus_builder.atlas.entities import CLOCK
from corpus_builder.atlas.pages import BRIEF
from corpus_builder.atlas.world import Atlas
from corpus_builder.capture import Capture
from world_core import urls

WORLD = Atlas(1)


@pytest.fixture(scope="module")
def first() -> list[Capture]:
    return list(captures(WORLD.block(0), BRIEF, BLOCK))


def test_every_page_is_captured_as_often_as_its_entity_says(first: list[Capture]) -> None:
    pages: defaultdict[str, list[Capture]] = defaultdict(list)
    for capture in first:
        if capture.status == 200:
            pages[capture.url].append(capture)
    for entity in WORLD.block(0).entities:
        times = [time for state in entity.states for time in state.captured]
        found = pages[entity.identity.url]
        assert [capture.time for capture in found] == times
        assert len({capture.body for capture in found}) == len(entity.states)


def test_captures_are_numbered_and_before_the_clock(first: list[Capture]) -> None:
    assert [capture.offset for capture in first] == list(range(len(first)))
    assert {capture.origin for capture in first} == {"atlas/block-00000"}
    assert all(0 < capture.time < CLOCK for capture in first)


def test_no_address_has_two_captures_at_a_time(first: list[Capture]) -> None:
    seen = Counter((capture.url, capture.time) for capture in first)
    assert seen.most_common(1)[0][1] == 1


def test_redirects_lead_to_pages_of_the_block_but_for_the_loop(first: list[Capture]) -> None:
    moved = {c.url: c.location for c in first if c.status == 301}
    pages = {c.url for c in first if c.status == 200}
    dead = {c.url for c in first if c.status >= 400}
    ends: Counter[tuple[str, int]] = Counter()
    for url in moved:
        hops, end = 0, url
        while end in moved and hops < 10:
            end, hops = moved[end], hops + 1
        kind = "page" if end in pages else "dead" if end in dead else "loop"
        ends[kind, min(hops, 3)] += 1
    assert ends == {("page", 1): 8, ("page", 2): 1, ("dead", 1): 1, ("loop", 3): 2}


def test_redirects_are_of_every_kind() -> None:
    found = {redirect.url: redirect.target for redirect in redirects(WORLD.block(1))}
    block = WORLD.block(1)
    festival = block.identity(cast.FESTIVALS[0]).url
    assert festival.endswith("/")
    assert found[festival.rstrip("/")] == festival
    assert found[block.identity(cast.CAPITAL).url + "/"] == block.identity(cast.CAPITAL).url
    river = block.identity(cast.RIVERS[0]).url
    assert found[river.replace("https:", "http:")] == river
    assert not any("/loop/" in url for url in found)


def test_no_redirect_hides_a_page(first: list[Capture]) -> None:
    pages = {urls.canonical(c.url) for c in first if c.status == 200}
    for capture in first:
        if capture.status == 301 and urls.canonical(capture.url) in pages:
            assert urls.canonical(capture.url) == urls.canonical(capture.location)


def test_mirrors_hold_the_same_bytes(first: list[Capture]) -> None:
    bodies = {capture.url: capture.body for capture in first if capture.status == 200}
    for slot in MIRRORED:
        identity = WORLD.block(0).identity(slot)
        copy = mirror_of(identity)
        assert urls.host_of(copy) == "mirror.example"
        assert bodies[copy] == bodies[identity.url]
        # Equal pages without a hint are joined under the shorter address, the original's.
        assert len(copy) > len(identity.url)


def test_an_address_with_tracking_is_the_page_itself(first: list[Capture]) -> None:
    river = WORLD.block(0).identity(cast.RIVERS[0]).url
    tracked = [c for c in first if "utm_source=feed" in c.url]
    assert [urls.canonical(c.url) for c in tracked] == [river]
    assert tracked[0].body in {c.body for c in first if c.url == river}


def test_dead_addresses_answered_with_errors(first: list[Capture]) -> None:
    dead = [(c.url, c.status) for c in first if c.status >= 400]
    assert dead == dead_addresses(WORLD.block(0))
    assert {status for _, status in dead} == {404, 410}


def test_pages_link_to_such_addresses(first: list[Capture]) -> None:
    bodies = {c.url: (c.body or b"").decode() for c in first if c.status == 200}
    block = WORLD.block(0)
    for slot, links in extra_links(block).items():
        for url, text in links:
            assert f'<a href="{url}">{text}</a>' in bodies[block.identity(slot).url]


def test_a_cut_block_holds_its_first_pages_only(first: list[Capture]) -> None:
    cut = list(captures(WORLD.block(0), BRIEF, 3))
    pages = [WORLD.block(0).identity(slot).url for slot in range(3)]
    assert {capture.url for capture in cut} == set(pages)
    assert [(c.url, c.time, c.body) for c in cut] == [
        (c.url, c.time, c.body) for c in first if c.url in pages and c.status == 200
    ]
