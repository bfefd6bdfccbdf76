"""Facts of the atlas: what each page says of its subject, how that changed, and when it was seen.

A block knows every entity of its cast. Facts are drawn from a stream of their own each, so that
one more fact never changes another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property
from random import Random

from corpus_builder.atlas import cast
from corpus_builder.atlas.cast import BLOCK, CAST, Cast, Identity, Kind
from corpus_builder.atlas.lexicon import (
    HILLS,
    MATERIALS,
    MONTHS,
    PRODUCTS,
    SPECIALITIES,
    stream,
)
from world_core.types import Instant

DAY = 86_400
CLOCK: Instant = int(datetime(2026, 6, 1, tzinfo=UTC).timestamp())
"""The world clock of every atlas; all captures lie before it."""
FIRST_CRAWL: Instant = int(datetime(2015, 3, 1, tzinfo=UTC).timestamp())

VERSIONED_BLOCKS = 10
"""Only the first blocks hold pages with several versions, twenty in each."""
HOLDERS = (0, *cast.TOWNS, *cast.COMPANIES, *cast.FESTIVALS, *cast.SHIPS)
"""Slots whose page names who holds an office: governor, mayor, head, winner, captain."""
VERSIONED = frozenset({*HOLDERS, *cast.BUILDINGS, cast.MODERNS[0], cast.MODERNS[1]})
MOST_VERSIONS = 5


class Dating(StrEnum):
    """Where a page states its dates."""

    META = "meta"
    JSON_LD = "json-ld"
    BOTH = "both"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class State:
    """What a page says from one capture to the next that changed it.

    ``facts`` are texts as they stand on the page; ``targets`` are the pages that some of them name.
    """

    captured: tuple[Instant, ...]
    facts: dict[str, str]
    targets: dict[str, Identity]


@dataclass(frozen=True, slots=True)
class Entity:
    """A page's subject with everything the page says of it, version by version."""

    identity: Identity
    states: tuple[State, ...]
    published: Instant
    dating: Dating

    @property
    def facts(self) -> dict[str, str]:
        """Return what the newest version says."""
        return self.states[-1].facts

    @property
    def targets(self) -> dict[str, Identity]:
        """Return the pages that the newest version's facts name."""
        return self.states[-1].targets


@dataclass(slots=True)
class _Draft:
    """One entity while its facts are drawn."""

    draw: Random
    slot: int
    version: int
    versions: int
    facts: dict[str, str]
    targets: dict[str, Identity]

    def name(self, relation: str, target: Identity) -> None:
        """State a relation to another page."""
        self.facts[relation] = target.name
        self.targets[relation] = target


