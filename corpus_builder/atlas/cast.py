"""Who and what a block of the atlas holds: kinds, names and addresses, without any fact.

Pages come in blocks of ``BLOCK`` with the same cast each time. An identity is a pure function of
seed, block and slot, so a page may name one of another block without building that block.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from corpus_builder.atlas.lexicon import PROFESSIONS, Names, slug, stream


class Kind(StrEnum):
    """What a page is about."""

    PROVINCE = "province"
    TOWN = "town"
    RIVER = "river"
    PERSON = "person"
    COMPANY = "company"
    BUILDING = "building"
    FESTIVAL = "festival"
    SHIP = "ship"
    BOOK = "book"
    FINDING = "finding"
    NEWS = "news"
    CHOIR = "choir"
    STUB = "index"


_LETTERS = {
    "p": Kind.PROVINCE,
    "t": Kind.TOWN,
    "r": Kind.RIVER,
    "m": Kind.PERSON,
    "c": Kind.COMPANY,
    "b": Kind.BUILDING,
    "f": Kind.FESTIVAL,
    "s": Kind.SHIP,
    "w": Kind.BOOK,
    "d": Kind.FINDING,
    "n": Kind.NEWS,
    "q": Kind.CHOIR,
    "x": Kind.STUB,
}
CAST = tuple(_LETTERS[letter] for letter in "pttrmmcbfswdnqttrmmmmcccbbbffswwxdnnnqmm")
BLOCK = len(CAST)

CAPITAL, RIVER_TOWN, OLD_TOWN, NEW_TOWN = 1, 2, 14, 15
TOWNS = (CAPITAL, RIVER_TOWN, OLD_TOWN, NEW_TOWN)
RIVERS = (3, 16)
SHIPYARD, PRESS = 6, 21
COMPANIES = (SHIPYARD, PRESS, 22, 23)
OBSERVATORY = 7
BUILDINGS = (OBSERVATORY, 24, 25, 26)
FESTIVALS = (8, 27, 28)
SHIP, SECOND_SHIP = 9, 29
SHIPS = (SHIP, SECOND_SHIP)
BOOKS = (10, 30, 31)
STUB = 32
FINDINGS = (11, 33)
NEWS = (12, 34, 35)
SYNDICATED = 36
CHOIRS = (13, 37)
FIRST_NAMESAKE, SECOND_NAMESAKE = 38, 39
FOREBEARS = (4, 17, 18, FIRST_NAMESAKE, SECOND_NAMESAKE)
MODERNS = (5, 19, 20)
CHOIR_LANGUAGES = ("de", "es", "fr", "zh")

_PERSONS_A_BLOCK = 120
_FIGURES_FROM = BLOCK
FIGURES = _PERSONS_A_BLOCK - _FIGURES_FROM
"""Number of persons a block may name who have no page of their own."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A page's place in the world, its name and its address.

    ``sort`` narrows the kind: a person's profession, a building's or company's type, a choir
    page's language.
    """

    block: int
    slot: int
    kind: Kind
    name: str
    title: str
    sort: str
    url: str


class Cast:
    """Identities of one world, by block and slot."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._names = Names(seed)
        self._known: dict[tuple[int, int], Identity] = {}

    def identity(self, block: int, slot: int) -> Identity:
        """Return who stands at the slot; ``slot`` is in ``range(BLOCK)``."""
        place = (block, slot)
        if place not in self._known:
            self._known[place] = self._make(block, slot)
        return self._known[place]

    def figure(self, block: int, number: int) -> str:
        """Return the name of a person without a page; ``number`` is in ``range(FIGURES)``."""
        return self._names.name("person", block * _PERSONS_A_BLOCK + _FIGURES_FROM + number)[0]

    def _make(self, block: int, slot: int) -> Identity:
        kind = CAST[slot]
        match kind:
            case Kind.PERSON:
                return self._person(block, slot)
            case Kind.NEWS:
                return self._news(block, slot)
            case Kind.CHOIR:
                return self._choir(block, slot)
            case Kind.STUB:
                return self._stub(block, slot)
        name, sort = self._thing(block, slot, kind)
        return Identity(block, slot, kind, name, name, sort, _address(kind, slug(name)))

    def _thing(self, block: int, slot: int, kind: Kind) -> tuple[str, str]:
        if slot == NEW_TOWN:
            return f"New {self.identity(block, OLD_TOWN).name}", ""
        if slot == SECOND_SHIP:
            return f"{self.identity(block, SHIP).name} II", ""
        if slot in _SPECIAL:
            return self._names.name(_SPECIAL[slot], block)
        slots = _PLAIN[kind]
        return self._names.name(kind, block * len(slots) + slots.index(slot))

    def _person(self, block: int, slot: int) -> Identity:
        draw = stream(self.seed, "profession", block, min(slot, FIRST_NAMESAKE))
        first, second = draw.sample(PROFESSIONS, 2)
        if slot in (FIRST_NAMESAKE, SECOND_NAMESAKE):
            name = self._names.name("person", block * _PERSONS_A_BLOCK + FIRST_NAMESAKE)[0]
            sort = first if slot == FIRST_NAMESAKE else second
            title, segment = f"{name} ({sort})", f"{slug(name)}-{sort}"
        else:
            name = title = self._names.name("person", block * _PERSONS_A_BLOCK + slot)[0]
            sort, segment = first, slug(name)
        if slot in MODERNS:
            sort = "novelist"
        url = _address(Kind.PERSON, segment)
        return Identity(block, slot, Kind.PERSON, name, title, sort, url)

    def _news(self, block: int, slot: int) -> Identity:
        host = "harbour-gazette.example" if slot == SYNDICATED else "news.atlas.example"
        subject = self.identity(block, NEWS_SUBJECTS[slot])
        name = f"{subject.name}{_HEADLINES[slot]}"
        url = f"https://{host}/story/{slug(subject.name)}-{block * BLOCK + slot}"
        return Identity(block, slot, Kind.NEWS, name, name, "", url)

    def _stub(self, block: int, slot: int) -> Identity:
        province = self.identity(block, 0).name
        name = f"Index of {province}"
        return Identity(block, slot, Kind.STUB, name, name, "", _address(Kind.STUB, slug(province)))

    def _choir(self, block: int, slot: int) -> Identity:
        language = CHOIR_LANGUAGES[(block * 2 + CHOIRS.index(slot)) % len(CHOIR_LANGUAGES)]
        town = self.identity(block, CHOIR_TOWNS[slot])
        name = _CHOIR_NAMES[language].format(town=town.name)
        url = f"https://wiki.example/{language}/{_CHOIR_SLUGS[language]}-{slug(town.name)}"
        return Identity(block, slot, Kind.CHOIR, name, name, language, url)


