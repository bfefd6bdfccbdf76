"""One consistent build of all indexes over one set of versions, opened for reading."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from world_core import manifest as manifests
from world_core.analysis import FOLDED, Analyzer
from world_core.encoders.base import Encoder, innermost
from world_core.encoders.loading import load as load_encoder
from world_core.encoders.sparse import SparseEncoder
from world_core.encoders.sparse_loading import load_sparse
from world_core.errors import ForeignWorldError
from world_core.holder_counts import HolderCounts
from world_core.indexes.dense import DenseIndex
from world_core.indexes.lexical import LexicalIndex
from world_core.indexes.sparse import SparseIndex
from world_core.manifest import Manifest
from world_core.manifest_options import RerankerSettings
from world_core.near import NearFile
from world_core.pages import PageStore
from world_core.passages import PassageFile
from world_core.rerankers.base import Reranker
from world_core.rerankers.loading import chosen, load_reranker
from world_core.types import Numbers
from world_core.views import Columns, View, at_clock


@dataclass(frozen=True, slots=True)
class Generation:
    """Everything a search needs, open and checked against each other.

    ``first_passage`` has shape (versions + 1,): version v owns the passages from
    ``first_passage[v]`` up to ``first_passage[v + 1]``. ``dense`` and ``encoder`` are both set or
    both ``None`` (a world without vectors), and so are ``sparse`` and ``sparse_encoder``.
    ``holder_counts`` are those of ``lexical``, remembered for everybody who weighs terms.
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
    sparse: SparseIndex | None = None
    sparse_encoder: SparseEncoder | None = None
    reranker: Reranker | None = None
    rerank_top: int = 0
    near: NearFile = field(default_factory=NearFile.unknown)
    holder_counts: HolderCounts = field(init=False)

    def __post_init__(self) -> None:
        """Begin the one memory of how many units hold a term."""
        object.__setattr__(self, "holder_counts", HolderCounts(self.lexical))

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        verify: bool = True,
        threads: int = 1,
        dense_device: str = "cpu",
        reranker: str = "",
        rerank_top: int = 0,
        encoder_of: Callable[[Manifest], Encoder] | None = None,
    ) -> Generation:
        """Open a published world.

        Args:
            folder: the world's folder.
            verify: check every file against its digest first; only a caller that has just done so
                may leave it out.
            threads: intra-operation threads of encoder and reranker.
            dense_device: where the dense index is searched, one of ``indexes.devices.DEVICES``.
            reranker: which one is served; "" for the world's own (``rerankers.loading.chosen``).
            rerank_top: pages it orders anew; 0 for the world's own number.
            encoder_of: makes the encoder of a world with vectors, when the caller keeps it: it is
                called after the files were verified, and what it gives is never closed here.

        Raises:
            BadWorldError: the folder is no world, damaged, newer, or its parts disagree.
            MissingPartError: an encoder, the reranker or the index engine is not installed.
            RerankerError: the reranker cannot be loaded, or is another than the world names.
        """
        manifest = manifests.read(folder)
        if verify:
            manifests.verify(folder, manifest)
        columns = Columns.open(folder)
        analyzer = Analyzer(manifest.languages, weights=manifest.lexical.field_weights)
        _check_id(folder, "analyser", manifest.analyzer_id, analyzer.id)
        make = encoder_of or partial(_loaded, threads=threads)
        dense, encoder = _open_dense(folder, manifest, dense_device, make)
        sparse, sparse_encoder = _open_sparse(folder, manifest, threads, encoder)
        ordering = chosen(manifest.reranker, reranker, rerank_top)
        model = _open_reranker(ordering, threads)
        generation = cls(
            folder=folder,
            manifest=manifest,
            columns=columns,
            pages=PageStore.open(folder / "pages.sqlite"),
            passages=PassageFile.open(folder / "passages.bin"),
            analyzer=analyzer,
            lexical=_open_lexical(folder, manifest),
            dense=dense,
            encoder=encoder,
            first_passage=_first_passages(columns),
            plain_view=at_clock(columns, manifest.clock),
            sparse=sparse,
            sparse_encoder=sparse_encoder,
            reranker=model,
            rerank_top=ordering.top if ordering is not None else 0,
            near=NearFile.open(folder),
        )
        _check_counts(generation)
        return generation

    def close(self) -> None:
        """Release files, memory and database connections."""
        self.lexical.close()
        if self.dense is not None:
            self.dense.close()
        if self.sparse is not None:
            self.sparse.close()
        self.passages.close()
        self.pages.close()
        self.plain_view.forget()


def _open_lexical(folder: Path, manifest: Manifest) -> LexicalIndex:
    engine = manifest.lexical.engine
    if engine == "lucene":
        from world_core.indexes.lucene import LuceneIndex

        settings = manifest.lexical
        combined = FOLDED if settings.scoring == "bm25f" else ()
        return LuceneIndex.open(folder / "lexical", settings.k1, settings.b, combined=combined)
    if engine == "tantivy":
        from world_core.indexes.tantivy import TantivyIndex

        return TantivyIndex.open(folder / "lexical")
    raise ForeignWorldError(
        f"{folder} was indexed by the lexical engine {engine!r}, which this program does not know.",
        hint="Known engines: lucene, tantivy.",
    )


def _first_passages(columns: Columns) -> Numbers:
    """Return where the passages of each version begin, and where the last ones end."""
    versions = np.arange(columns.version_count + 1)
    return np.searchsorted(columns.passage_version, versions, side="left").astype(np.int64)


def _loaded(manifest: Manifest, threads: int) -> Encoder:
    settings = manifest.encoder
    assert settings is not None, "asked for worlds with vectors only"  # noqa: S101 - for the type
    return load_encoder(
        settings.kind, settings.arguments, threads=threads, expected_id=manifest.encoder_id
    )


def _open_dense(
    folder: Path, manifest: Manifest, device: str, encoder_of: Callable[[Manifest], Encoder]
) -> tuple[DenseIndex | None, Encoder | None]:
    if manifest.dense is None or manifest.encoder is None:
        return None, None
    encoder = encoder_of(manifest)
    _check_id(folder, "encoder", manifest.encoder_id, encoder.id)
    kind = manifest.dense.kind
    return DenseIndex.open(folder / "dense", kind=kind, device=device), encoder


def _open_sparse(
    folder: Path, manifest: Manifest, threads: int, beside: Encoder | None
) -> tuple[SparseIndex | None, SparseEncoder | None]:
    settings = manifest.sparse
    if settings is None:
        return None, None
    encoder = load_sparse(
        settings.kind,
        settings.arguments,
        threads=threads,
        expected_id=settings.encoder_id,
        beside=innermost(beside),
    )
    return SparseIndex.open(folder / "sparse", bits=settings.bits), encoder


def _open_reranker(settings: RerankerSettings | None, threads: int) -> Reranker | None:
    if settings is None:
        return None
    return load_reranker(
        settings.kind,
        settings.arguments,
        threads=threads,
        expected_id=settings.reranker_id or None,
    )


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
    if generation.near.version_count:
        pairs.append(("near", generation.near.version_count, columns.version_count))
    if generation.sparse is not None:
        pairs.append(("sparse", generation.sparse.count, columns.passage_count))
    for name, found, wanted in pairs:
        if found != wanted:
            raise ForeignWorldError(
                f"{generation.folder}/{name} belongs to another world: {found} where the other "
                f"files have {wanted}.",
                hint="Build the world again or unpack it anew.",
            )
