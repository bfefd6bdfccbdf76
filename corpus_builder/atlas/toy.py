"""The toy world of the trainer's proof: pages with one fact each, over a closed vocabulary.

Names are the same in every world; which fact a name has and at which address it stands is drawn
anew from the seed, so nothing learnt in one world answers a question in another. The pages are
rows of plain text, not HTML: a tiny model reads them word for word, so extraction must not decide
what is on them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from corpus_builder.atlas.entities import DAY, FIRST_CRAWL
from corpus_builder.atlas.lexicon import stream, words
from corpus_builder.capture import Capture

TOY_PAGES = 200
CAPTURED = FIRST_CRAWL
"""When all toy pages were captured."""
HOST = "toy.example"
_FIRST = words("Vu Ka Mo Re Si Ta Lo Ni Pe Du Fa Go Hi Ju Be Zo Wa Ry Ce Qua")
_SECOND = words("te lin rak mo ven dis pal zu gor nek")
NAMES = tuple(first + second for first in _FIRST for second in _SECOND)
CITIES = tuple(first + "burg" for first in _FIRST) + tuple(first + "ville" for first in _FIRST)
BUILDERS = tuple(first + "sen" for first in _FIRST) + tuple(first + "oni" for first in _FIRST)
YEARS = tuple(str(year) for year in range(1860, 1900))
ADDRESS_WORDS = tuple(
    first.lower() + second + "x" for first in _FIRST for second in (*_SECOND, "lum", "bor", "sek")
)


class Relation(StrEnum):
    """What a toy page states of its name."""

    CITY = "city"
    BUILDER = "builder"
    YEAR = "year"


VALUES = {Relation.CITY: CITIES, Relation.BUILDER: BUILDERS, Relation.YEAR: YEARS}


@dataclass(frozen=True, slots=True)
class ToyPage:
    """One page of a toy world."""

    number: int
    name: str
    relation: Relation
    value: str
    url: str

    @property
    def text(self) -> str:
        """Return the page's text: one sentence of six words."""
        return f"{self.relation} of {self.name} : {self.value} ."

    @property
    def question(self) -> str:
        """Return the question that the page answers."""
        return f"{self.relation} of {self.name} ?"


def toy_pages(seed: int) -> tuple[ToyPage, ...]:
    """Return the 200 pages of a seed's world."""
    draw = stream(seed, "toy")
    addresses = draw.sample(ADDRESS_WORDS, TOY_PAGES)
    pages = []
    for number, name in enumerate(NAMES):
        relation = draw.choice(tuple(Relation))
        value = draw.choice(VALUES[relation])
        url = f"https://{HOST}/{addresses[number]}"
        pages.append(ToyPage(number, name, relation, value, url))
    return tuple(pages)


def toy_captures(seed: int, start: int, end: int) -> Iterator[Capture]:
    """Yield the captures of a slice of the pages, all of one day."""
    for page in toy_pages(seed)[start:end]:
        yield Capture(
            url=page.url,
            time=CAPTURED,
            origin="atlas/toy",
            offset=page.number,
            mime="text/plain",
            text=page.text,
            title=page.name,
            language="en",
            published=CAPTURED - DAY,
        )


def vocabulary() -> tuple[str, ...]:
    """Return every word that occurs in any toy world's titles, texts, questions and addresses."""
    return (*NAMES, *CITIES, *BUILDERS, *YEARS, *ADDRESS_WORDS, *Relation, "of", ":", ".", "?")