class Block:
    """The entities of one block, in slot order."""

    def __init__(self, cast_: Cast, number: int) -> None:
        self.number = number
        self._cast = cast_
        self._seed = cast_.seed
        self._makers: dict[Kind, Callable[[_Draft], None]] = {
            Kind.PROVINCE: self._province,
            Kind.TOWN: self._town,
            Kind.RIVER: self._river,
            Kind.PERSON: self._person,
            Kind.COMPANY: self._company,
            Kind.BUILDING: self._building,
            Kind.FESTIVAL: self._festival,
            Kind.SHIP: self._ship,
            Kind.BOOK: self._book,
            Kind.FINDING: self._finding,
            Kind.NEWS: self._news,
            Kind.CHOIR: self._choir,
            Kind.STUB: self._stub,
        }

    @cached_property
    def entities(self) -> tuple[Entity, ...]:
        """Return the block's entities."""
        return tuple(self._entity(slot) for slot in range(BLOCK))

    def identity(self, slot: int) -> Identity:
        """Return who stands at a slot of this block."""
        return self._cast.identity(self.number, slot)

    def stream(self, *purpose: object) -> Random:
        """Return the random stream of one purpose of this block."""
        return stream(self._seed, *purpose, self.number)

    def _entity(self, slot: int) -> Entity:
        # A syndicated story follows its original by a day.
        copied = slot == cast.SYNDICATED
        draw = self.stream("times", cast.NEWS[-1] if copied else slot)
        versioned = self.number < VERSIONED_BLOCKS and slot in VERSIONED
        versions = draw.choices((3, 4, 5), (70, 20, 10))[0] if versioned else 1
        times = _times(draw, versions, DAY * copied)
        states = []
        for version, captured in enumerate(times):
            draft = _Draft(self.stream("facts", slot), slot, version, versions, {}, {})
            self._makers[CAST[slot]](draft)
            if slot in HOLDERS:
                figure = HOLDERS.index(slot) * MOST_VERSIONS + version
                draft.facts["holder"] = self._cast.figure(self.number, figure)
            states.append(State(captured, draft.facts, draft.targets))
        always_dated = versioned or CAST[slot] is Kind.NEWS
        dating = draw.choices(tuple(Dating), (40, 20, 15, 0 if always_dated else 25))[0]
        published = times[0][0] - DAY * (1 if CAST[slot] is Kind.NEWS else draw.randrange(3, 60))
        return Entity(self.identity(slot), tuple(states), published, dating)

    def _neighbour(self, purpose: str, slots: tuple[int, ...], slot: int) -> Identity:
        """Return a page of the same kind of place, in four of ten cases of an earlier block."""
        draw = self.stream(purpose, slot)
        home = self.number == 0 or draw.random() < 0.6
        block = self.number if home else draw.randrange(self.number)
        return self._cast.identity(block, draw.choice([s for s in slots if s != slot]))

    def _born(self, slot: int) -> int:
        draw = self.stream("born", slot)
        return draw.randrange(1796, 1823) if slot in cast.FOREBEARS else draw.randrange(1940, 1986)

    def _architect(self, slot: int) -> int:
        return self.stream("architect", slot).choice(cast.FOREBEARS)

    def _opened(self, slot: int) -> int:
        return self._born(self._architect(slot)) + self.stream("opened", slot).randrange(27, 46)

    def _province(self, draft: _Draft) -> None:
        draw, facts = draft.draw, draft.facts
        facts["founded"] = str(draw.randrange(1580, 1640))
        facts["area"] = f"{draw.randrange(1200, 9800):,}"
        facts["population"] = _grown(draw, draft.version, 150_000, 900_000)
        draft.name("capital", self.identity(cast.CAPITAL))
        if self.number:
            draft.name("neighbour", self._cast.identity(draw.randrange(self.number), 0))
        else:
            facts["neighbour"] = "the open sea"

    def _town(self, draft: _Draft) -> None:
        draw, facts, slot = draft.draw, draft.facts, draft.slot
        facts["founded"] = str(draw.randrange(1650, 1761))
        founder = 76 + cast.TOWNS.index(slot)
        facts["founder"] = self._cast.figure(self.number, founder)
        facts["elevation"] = str(draw.randrange(4, 620))
        facts["speciality"] = draw.choice(SPECIALITIES)
        facts["population"] = _grown(draw, draft.version, 2_100, 88_000)
        draft.name("province", self.identity(0))
        draft.name("river", self.identity(cast.RIVERS[slot >= cast.OLD_TOWN]))
        draft.name("neighbour", self._neighbour("neighbour", cast.TOWNS, slot))

    def _river(self, draft: _Draft) -> None:
        draw, facts = draft.draw, draft.facts
        facts["length"] = str(draw.randrange(38, 412))
        facts["source"] = draw.choice(HILLS)
        facts["bridges"] = str(draw.randrange(3, 41))
        draft.name("province", self.identity(0))
        first = draft.slot == cast.RIVERS[0]
        draft.name("mouth", self.identity(cast.CAPITAL if first else cast.OLD_TOWN))
        draft.name("upstream", self.identity(cast.RIVER_TOWN if first else cast.NEW_TOWN))

    def _person(self, draft: _Draft) -> None:
        draw, facts, slot = draft.draw, draft.facts, draft.slot
        born = self._born(slot)
        facts["profession"] = self.identity(slot).sort
        facts["born"] = str(born)
        facts["birthday"] = f"{draw.randrange(1, 29)} {draw.choice(MONTHS)} {born}"
        draft.name("birthplace", self._neighbour("birthplace", cast.TOWNS, slot))
        # Drawn in every version, so that the draws after it stay the same.
        homes = draw.sample(cast.TOWNS, len(cast.TOWNS))
        if slot in cast.FOREBEARS:
            facts["died"] = str(born + draw.randrange(82, 95))
            draft.name("teacher", self._neighbour("teacher", cast.FOREBEARS, slot))
        else:
            facts["prize_year"] = str(born + draw.randrange(25, 30))
            draft.name("festival", self.identity(draw.choice(cast.FESTIVALS)))
            draft.name("home", self.identity(homes[draft.version % len(homes)]))

    def _company(self, draft: _Draft) -> None:
        draw, facts, slot = draft.draw, draft.facts, draft.slot
        founder = draw.choice(cast.FOREBEARS)
        facts["founded"] = str(self._born(founder) + draw.randrange(24, 41))
        special = {cast.SHIPYARD: "sailing ships", cast.PRESS: "novels and almanacs"}
        facts["product"] = special.get(slot, draw.choice(PRODUCTS))
        facts["employees"] = _grown(draw, draft.version, 40, 3_900)
        draft.name("founder", self.identity(founder))
        draft.name("seat", self.identity(draw.choice(cast.TOWNS)))

    def _building(self, draft: _Draft) -> None:
        draw, facts, slot = draft.draw, draft.facts, draft.slot
        opened, error = self._opened(slot), draw.randrange(2, 9)
        # The first version of a page with several holds a year that the next ones correct.
        wrong = draft.versions > 1 and draft.version == 0
        facts["opened"] = str(opened - error if wrong else opened)
        facts["height"] = str(draw.randrange(9, 89))
        facts["material"] = draw.choice(MATERIALS)
        facts["visitors"] = _grown(draw, draft.version, 3_000, 240_000)
        draft.name("architect", self.identity(self._architect(slot)))
        draft.name("town", self.identity(draw.choice(cast.TOWNS)))

    def _festival(self, draft: _Draft) -> None:
        draw, facts = draft.draw, draft.facts
        facts["first_year"] = str(draw.randrange(1861, 1949))
        facts["month"] = draw.choice(MONTHS)
        facts["prize"] = draw.choice(MATERIALS)
        facts["guests"] = _grown(draw, draft.version, 900, 64_000)
        draft.name("town", self.identity(draw.choice(cast.TOWNS)))

    def _ship(self, draft: _Draft) -> None:
        draw, facts, slot = draft.draw, draft.facts, draft.slot
        years = (1881, 1919) if slot == cast.SHIP else (1921, 1964)
        facts["launched"] = str(draw.randrange(*years))
        facts["length"] = str(draw.randrange(24, 118))
        facts["crew"] = _grown(draw, draft.version, 12, 90)
        draft.name("builder", self.identity(cast.SHIPYARD))
        draft.name("port", self.identity(draw.choice(cast.TOWNS)))

    def _book(self, draft: _Draft) -> None:
        draw, facts = draft.draw, draft.facts
        author = draw.choice(cast.MODERNS)
        facts["year"] = str(self._born(author) + draw.randrange(30, 44))
        facts["pages"] = str(draw.randrange(118, 640))
        draft.name("author", self.identity(author))
        draft.name("publisher", self.identity(cast.PRESS))
        draft.name("setting", self.identity(draw.choice(cast.TOWNS)))

    def _finding(self, draft: _Draft) -> None:
        draw, facts = draft.draw, draft.facts
        discoverer = draw.choice(cast.FOREBEARS)
        earliest = max(self._opened(cast.OBSERVATORY) + 2, self._born(discoverer) + 28)
        facts["type"] = self.identity(draft.slot).sort
        facts["year"] = str(earliest + draw.randrange(9))
        facts["pages"] = str(draw.randrange(14, 92))
        draft.name("discoverer", self.identity(discoverer))
        draft.name("place", self.identity(cast.OBSERVATORY))

    def _news(self, draft: _Draft) -> None:
        draw, facts, slot = draft.draw, draft.facts, draft.slot
        if slot == cast.SYNDICATED:
            # A syndicated story repeats the facts of the one it was taken from.
            draft.draw, draft.slot = self.stream("facts", cast.NEWS[-1]), cast.NEWS[-1]
            self._news(draft)
            return
        facts["cost"] = f"{draw.randrange(12, 990) * 1_000:,}"
        facts["months"] = str(draw.randrange(4, 31))
        facts["votes"] = str(draw.randrange(13, 29))
        number = 72 + cast.NEWS.index(slot)
        facts["speaker"] = self._cast.figure(self.number, number)
        draft.name("subject", self.identity(cast.NEWS_SUBJECTS[slot]))
        draft.name("province", self.identity(0))

    def _choir(self, draft: _Draft) -> None:
        draw, facts, slot = draft.draw, draft.facts, draft.slot
        facts["founded"] = str(draw.randrange(1862, 1931))
        facts["singers"] = str(draw.randrange(18, 96))
        facts["conductor"] = self._cast.figure(self.number, 70 + cast.CHOIRS.index(slot))
        draft.name("town", self.identity(cast.CHOIR_TOWNS[slot]))
        draft.name("festival", self.identity(draw.choice(cast.FESTIVALS)))

    def _stub(self, draft: _Draft) -> None:
        draft.name("province", self.identity(0))


def _grown(draw: Random, version: int, low: int, high: int) -> str:
    """Return a count that moves by a few per cent with every version, never back to itself."""
    count = draw.randrange(low, high)
    steps = [draw.uniform(0.02, 0.07) for _ in range(MOST_VERSIONS)]
    for step in steps[:version]:
        count += max(1, int(count * step))
    return f"{count:,}"


def _times(draw: Random, versions: int, delay: Instant) -> list[tuple[Instant, ...]]:
    """Return the capture times of each version, ascending."""
    if versions == 1:
        captures = draw.choices((1, 2, 3), (70, 20, 10))[0]
        time = FIRST_CRAWL + draw.randrange(3_200) * DAY + delay
        return [tuple(time + n * draw.randrange(300, 360) * DAY for n in range(captures))]
    time = FIRST_CRAWL + draw.randrange(1_300) * DAY + delay
    times = []
    for _ in range(versions):
        again = (time + draw.randrange(20, 90) * DAY,) if draw.random() < 0.15 else ()
        times.append((time, *again))
        time += draw.randrange(200, 600) * DAY
    return times
