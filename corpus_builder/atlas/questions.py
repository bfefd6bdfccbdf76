"""Questions about the atlas with their answers and the pages that carry them.

Answers are words of the evidence page as it reads on the question's day. Questions are drawn block
by block, so a larger world asks all that a smaller one asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random

from corpus_builder.atlas import cast
from corpus_builder.atlas import question_frames as frames
from corpus_builder.atlas.cast import BLOCK
from corpus_builder.atlas.entities import DAY, Block, Entity
from corpus_builder.atlas.pages import day_in_words, iso_day
from corpus_builder.atlas.toy import CAPTURED, toy_pages
from corpus_builder.atlas.world import Atlas
from world_core import urls
from world_core.types import Instant

A_BLOCK = 5
"""Questions of each capability that a complete block is asked at most."""
_MARGIN = 10 * DAY
_NAMESAKES = (cast.FIRST_NAMESAKE, cast.SECOND_NAMESAKE)


class Capability(StrEnum):
    """Which of the five abilities a question exercises."""

    LOOKUP = "lookup"
    """Find the one page that states a single fact, and read it there."""
    TWO_HOP = "two_hop"
    """Follow a relation from one page to a second one that holds the answer."""
    COMPARISON = "comparison"
    """Gather the same fact from several pages and say which is first, longest or oldest."""
    AS_OF = "as_of"
    """Give what held on a stated day, not what holds now."""
    DISAMBIGUATION = "disambiguation"
    """Reach the right page past a like-named one, or one in another language."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A page that carries an answer; ``captured`` is when the version that does was first seen."""

    url: str
    captured: Instant

    def as_dict(self) -> dict[str, str]:
        """Return the address, the page id and the day of the version."""
        page_id = urls.page_id(urls.canonical(self.url))
        return {"url": self.url, "page_id": page_id, "captured": iso_day(self.captured)}


@dataclass(frozen=True, slots=True)
class Question:
    """A training task.

    ``as_of`` is the day on which the world must stand for the answer to hold, as ``2021-03-01``;
    None means the world clock. ``mask`` lists addresses that must be hidden from the agent.
    """

    id: str
    question: str
    answers: tuple[str, ...]
    capability: Capability
    evidence: tuple[Evidence, ...]
    mask: tuple[str, ...] = ()
    as_of: str | None = None

    def as_dict(self) -> dict[str, object]:
        """Return the question as a line of a question file; ``as_of`` only where it is set."""
        row: dict[str, object] = {
            "id": self.id,
            "question": self.question,
            "answers": list(self.answers),
            "capability": str(self.capability),
            "evidence": [page.as_dict() for page in self.evidence],
            "mask": list(self.mask),
        }
        if self.as_of is not None:
            row["as_of"] = self.as_of
        return row


@dataclass(frozen=True, slots=True)
class _Draft:
    """A question before it has a name: the pages it rests on, and the day."""

    question: str
    answer: str
    pages: tuple[Entity, ...]
    version: int = -1
    day: Instant | None = None