_SPECIAL = {SHIPYARD: "shipyard", PRESS: "press", OBSERVATORY: "observatory"}
_PLAIN = {
    Kind.PROVINCE: (0,),
    Kind.TOWN: TOWNS[:3],
    Kind.RIVER: RIVERS,
    Kind.COMPANY: COMPANIES[2:],
    Kind.BUILDING: BUILDINGS[1:],
    Kind.FESTIVAL: FESTIVALS,
    Kind.SHIP: SHIPS[:1],
    Kind.BOOK: BOOKS,
    Kind.FINDING: FINDINGS,
}
NEWS_SUBJECTS = {12: CAPITAL, 34: OBSERVATORY, 35: 24, SYNDICATED: 24}
"""Whom the story of a slot is about."""
CHOIR_TOWNS = {13: CAPITAL, 37: RIVER_TOWN}
"""Whose choir the page of a slot is about."""
_HEADLINES = {
    12: " council votes for a new school",
    34: " opens a wing for visitors",
    35: " closes for repairs",
    SYNDICATED: " closes for repairs",
}
_CHOIR_NAMES = {
    "de": "Stadtchor {town}",
    "es": "Coro municipal de {town}",
    "fr": "Chœur municipal {town}",
    "zh": "{town}市合唱团",
}
_CHOIR_SLUGS = {"de": "stadtchor", "es": "coro", "fr": "choeur", "zh": "hechangtuan"}
_HOSTS = {
    Kind.PERSON: "wiki.example",
    Kind.BOOK: "wiki.example",
    Kind.SHIP: "museum.example",
    Kind.FINDING: "museum.example",
}


def _address(kind: Kind, segment: str) -> str:
    # Festivals live under addresses with a trailing slash, everything else without.
    tail = "/" if kind is Kind.FESTIVAL else ""
    return f"https://{_HOSTS.get(kind, 'atlas.example')}/{kind}/{segment}{tail}"
