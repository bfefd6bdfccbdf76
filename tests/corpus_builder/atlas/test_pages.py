"""Pages as HTML: every fact in the text, dates where they belong, repeatable, linked."""

from __future__ import annotations

import json
import re
from itertools import pairwise

import pytest

from corpus_builder.atlas import cast
from corpus_builder.atlas.cast import Kind
from corpus_builder.atlas.entities import Dating, Entity
from corpus_builder.atlas.pages import (
    BRIEF,
    FULL,
    Style,
    day_in_words,
    frame_of,
    host_of,
    iso_day,
    related,
    render,
)
from corpus_builder.atlas.world import Atlas
from tests.corpus_builder.atlas.helpers import plain
from world_core import urls

WORLD = Atlas(1)
BLOCKS = (0, 4, 11)
STYLES = {"full": FULL, "brief": BRIEF}


def _page(number: int, slot: int, version: int = -1, style: Style = FULL) -> bytes:
    block = WORLD.block(number)
    entity = block.entities[slot]
    named_by = related(block).get(slot, [])
    version %= len(entity.states)
    return render(block, entity, version, named_by=named_by, style=style)


def _entities() -> list[Entity]:
    return [entity for number in BLOCKS for entity in WORLD.block(number).entities]


def _prose(body: bytes) -> str:
    """Return the text without the fact table and the list of links."""
    page = re.sub(rb"<table.*?</table>", b"", body)
    return plain(re.sub(rb"<h2>Related pages</h2>.*?</ul>", b"", page, flags=re.DOTALL))


@pytest.mark.parametrize("style", sorted(STYLES))
def test_the_prose_of_every_version_states_every_fact_of_its_frame(style: str) -> None:
    for entity in _entities():
        frame = frame_of(entity.identity)
        if frame is None:
            continue
        sentences = [*frame.lead, *(line for part in frame.sections for line in part.sentences)]
        slots = {s for line in sentences for text in line for s in re.findall(r"\{(\w+)\}", text)}
        for version, state in enumerate(entity.states):
            text = _prose(
                _page(entity.identity.block, entity.identity.slot, version, STYLES[style])
            )
            missing = {s for s in slots - {"name"} if state.facts[s] not in text}
            assert not missing, (entity.identity.url, version)
            assert entity.identity.name in text


def test_the_fact_table_states_its_rows() -> None:
    for entity in _entities():
        frame = frame_of(entity.identity)
        if frame is not None and frame.rows:
            body = _page(entity.identity.block, entity.identity.slot)
            found = re.search(rb"<table.*?</table>", body)
            assert found is not None
            for label, slot in frame.rows:
                assert label in found[0].decode()
                assert entity.facts[slot] in found[0].decode()


def test_a_version_says_nothing_of_later_ones() -> None:
    checked = 0
    for entity in _entities():
        for version, (state, later) in enumerate(pairwise(entity.states)):
            text = plain(_page(entity.identity.block, entity.identity.slot, version))
            for fact in ("holder", "population", "visitors", "employees"):
                if fact in state.facts:
                    assert later.facts[fact] not in text
                    checked += 1
    assert checked > 50


def test_neighbouring_versions_share_most_of_their_words() -> None:
    first, second = (_prose(_page(0, cast.CAPITAL, v)).split() for v in (0, 1))
    assert first != second
    assert len(first) == len(second)
    assert sum(a != b for a, b in zip(first, second, strict=True)) < len(first) / 10


def test_full_pages_have_150_to_500_words() -> None:
    for entity in _entities():
        if entity.identity.kind not in {Kind.STUB, Kind.CHOIR}:
            words = plain(_page(entity.identity.block, entity.identity.slot)).split()
            assert 150 <= len(words) <= 500, entity.identity.url


def test_brief_pages_are_a_passage_each() -> None:
    for entity in _entities():
        page = _page(entity.identity.block, entity.identity.slot, style=BRIEF)
        assert len(plain(page)) <= 1000, entity.identity.url


def test_stubs_are_thin_and_ask_not_to_be_indexed() -> None:
    page = _page(0, cast.STUB)
    assert b'<meta name="robots" content="noindex">' in page
    assert len(plain(page).split()) < 20
    assert b"noindex" not in _page(0, cast.CAPITAL)