def atlas_questions(world: Atlas, size: int) -> Iterator[Question]:
    """Yield the questions whose evidence lies among the first ``size`` pages."""
    for number in range(-(-size // BLOCK)):
        block = world.block(number)
        for capability, drafts in _by_capability(world, block).items():
            draw = block.stream("questions", capability)
            chosen = draw.sample(drafts, min(A_BLOCK, len(drafts)))
            for place, draft in enumerate(chosen):
                if all(_position(page) < size for page in draft.pages):
                    name = f"atlas-{world.seed}-{number:05d}-{capability}-{place}"
                    yield _question(name, capability, draft)


def toy_questions(seed: int) -> Iterator[Question]:
    """Yield one question for every page of the toy world."""
    for page in toy_pages(seed):
        yield Question(
            id=f"toy-{seed}-{page.number:03d}",
            question=page.question,
            answers=(page.value,),
            capability=Capability.LOOKUP,
            evidence=(Evidence(page.url, CAPTURED),),
        )


def _question(name: str, capability: Capability, draft: _Draft) -> Question:
    return Question(
        id=name,
        question=draft.question,
        answers=(draft.answer,),
        capability=capability,
        evidence=tuple(
            Evidence(page.identity.url, page.states[draft.version].captured[0])
            for page in draft.pages
        ),
        as_of=None if draft.day is None else iso_day(draft.day),
    )


def _position(page: Entity) -> int:
    return page.identity.block * BLOCK + page.identity.slot


def _by_capability(world: Atlas, block: Block) -> dict[Capability, list[_Draft]]:
    return {
        Capability.LOOKUP: list(_lookups(block)),
        Capability.TWO_HOP: list(_two_hops(world, block)),
        Capability.COMPARISON: list(_comparisons(world, block)),
        Capability.AS_OF: list(_as_of(block)),
        Capability.DISAMBIGUATION: [*_namesakes(block), *_like_named(block), *_choirs(block)],
    }


def _named(block: Block) -> Iterator[Entity]:
    """Yield the entities that their name alone tells from all others."""
    return (page for page in block.entities if page.identity.slot not in _NAMESAKES)


def _lookups(block: Block) -> Iterator[_Draft]:
    for page in _named(block):
        for (kind, fact), frame in frames.LOOKUP.items():
            if kind is page.identity.kind:
                yield _Draft(frame.format(name=page.identity.name), page.facts[fact], (page,))
    for slot, frame in zip(cast.NEWS, frames.NEWS_LOOKUP, strict=True):
        story = block.entities[slot]
        copies = (block.entities[cast.SYNDICATED],) if slot == cast.NEWS[-1] else ()
        question = frame.format(subject=story.facts["subject"])
        yield _Draft(question, story.facts["cost"], (story, *copies))


def _two_hops(world: Atlas, block: Block) -> Iterator[_Draft]:
    for page in _named(block):
        for (kind, relation, fact), frame in frames.TWO_HOP.items():
            if kind is page.identity.kind:
                target = world.entity(page.targets[relation])
                question = frame.format(name=page.identity.name)
                yield _Draft(question, target.facts[fact], (page, target))


def _comparisons(world: Atlas, block: Block) -> Iterator[_Draft]:
    draw = block.stream("comparison")
    towns = [block.entities[slot] for slot in cast.TOWNS]
    oldest = _winner(towns, "founded", greatest=False)
    if oldest is not None:
        province = block.entities[0]
        question = frames.OLDEST_TOWN.format(name=province.identity.name)
        yield _Draft(question, oldest.identity.name, (*towns, province))
    for (kind, fact), (frame, greatest) in frames.COMPARISON.items():
        for page in block.entities:
            if page.identity.kind is not kind:
                continue
            other = _rival(world, page, draw)
            winner = _winner((page, other), fact, greatest=greatest)
            if winner is not None:
                question = frame.format(first=page.identity.name, second=other.identity.name)
                yield _Draft(question, winner.identity.name, (page, other))


def _rival(world: Atlas, page: Entity, draw: Random) -> Entity:
    """Return another page of the kind, from this block or an earlier one."""
    number = draw.randrange(page.identity.block + 1)
    rivals = [
        other
        for other in world.block(number).entities
        if other.identity.kind is page.identity.kind and other.identity != page.identity
    ]
    return draw.choice(rivals)


def _winner(pages: Sequence[Entity], fact: str, *, greatest: bool) -> Entity | None:
    """Return the page with the greatest (or least) number, None if two share it."""
    ranked = sorted(pages, key=lambda page: int(page.facts[fact]), reverse=greatest)
    return None if ranked[0].facts[fact] == ranked[1].facts[fact] else ranked[0]


def _as_of(block: Block) -> Iterator[_Draft]:
    draw = block.stream("as-of")
    for page in block.entities:
        for (kind, fact), frame in frames.AS_OF.items():
            if kind is not page.identity.kind or len(page.states) < 2:
                continue
            # The last version is left out: it would be answered by what holds now.
            version = draw.randrange(len(page.states) - 1)
            first, after = page.states[version].captured[0], page.states[version + 1].captured[0]
            day = first + _MARGIN + draw.randrange((after - first - 2 * _MARGIN) // DAY) * DAY
            question = frame.format(name=page.identity.name, day=day_in_words(day))
            yield _Draft(question, page.states[version].facts[fact], (page,), version, day)


def _namesakes(block: Block) -> Iterator[_Draft]:
    for slot in _NAMESAKES:
        page = block.entities[slot]
        for fact, frame in frames.NAMESAKE.items():
            question = frame.format(sort=page.identity.sort, name=page.identity.name)
            yield _Draft(question, page.facts[fact], (page,))


def _like_named(block: Block) -> Iterator[_Draft]:
    for first, second in ((cast.OLD_TOWN, cast.NEW_TOWN), cast.SHIPS):
        for slot, other in ((first, second), (second, first)):
            page = block.entities[slot]
            fact, frame = frames.LIKE_NAMED[page.identity.kind]
            question = frame.format(name=page.identity.name, other=block.identity(other).name)
            yield _Draft(question, page.facts[fact], (page,))


def _choirs(block: Block) -> Iterator[_Draft]:
    for slot in cast.CHOIRS:
        page = block.entities[slot]
        for fact, frame in frames.CHOIR.items():
            question = frame.format(town=page.facts["town"])
            yield _Draft(question, page.facts[fact], (page,))
