"""Questions: five capabilities, answers that stand on their evidence, nothing lost by growing."""

from __future__ import annotations

import json
from collections import Counter, defaultdict

import pytest

from corpus_builder.atlas import cast
from corpus_builder.atlas.cast import BLOCK
from corpus_builder.atlas.entities import CLOCK, VERSIONED_BLOCKS
from corpus_builder.atlas.pages import iso_day
from corpus_builder.atlas.questions import (
    A_BLOCK,
    Capability,
    Question,
    atlas_questions,
    toy_questions,
)
from corpus_builder.atlas.toy import toy_pages
from corpus_builder.atlas.world import Atlas
from corpus_builder.capture import Draft
from corpus_builder.extract import extract
from corpus_builder.sources.atlas import AtlasSource
from tests.corpus_builder.atlas.helpers import crawl, plain
from world_core import urls
from world_core.types import Instant


@pytest.fixture(scope="module")
def asked() -> list[Question]:
    return list(atlas_questions(Atlas(1), 500))


@pytest.fixture(scope="module")
def texts() -> dict[tuple[str, Instant], str]:
    """The stripped text of every content capture of a world of 500 pages."""
    return {
        (capture.url, capture.time): plain(capture.body or b"")
        for capture in crawl(AtlasSource(500))
        if capture.status == 200
    }


def test_about_three_hundred_questions_for_five_hundred_pages(asked: list[Question]) -> None:
    counts = Counter(question.capability for question in asked)
    assert len(asked) == 300
    assert set(counts) == set(Capability)
    assert counts[Capability.AS_OF] == A_BLOCK * VERSIONED_BLOCKS
    assert min(counts.values()) >= 50


def test_ids_and_questions_are_unique(asked: list[Question]) -> None:
    assert len({question.id for question in asked}) == len(asked)
    assert len({question.question for question in asked}) == len(asked)


def test_every_answer_stands_on_its_evidence(
    asked: list[Question], texts: dict[tuple[str, Instant], str]
) -> None:
    for question in asked:
        pages = [texts[page.url, page.captured] for page in question.evidence]
        for answer in question.answers:
            assert any(answer in page for page in pages), question


def test_no_answer_stands_in_its_question_unless_it_is_a_choice(asked: list[Question]) -> None:
    for question in asked:
        named = question.answers[0] in question.question
        if question.capability is Capability.COMPARISON:
            continue
        assert not named, question


def test_an_answer_survives_real_extraction() -> None:
    found: defaultdict[tuple[str, Instant], str] = defaultdict(str)
    for capture in crawl(AtlasSource(80, preset="atlas-demo")):
        draft = extract(capture)
        assert isinstance(draft, Draft)
        found[draft.url, draft.time] = draft.text
    asked = list(AtlasSource(80, preset="atlas-demo").questions())
    assert len(asked) == 50
    for question in asked:
        pages = [found[page.url, page.captured] for page in question.evidence]
        assert any(question.answers[0] in page for page in pages), question


def test_as_of_questions_need_the_version_of_their_day(
    asked: list[Question], texts: dict[tuple[str, Instant], str]
) -> None:
    for question in (q for q in asked if q.capability is Capability.AS_OF):
        assert question.as_of is not None
        (page,) = question.evidence
        times = sorted(time for url, time in texts if url == page.url)
        seen = [time for time in times if iso_day(time) <= question.as_of]
        assert question.answers[0] in texts[page.url, seen[-1]]
        assert iso_day(page.captured) < question.as_of < iso_day(CLOCK)


def test_most_as_of_questions_have_another_answer_now(
    asked: list[Question], texts: dict[tuple[str, Instant], str]
) -> None:
    same = 0
    for question in (q for q in asked if q.capability is Capability.AS_OF):
        url = question.evidence[0].url
        newest = max(time for known, time in texts if known == url)
        same += question.answers[0] in texts[url, newest]
    # A writer may have come back to a town, or the town is named for another reason.
    assert same <= 5


