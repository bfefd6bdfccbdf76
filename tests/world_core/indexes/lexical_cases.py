"""The two lexical engines and the units and queries their tests share."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from world_core.errors import MissingPartError
from world_core.indexes import jar
from world_core.indexes.lexical import LexicalIndex, LexicalWriter
from world_core.indexes.lucene import LuceneIndex, LuceneWriter
from world_core.indexes.tantivy import TantivyIndex, TantivyWriter
from world_core.types import LexicalField, LexicalQuery

Unit = Mapping[str, Sequence[str]]

FIELDS = ("title", "body", "stem_en")


@dataclass(frozen=True)
class Engine:
    """One engine: how to open an index of it and how to write one."""

    name: str
    open: Callable[[Path], LexicalIndex]
    writer: Callable[[Path, Sequence[str]], LexicalWriter]

    def build(self, folder: Path, units: Sequence[Unit], fields: Sequence[str] = FIELDS) -> Path:
        """Write an index of the units and return its folder."""
        with self.writer(folder, fields) as writer:
            for unit in units:
                writer.add(unit)
        return folder

    def index(
        self, folder: Path, units: Sequence[Unit], fields: Sequence[str] = FIELDS
    ) -> LexicalIndex:
        """Write an index of the units and open it."""
        return self.open(self.build(folder, units, fields))


ENGINES = {
    "lucene": Engine("lucene", LuceneIndex.open, LuceneWriter),
    "tantivy": Engine("tantivy", TantivyIndex.open, TantivyWriter),
}

PARAMETERS = [pytest.param("tantivy"), pytest.param("lucene", marks=pytest.mark.java)]


def engine(name: str) -> Engine:
    """Return the engine; the test is skipped where a part of it is not installed."""
    if name == "lucene":
        need_java()
    return ENGINES[name]


def need_java() -> None:
    """Skip the test where Java, JPype or the jar is not installed."""
    try:
        jar.check_bridge()
        jar.java_library()
        jar.find()
    except MissingPartError as error:
        pytest.skip(str(error))


def query(**fields: list[str] | tuple[float, list[str]]) -> LexicalQuery:
    """Return a query: field = terms, or field = (weight, terms)."""
    parts = []
    for name, value in fields.items():
        weight, terms = value if isinstance(value, tuple) else (1.0, value)
        parts.append(LexicalField(name, weight, tuple(terms)))
    return LexicalQuery(tuple(parts))


def vocabulary(size: int) -> list[str]:
    """Return distinct terms."""
    return [f"w{number}" for number in range(size)]


def random_units(seed: int, count: int, words: int = 400) -> list[dict[str, list[str]]]:
    """Return units whose terms are Zipf-distributed; some have empty or absent fields."""
    source = random.Random(seed)
    terms = vocabulary(words)
    weights = [1 / (rank + 1) for rank in range(words)]
    units = []
    for _ in range(count):
        unit = {
            "title": source.choices(terms, weights, k=source.randint(0, 8)),
            "body": source.choices(terms, weights, k=source.randint(0, 120)),
        }
        if source.random() < 0.5:
            unit["stem_en"] = [term[:3] for term in unit["body"]]
        units.append(unit)
    return units


def random_query(source: random.Random, words: int = 400) -> LexicalQuery:
    """Return a query of 1 to 8 terms in three fields with random weights, repeats included."""
    terms = source.choices(
        vocabulary(words), [1 / (rank + 1) for rank in range(words)], k=source.randint(1, 8)
    )
    return LexicalQuery(
        (
            LexicalField("title", source.choice([0.0, 0.5, 2.3]), tuple(terms)),
            LexicalField("body", source.choice([0.7, 1.0, 1.1]), tuple(terms)),
            LexicalField("stem_en", source.choice([0.0, 0.4]), tuple(term[:3] for term in terms)),
        )
    )
