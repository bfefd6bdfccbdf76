"""Facts: consistent, dated before the clock, changing where they should and only there."""

from __future__ import annotations

import pytest

from corpus_builder.atlas import cast
from corpus_builder.atlas.cast import BLOCK, Cast, Kind
from corpus_builder.atlas.entities import (
    CLOCK,
    FIRST_CRAWL,
    HOLDERS,
    VERSIONED,
    VERSIONED_BLOCKS,
    Block,
    Dating,
    Entity,
)
from corpus_builder.atlas.lexicon import MONTHS


@pytest.fixture(scope="module")
def blocks() -> list[Block]:
    made = Cast(1)
    return [Block(made, number) for number in range(VERSIONED_BLOCKS + 2)]


def _number(entity: Entity, fact: str) -> int:
    return int(entity.facts[fact].replace(",", ""))


def test_twenty_pages_of_each_early_block_have_three_to_five_versions(blocks: list[Block]) -> None:
    assert len(VERSIONED) == 20
    for block in blocks:
        counts = [len(entity.states) for entity in block.entities]
        several = [slot for slot, count in enumerate(counts) if 3 <= count <= 5]
        assert several == (sorted(VERSIONED) if block.number < VERSIONED_BLOCKS else [])
        assert all(count == 1 for slot, count in enumerate(counts) if slot not in several)


def test_captures_ascend_and_lie_before_the_clock(blocks: list[Block]) -> None:
    for block in blocks:
        for entity in block.entities:
            times = [time for state in entity.states for time in state.captured]
            assert times == sorted(set(times))
            assert times[0] >= FIRST_CRAWL
            assert times[-1] < CLOCK
            assert entity.published < times[0]


def test_pages_with_versions_and_stories_are_dated(blocks: list[Block]) -> None:
    for block in blocks:
        for entity in block.entities:
            if len(entity.states) > 1 or entity.identity.kind is Kind.NEWS:
                assert entity.dating is not Dating.NONE


def test_every_way_of_dating_occurs(blocks: list[Block]) -> None:
    assert {e.dating for block in blocks for e in block.entities} == set(Dating)


def test_neighbouring_versions_differ_and_keep_the_rest(blocks: list[Block]) -> None:
    may_change = {
        "holder",
        "population",
        "employees",
        "guests",
        "crew",
        "visitors",
        "opened",
        "home",
    }
    for block in blocks:
        for entity in block.entities:
            for before, after in zip(entity.states, entity.states[1:], strict=False):
                changed = {f for f in before.facts if before.facts[f] != after.facts[f]}
                assert changed
                assert changed <= may_change
                assert before.facts.keys() == after.facts.keys()


def test_office_holders_change_with_every_version(blocks: list[Block]) -> None:
    for block in blocks[:3]:
        for slot in HOLDERS:
            names = [state.facts["holder"] for state in block.entities[slot].states]
            assert len(set(names)) == len(names)


def test_a_wrong_year_is_corrected_once(blocks: list[Block]) -> None:
    for block in blocks[:VERSIONED_BLOCKS]:
        for slot in cast.BUILDINGS:
            years = [int(state.facts["opened"]) for state in block.entities[slot].states]
            assert years[0] < years[1]
            assert len(set(years[1:])) == 1


def test_targets_are_named_as_their_pages_are(blocks: list[Block]) -> None:
    for block in blocks:
        for entity in block.entities:
            for state in entity.states:
                for relation, target in state.targets.items():
                    assert state.facts[relation] == target.name
                    assert target.block <= block.number
                    assert target != entity.identity


def test_lives_and_works_follow_each_other(blocks: list[Block]) -> None:
    for block in blocks:
        by_url = {entity.identity.url: entity for entity in block.entities}

        def of(entity: Entity, relation: str, known: dict[str, Entity] = by_url) -> Entity:
            return known[entity.targets[relation].url]

        for entity in block.entities:
            match entity.identity.kind:
                case Kind.PERSON:
                    assert entity.facts["birthday"].endswith(entity.facts["born"])
                    assert entity.facts["birthday"].split()[1] in MONTHS
                case Kind.COMPANY:
                    born = _number(of(entity, "founder"), "born")
                    assert 24 <= _number(entity, "founded") - born <= 40
                case Kind.BUILDING:
                    born = _number(of(entity, "architect"), "born")
                    assert 27 <= _number(entity, "opened") - born <= 45
                case Kind.FINDING:
                    discoverer, place = of(entity, "discoverer"), of(entity, "place")
                    assert _number(place, "opened") < _number(entity, "year")
                    assert _number(entity, "year") < _number(discoverer, "died")
                case Kind.BOOK:
                    assert _number(entity, "year") - _number(of(entity, "author"), "born") >= 30


def test_a_syndicated_story_repeats_the_facts_a_day_later(blocks: list[Block]) -> None:
    for block in blocks:
        original, copy = block.entities[cast.NEWS[-1]], block.entities[cast.SYNDICATED]
        assert copy.facts == original.facts
        assert copy.published == original.published + 86_400


def test_facts_hold_no_markup(blocks: list[Block]) -> None:
    for block in blocks:
        for entity in block.entities:
            for state in entity.states:
                assert not any(set(text) & set('<>&"') for text in state.facts.values())


def test_a_block_does_not_depend_on_others_being_made(blocks: list[Block]) -> None:
    alone = Block(Cast(1), 7)
    assert alone.entities == blocks[7].entities
    assert len(alone.entities) == BLOCK


def test_another_seed_has_other_facts() -> None:
    ours, theirs = Block(Cast(1), 0).entities, Block(Cast(2), 0).entities
    equal = [a for a, b in zip(ours, theirs, strict=True) if a.facts == b.facts]
    assert equal == []