def test_dates_stand_where_the_page_dates_itself() -> None:
    seen = set()
    for entity in _entities():
        newest = len(entity.states) - 1
        head = _page(entity.identity.block, entity.identity.slot).split(b"</head>")[0].decode()
        day = iso_day(entity.published)
        meta = f'<meta property="article:published_time" content="{day}T08:00:00Z">' in head
        data = re.search(r'<script type="application/ld\+json">(.*?)</script>', head)
        assert meta == (entity.dating in {Dating.META, Dating.BOTH})
        assert (data is not None) == (entity.dating in {Dating.JSON_LD, Dating.BOTH})
        if data is not None:
            parsed = json.loads(data[1])
            assert parsed["datePublished"] == f"{day}T08:00:00Z"
            assert parsed["headline"] == entity.identity.title
            assert ("dateModified" in parsed) == (newest > 0)
        assert ("article:modified_time" in head) == (meta and newest > 0)
        seen.add(entity.dating)
    assert seen == set(Dating)


def test_undated_pages_name_no_day_of_their_own() -> None:
    undated = [entity for entity in _entities() if entity.dating is Dating.NONE]
    assert undated
    for entity in undated:
        page = _page(entity.identity.block, entity.identity.slot).decode()
        assert iso_day(entity.published) not in page
        assert day_in_words(entity.published) not in page


def test_stories_show_their_day() -> None:
    entity = WORLD.block(0).entities[cast.NEWS[0]]
    assert day_in_words(entity.published) in plain(_page(0, cast.NEWS[0]))


def test_a_syndicated_story_is_nearly_its_original() -> None:
    original, copy = (set(_prose(_page(0, s)).split(".")) for s in (cast.NEWS[-1], cast.SYNDICATED))
    assert original != copy
    assert len(original & copy) / len(original | copy) > 0.5


@pytest.mark.parametrize("language", ["de", "es", "fr", "zh"])
def test_choir_pages_declare_their_language(language: str) -> None:
    pages = [_page(number, slot) for number in (0, 1) for slot in cast.CHOIRS]
    assert sum(f'<html lang="{language}">'.encode() in page for page in pages) == 1


def test_links_lead_to_the_pages_they_name() -> None:
    block = WORLD.block(4)
    for entity in block.entities:
        page = _page(4, entity.identity.slot).decode()
        found = dict(re.findall(r'<a href="(https://[^"?]*)[^"]*">([^<]*)</a>', page))
        for target in entity.targets.values():
            assert target.url in found
    capital = block.entities[cast.CAPITAL].identity
    assert f'<a href="{capital.url}">{capital.name}</a>' in _page(4, 0).decode()


def test_some_links_are_described_and_some_carry_tracking() -> None:
    pages = "".join(_page(4, slot).decode() for slot in range(cast.BLOCK))
    assert "utm_source=atlas&amp;utm_medium=text" in pages
    assert ">a town near by</a>" in pages or " of note</a>" in pages


def test_who_names_whom() -> None:
    block = WORLD.block(4)
    ship = block.entities[cast.SHIP].identity
    assert ("Builder of", ship) in related(block)[cast.SHIPYARD]
    assert all(
        other.block == 4 and slot != other.slot
        for slot, found in related(block).items()
        for _, other in found
    )


def test_mirrored_pages_say_where_they_belong_or_not_whatever_was_drawn() -> None:
    for number in range(8):
        named = _page(number, cast.FINDINGS[0])
        unnamed = _page(number, cast.BOOKS[1])
        url = WORLD.block(number).identity(cast.FINDINGS[0]).url
        assert f'<link rel="canonical" href="{url}">'.encode() in named
        assert b'rel="canonical"' not in unnamed


def test_canonical_links_name_the_page_itself() -> None:
    for entity in _entities():
        page = _page(entity.identity.block, entity.identity.slot).decode()
        for url in re.findall(r'<link rel="canonical" href="([^"]*)">', page):
            assert url == entity.identity.url


def test_pages_are_well_formed_utf8_with_one_heading() -> None:
    for entity in _entities():
        page = _page(entity.identity.block, entity.identity.slot).decode("utf-8")
        assert page.count("<h1>") == 1
        assert f"<h1>{entity.identity.title}</h1>" in page
        assert "{" not in re.sub(r"<script.*?</script>", "", page)
        assert "<p></p>" not in page
        for tag in ("p", "ul", "li", "a", "table", "tr", "h2", "main", "article", "body"):
            assert page.count(f"<{tag}>") + page.count(f"<{tag} ") == page.count(f"</{tag}>")


def test_rendering_repeats() -> None:
    again = Atlas(1).block(4)
    slot = cast.CAPITAL
    page = render(again, again.entities[slot], 0, named_by=related(again)[slot], style=FULL)
    assert page == _page(4, slot, 0)


def test_helpers() -> None:
    assert day_in_words(1_556_841_600) == "3 May 2019"
    assert iso_day(1_556_841_600) == "2019-05-03"
    assert host_of("https://atlas.example/town/x") == "atlas.example"
    assert urls.canonical("https://atlas.example/town/x") == "https://atlas.example/town/x"
