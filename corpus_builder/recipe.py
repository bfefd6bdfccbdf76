"""The recipe: the typed form of the TOML file that wholly determines a world.

Content depends on the recipe only through ``Recipe.content_part``; names, paths, the engine that
holds the lexical index and the number of workers are not in it, and neither are digests of the
inputs, because what they contain is digested itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from world_core.types import Instant

READABLE = "a .warc, .arc, .wacz or .jsonl file (packed or not), an HTML file, or a folder of them"
"""What a build can be made from, for help and hints."""

Argument = str | int | float | bool


@dataclass(frozen=True, slots=True)
class SourceRecipe:
    """One input: its kind, where it lies, and the settings of that kind.

    ``path`` is "" for a kind that needs none. A relative path in a recipe file is meant relative to
    that file; it is resolved when the file is read, ``shown`` keeps what the file said.
    """

    kind: str
    path: str = ""
    shown: str = ""
    arguments: Mapping[str, Argument] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExtractRecipe:
    """``cpu_seconds`` is what one page may cost before it is given up and counted as lost.

    A page of fewer than ``least_words`` words is dropped as too short.
    """

    cpu_seconds: float = 2.0
    least_words: int = 1


@dataclass(frozen=True, slots=True)
class SnapshotRecipe:
    """What becomes of pages with equal version histories.

    ``exact_duplicates``: ``auto`` makes crawled ones aliases and keeps rows of a dump apart,
    ``alias`` makes all of them aliases, ``keep`` none.
    """

    exact_duplicates: str = "auto"


@dataclass(frozen=True, slots=True)
class PassagesRecipe:
    """Characters a passage aims at, and may have at most."""

    target: int = 1000
    limit: int = 1500


@dataclass(frozen=True, slots=True)
class LexicalRecipe:
    """The lexical index: engine, what one unit is, BM25 constants and weights by field."""

    engine: str = "lucene"
    unit: str = "version"
    k1: float = 0.9
    b: float = 0.4
    field_weights: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DenseRecipe:
    """The dense index: encoder, and which passages get a row.

    ``rows`` is ``all``, ``lead`` (the first passage of a version) or ``none``. ``include`` names a
    file with one address a line; only pages listed there get rows. ``include_keys`` are its
    canonical keys, ``include_digest`` their digest. ``pages`` above 0 is the number of pages with
    rows: the listed ones, then others in page id order, which is as good as drawn by lot.
    ``titles`` puts the title before a passage. ``tier`` is that of ``indexes.dense.write_dense``.
    """

    encoder: str
    arguments: Mapping[str, str | int] = field(default_factory=dict)
    rows: str = "all"
    titles: bool = True
    tier: str = "auto"
    pages: int = 0
    include: str = ""
    include_digest: str = ""
    include_keys: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that determines a world, and the names and paths it is made from."""

    name: str
    sources: tuple[SourceRecipe, ...]
    extract: ExtractRecipe = field(default_factory=ExtractRecipe)
    snapshot: SnapshotRecipe = field(default_factory=SnapshotRecipe)
    passages: PassagesRecipe = field(default_factory=PassagesRecipe)
    lexical: LexicalRecipe = field(default_factory=LexicalRecipe)
    dense: DenseRecipe | None = None
    fusion_weight: float = 0.5
    clock: Instant | None = None
    canaries: tuple[str, ...] = ()

    def content_part(self) -> dict[str, object]:
        """Return what goes into the world id, as plain values for canonical JSON."""
        dense: dict[str, object] | None = None
        if self.dense is not None:
            dense = {
                "rows": self.dense.rows,
                "titles": self.dense.titles,
                "pages": self.dense.pages,
                "include": self.dense.include_digest,
            }
        return {
            "snapshot": {"exact_duplicates": self.snapshot.exact_duplicates},
            "passages": {"target": self.passages.target, "limit": self.passages.limit},
            "lexical": {
                "unit": self.lexical.unit,
                "k1": self.lexical.k1,
                "b": self.lexical.b,
                "field_weights": dict(self.lexical.field_weights),
            },
            "dense": dense,
            "fusion": {"weight": self.fusion_weight},
            "clock": self.clock,
        }
