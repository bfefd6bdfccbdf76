"""Sentence frames: every alternative states the same facts."""

from __future__ import annotations

import string

import pytest

from corpus_builder.atlas import cast, colour, pages
from corpus_builder.atlas.cast import BLOCK, Cast, Kind
from corpus_builder.atlas.entities import Block
from corpus_builder.atlas.frame import Alternatives, Frame
from corpus_builder.atlas.question_frames import AS_OF, COMPARISON, LOOKUP, NAMESAKE, TWO_HOP

POOLS = {
    "place": colour.PLACE,
    "life": colour.LIFE,
    "work": colour.WORK,
    "report": colour.REPORT,
}


def _slots(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def _sentences(frame: Frame) -> list[Alternatives]:
    return [*frame.lead, *(line for part in frame.sections for line in part.sentences)]


def _framed() -> list[tuple[str, Frame, set[str]]]:
    """Return every frame with the facts that its pages have."""
    made = Cast(1)
    found: dict[int, tuple[str, Frame, set[str]]] = {}
    for number in range(2):
        for entity in Block(made, number).entities:
            frame = pages.frame_of(entity.identity)
            if frame is not None:
                label = f"{entity.identity.kind}-{entity.identity.slot}-{number}"
                found[id(frame)] = (label, frame, set(entity.facts))
    return list(found.values())


FRAMED = _framed()
IDS = [label for label, _, _ in FRAMED]


@pytest.mark.parametrize(("label", "frame", "facts"), FRAMED, ids=IDS)
def test_frames_use_known_facts(label: str, frame: Frame, facts: set[str]) -> None:
    used = {slot for line in _sentences(frame) for text in line for slot in _slots(text)}
    assert used <= facts | {"name"}


@pytest.mark.parametrize(("label", "frame", "facts"), FRAMED, ids=IDS)
def test_whatever_is_drawn_every_fact_is_told(label: str, frame: Frame, facts: set[str]) -> None:
    mentioned = {slot for line in _sentences(frame) for text in line for slot in _slots(text)}
    mentioned |= {slot for _, slot in frame.rows}
    told = {slot for line in _sentences(frame) for slot in set.intersection(*map(_slots, line))}
    # A story's headline and a choir's title hold the name; all others have it in their text.
    assert mentioned - {"name"} <= told
    if not label.startswith(("news", "choir")):
        assert "name" in told


@pytest.mark.parametrize("pool", sorted(POOLS))
def test_fillers_state_nothing(pool: str) -> None:
    for sentence in POOLS[pool]:
        assert _slots(sentence) <= set(colour.FILLERS)
        assert not any(c.isdigit() for c in sentence)
        assert sentence.endswith(".")
    assert len(set(POOLS[pool])) == len(POOLS[pool])


def test_questions_ask_for_facts_that_pages_have() -> None:
    block = Block(Cast(1), 0)
    facts: dict[Kind, set[str]] = {}
    for slot in range(BLOCK):
        entity = block.entities[slot]
        known = facts.setdefault(entity.identity.kind, set(entity.facts))
        known &= set(entity.facts) | {"home", "died"}
    for kind, fact in [*LOOKUP, *COMPARISON, *AS_OF]:
        assert fact in facts[kind] | {"home"}
    for kind, relation, _ in TWO_HOP:
        assert relation in facts[kind]
    forebear = block.entities[cast.FIRST_NAMESAKE].facts
    assert set(NAMESAKE) <= set(forebear)
