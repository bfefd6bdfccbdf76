"""The recipe: the typed form of the TOML file that wholly determines a world.

Content depends on the recipe only through ``Recipe.content_part``; names, paths, the engine that
holds the lexical index and the number of workers are not in it, and neither are digests of the
inputs, because what they contain is digested itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from world_core.analysis import DEFAULT_WEIGHTS
from world_core.types import Instant
from world_core.weighing import LONG_QUERY

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
class NearRecipe:
    """From which share of its shingles on a text counts as contained in another; 0: never."""

    least: float = 0.6


@dataclass(frozen=True, slots=True)
class PassagesRecipe:
    """Characters a passage aims at, and may have at most."""

    target: int = 1000
    limit: int = 1500


@dataclass(frozen=True, slots=True)
class ExpansionRecipe:
    """RM3: units and terms of feedback, and the share that the query's own terms keep."""

    docs: int = 10
    terms: int = 30
    weight: float = 0.7


@dataclass(frozen=True, slots=True)
class LexicalRecipe:
    """The lexical index: engine, what one unit is, how it scores and what it is asked.

    ``k1`` and ``b`` are the engine's own where ``None``. ``scoring`` is ``bm25``, or ``bm25f``,
    which scores title, body and anchor as one field. From ``long_query`` distinct terms on a
    query's common terms count less, never if 0.
    """

    engine: str = "lucene"
    unit: str = "version"
    k1: float | None = None
    b: float | None = None
    field_weights: Mapping[str, float] = field(default_factory=dict)
    scoring: str = "bm25"
    long_query: int = LONG_QUERY
    expansion: ExpansionRecipe | None = None

    @property
    def anchored(self) -> bool:
        """True when anchor texts are asked, so that the index must hold them."""
        return self.field_weights.get("anchor", DEFAULT_WEIGHTS["anchor"]) > 0.0

    def content_part(self) -> dict[str, object]:
        """Return what goes into the world id, without what a plain BM25 index does not do.

        ``None`` stands for the engine's own constants.
        """
        part: dict[str, object] = {
            "unit": self.unit,
            "k1": self.k1,
            "b": self.b,
            "field_weights": dict(self.field_weights),
        }
        if self.scoring != "bm25":
            part["scoring"] = self.scoring
        if self.long_query:
            part["long_query"] = self.long_query
        if self.expansion is not None:
            part["expansion"] = {"kind": "rm3", **asdict(self.expansion)}
        return part


@dataclass(frozen=True, slots=True)
class DenseRecipe:
    """The dense index: encoder, and which passages get a row.

    ``rows`` is ``all``, ``lead`` (the first passage of a version), ``version`` (one row for the
    first 500 tokens of a version, at the place of its first passage) or ``none``. ``include`` names
    a file with one address a line; only pages listed there get rows. ``include_keys`` are its
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

    @property
    def row_settings(self) -> list[object]:
        """What decides which passages get a row, and the text of it."""
        return [self.rows, self.titles, self.pages, self.include_digest]


@dataclass(frozen=True, slots=True)
class SparseRecipe:
    """Learned sparse weights for the passages that have a vector, of the texts they are made from.

    Encoder and arguments are those of the dense index where a recipe names none. ``bits`` of
    a weight, ``top`` weights kept a passage (0: all). ``weight`` is the share of the sparse score
    beside the lexical and the dense one together.
    """

    encoder: str
    arguments: Mapping[str, str | int] = field(default_factory=dict)
    bits: int = 8
    top: int = 0
    weight: float = 0.2


@dataclass(frozen=True, slots=True)
class RerankerRecipe:
    """The reranker of hybrid searches, and how many pages it orders anew."""

    kind: str
    arguments: Mapping[str, str | int] = field(default_factory=dict)
    top: int = 20


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that determines a world, and the names and paths it is made from."""

    name: str
    sources: tuple[SourceRecipe, ...]
    extract: ExtractRecipe = field(default_factory=ExtractRecipe)
    snapshot: SnapshotRecipe = field(default_factory=SnapshotRecipe)
    near: NearRecipe = field(default_factory=NearRecipe)
    passages: PassagesRecipe = field(default_factory=PassagesRecipe)
    lexical: LexicalRecipe = field(default_factory=LexicalRecipe)
    dense: DenseRecipe | None = None
    sparse: SparseRecipe | None = None
    reranker: RerankerRecipe | None = None
    fusion_weight: float = 0.5
    clock: Instant | None = None
    canaries: tuple[str, ...] = ()

    def content_part(self, *, sparse_id: str = "", reranker_id: str = "") -> dict[str, object]:
        """Return what goes into the world id, as plain values for canonical JSON.

        Args:
            sparse_id: id of the sparse encoder, for a recipe with one.
            reranker_id: id of the reranker, for a recipe with one.
        """
        dense: dict[str, object] | None = None
        if self.dense is not None:
            dense = {
                "rows": self.dense.rows,
                "titles": self.dense.titles,
                "pages": self.dense.pages,
                "include": self.dense.include_digest,
            }
        part: dict[str, object] = {
            "snapshot": {"exact_duplicates": self.snapshot.exact_duplicates},
            "passages": {"target": self.passages.target, "limit": self.passages.limit},
            "lexical": self.lexical.content_part(),
            "dense": dense,
            "fusion": {"weight": self.fusion_weight},
            "clock": self.clock,
        }
        # Only where they are given, so that they change no other world's id.
        if self.near.least:
            part["near"] = {"least": self.near.least}
        if self.sparse is not None:
            part["sparse"] = {
                "encoder": sparse_id,
                "bits": self.sparse.bits,
                "top": self.sparse.top,
                "weight": self.sparse.weight,
            }
        if self.reranker is not None:
            part["reranker"] = {"id": reranker_id, "top": self.reranker.top}
        return part