def test_only_as_of_questions_have_a_day(asked: list[Question]) -> None:
    for question in asked:
        assert (question.as_of is not None) == (question.capability is Capability.AS_OF)


def test_two_hops_need_two_pages(
    asked: list[Question], texts: dict[tuple[str, Instant], str]
) -> None:
    for question in (q for q in asked if q.capability is Capability.TWO_HOP):
        first, second = question.evidence
        assert first.url != second.url
        assert question.answers[0] in texts[second.url, second.captured]


def test_the_winner_of_a_comparison_is_right() -> None:
    world = Atlas(1)
    asked = [q for q in atlas_questions(world, 400) if "river is longer" in q.question]
    assert asked
    entities = {e.identity.url: e for n in range(10) for e in world.block(n).entities}
    for question in asked:
        rivers = [entities[page.url] for page in question.evidence]
        longest = max(rivers, key=lambda river: int(river.facts["length"]))
        assert question.answers == (longest.identity.name,)


def test_disambiguation_meets_decoys_and_other_languages() -> None:
    asked = [
        q for q in atlas_questions(Atlas(1), 2000) if q.capability is Capability.DISAMBIGUATION
    ]
    hosts = [page.url.split("/")[3] for question in asked for page in question.evidence]
    assert {"de", "es", "fr", "zh", "person", "town", "ship"} == set(hosts)


def test_syndicated_stories_are_both_evidence() -> None:
    asked = [q for q in atlas_questions(Atlas(1), 2000) if "repairs" in q.question]
    assert asked
    for question in asked:
        assert [urls.host_of(page.url) for page in question.evidence] == [
            "news.atlas.example",
            "harbour-gazette.example",
        ]


def test_evidence_lies_in_the_world() -> None:
    source = AtlasSource(130)
    known = {capture.url for capture in crawl(source)}
    asked = list(source.questions())
    assert asked
    assert {page.url for question in asked for page in question.evidence} <= known


def test_a_larger_world_asks_all_that_a_smaller_one_asked(asked: list[Question]) -> None:
    assert set(atlas_questions(Atlas(1), 130)) <= set(asked)


def test_another_seed_asks_other_questions(asked: list[Question]) -> None:
    other = {question.question for question in atlas_questions(Atlas(2), 200)}
    assert not other & {question.question for question in asked}


def test_a_line_of_the_question_file(asked: list[Question]) -> None:
    question = next(q for q in asked if q.as_of)
    row = json.loads(json.dumps(question.as_dict()))
    assert list(row) == ["id", "question", "answers", "capability", "evidence", "mask", "as_of"]
    assert row["capability"] == "as_of"
    assert row["mask"] == []
    (page,) = row["evidence"]
    assert page["page_id"] == urls.page_id(urls.canonical(page["url"]))
    assert page["captured"] == iso_day(question.evidence[0].captured)
    assert "as_of" not in next(q for q in asked if not q.as_of).as_dict()


def test_namesakes_are_asked_by_profession_only() -> None:
    world = Atlas(1)
    names = {world.block(n).identity(cast.FIRST_NAMESAKE).name for n in range(400 // BLOCK)}
    for question in atlas_questions(world, 400):
        if question.capability is Capability.DISAMBIGUATION:
            continue
        assert not any(name in question.question for name in names)


def test_toy_questions_cover_every_page() -> None:
    asked = list(toy_questions(3))
    pages = toy_pages(3)
    assert [question.question for question in asked] == [page.question for page in pages]
    assert [question.answers for question in asked] == [(page.value,) for page in pages]
    assert [question.evidence[0].url for question in asked] == [page.url for page in pages]
    assert {question.capability for question in asked} == {Capability.LOOKUP}


def test_the_five_capabilities() -> None:
    assert {str(c) for c in Capability} == {
        "lookup",
        "two_hop",
        "comparison",
        "as_of",
        "disambiguation",
    }
