"""One consistent build of all indexes over one set of versions, opened for reading."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from world_core import manifest as manifests
from world_core.analysis import Analyzer
from world_core.encoders.base import Encoder
from world_core.encoders.loading import load as load_encoder
from world_core.errors import ForeignWorldError
from world_core.indexes.dense import DenseIndex
from world_core.indexes.lexical import LexicalIndex
from world_core.manifest import Manifest
from world_core.pages import PageStore
from world_core.passages import PassageFile
from world_core.types import Numbers
from world_core.views import Columns, View, at_clock


@dataclass(frozen=True, slots=True)
class Generation:
    """Everything a search needs, open and checked against each other.

    ``first_passage`` has shape (versions + 1,): version v owns the passages from
    ``first_passage[v]`` up to ``first_passage[v + 1]``. ``dense`` and ``encoder`` are both set or
    both ``None`` (a world without vectors).
    """

    folder: Path
    manifest: Manifest
    columns: Columns
    pages: PageStore
    passages: PassageFile
    analyzer: Analyzer
    lexical: LexicalIndex
    dense: DenseIndex | None
    encoder: Encoder | None
    first_passage: Numbers
    plain_view: View

    @classmethod
    def open(cls, folder: Path, *, verify: bool = True, threads: int = 1) -> Generation:
        """Open a published world.

        Args:
            folder: the world's folder.
            verify: check every file against its digest first; only a caller that has just done so
                may leave it out.
            threads: intra-operation threads of the encoder.

        Raises:
            BadWorldError: the folder is no world, damaged, newer, or its parts disagree.
            MissingPartError: the encoder or the index engine of this world is not installed.
        """
        manifest = manifests.read(folder)
        if verify:
            manifests.verify(folder, manifest)
        columns = Columns.open(folder)
        passages = PassageFile.open(folder / "passages.bin")
        analyzer = Analyzer(manifest.languages, weights=manifest.lexical.field_weights)
        _check_id(folder, "analyser", manifest.analyzer_id, analyzer.id)
        dense, encoder = _open_dense(folder, manifest, threads)
        lexical = _open_lexical(folder, manifest)
        first = np.searchsorted(
            columns.passage_version, np.arange(columns.version_count + 1), side="left"
        ).astype(np.int64)
        generation = cls(
            folder=folder,
            manifest=manifest,
            columns=columns,
            pages=PageStore.open(folder / "pages.sqlite"),
            passages=passages,
            analyzer=analyzer,
            lexical=lexical,
            dense=dense,
            encoder=encoder,
            first_passage=first,
            plain_view=at_clock(columns, manifest.clock),
        )
        _check_counts(generation)
        return generation

    def close(self) -> None:
        """Release files, memory and database connections."""
        self.lexical.close()
        if self.dense is not None:
            self.dense.close()
        self.passages.close()
        self.pages.close()


def _open_lexical(folder: Path, manifest: Manifest) -> LexicalIndex:
    engine = manifest.lexical.engine
    if engine == "lucene":
        from world_core.indexes.lucene import LuceneIndex

        return LuceneIndex.open(folder / "lexical", k1=manifest.lexical.k1, b=manifest.lexical.b)
    if engine == "tantivy":
        from world_core.indexes.tantivy import TantivyIndex

        return TantivyIndex.open(folder / "lexical")
    raise ForeignWorldError(
        f"{folder} was indexed by the lexical engine {engine!r}, which this program does not know.",
        hint="Known engines: lucene, tantivy.",
    )


def _open_dense(
    folder: Path, manifest: Manifest, threads: int
) -> tuple[DenseIndex | None, Encoder | None]:
    if manifest.dense is None or manifest.encoder is None:
        return None, None
    encoder = load_encoder(
        manifest.encoder.kind,
        manifest.encoder.arguments,
        threads=threads,
        expected_id=manifest.encoder_id,
    )
    return DenseIndex.open(folder / "dense"), encoder


def _check_id(folder: Path, part: str, wanted: str, found: str) -> None:
    if wanted != found:
        raise ForeignWorldError(
            f"{folder} was built with the {part} {wanted!r}, here is {found!r}.",
            hint="Install the version the world names, or build the world again.",
        )


def _check_counts(generation: Generation) -> None:
    columns = generation.columns
    units = (
        columns.version_count
        if generation.manifest.lexical.unit == "version"
        else columns.passage_count
    )
    pairs = [
        ("passages.bin", generation.passages.count, columns.passage_count),
        ("lexical", generation.lexical.count, units),
    ]
    if generation.dense is not None and generation.encoder is not None:
        pairs.append(("dense", generation.dense.dim, generation.encoder.dim))
    for name, found, wanted in pairs:
        if found != wanted:
            raise ForeignWorldError(
                f"{generation.folder}/{name} belongs to another world: {found} where the other "
                f"files have {wanted}.",
                hint="Build the world again or unpack it anew.",
            )
