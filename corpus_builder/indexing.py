"""The dense index of a world, from passages and an encoder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from corpus_builder.opening import opening
from corpus_builder.recipe import DenseRecipe
from corpus_builder.snapshot import read_pages
from corpus_builder.vector_cache import VectorCache, text_digest
from corpus_builder.workspace import kill_point
from world_core.encoders.base import Encoder
from world_core.indexes.dense import DenseSummary, write_dense
from world_core.passages import PassageFile
from world_core.types import Span, Vectors, as_numbers

BATCH = 32
"""Passages encoded and kept at once: what a kill can cost."""

OPENING_TOKENS = 500
"""Tokens of a version that its single row is made of, where rows are versions."""

Tell = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Row:
    """A passage that gets a vector: its number, and what the encoder reads."""

    passage: int
    text: str


def write_vectors(
    folder: Path,
    pages: Sequence[Path],
    passages: PassageFile,
    *,
    dense: DenseRecipe,
    encoder: Encoder,
    cache: VectorCache,
    tell: Tell,
) -> DenseSummary:
    """Encode what the cache lacks and write the dense index.

    Vectors are independent of what they are encoded with (``world_core.encoders``), so batches are
    made of texts of like length.

    Raises:
        EncoderError: the model failed.
        StageFailedError: the cache is damaged.
        MissingPartError: FAISS is not installed.
    """
    numbers: list[int] = []
    vectors: list[Vectors] = []
    for block in dense_rows(pages, passages, dense):
        found = _vectors_of([row.text for row in block], encoder, cache, tell)
        numbers += [row.passage for row in block]
        vectors.append(found)
    table = np.concatenate([np.empty((0, encoder.dim), np.float32), *vectors])
    return write_dense(folder, table, as_numbers(numbers), tier=dense.tier)


def dense_rows(
    pages: Sequence[Path], passages: PassageFile, dense: DenseRecipe
) -> Iterator[list[Row]]:
    """Yield the rows of each block of pages, in the order of the passages."""
    chosen = _chosen(pages, dense)
    version = 0
    passage = 0
    for block in pages:
        rows: list[Row] = []
        for page in read_pages([block]):
            wanted = chosen is None or page.page_id in chosen
            for record in page.versions:
                first = passage
                while passage < passages.count and passages.version(passage) == version:
                    passage += 1
                if wanted:
                    title = f"{record.title}\n" if dense.titles and record.title else ""
                    spans = [passages.span(number) for number in range(first, passage)]
                    texts = row_texts(record.text, spans, dense.rows)
                    rows += [Row(number, title + text) for number, text in enumerate(texts, first)]
                version += 1
        yield rows


def row_texts(text: str, spans: Sequence[Span], rows: str) -> list[str]:
    """Return what the rows of a version are made of: one text for each of its first passages.

    ``spans`` are its passages and ``rows`` is that of the recipe; a version without passages has no
    rows.
    """
    if rows == "version":
        return [text[: opening(text, OPENING_TOKENS)]] if spans else []
    return [text[span.start : span.end] for span in (spans[:1] if rows == "lead" else spans)]


def _chosen(pages: Sequence[Path], dense: DenseRecipe) -> frozenset[str] | None:
    """Return the ids of the pages that get rows, None for all."""
    if not dense.include_digest and not dense.pages:
        return None
    listed: list[str] = []
    others: list[str] = []
    for page in read_pages(pages):
        known = not dense.include_keys.isdisjoint((page.key, *page.aliases))
        (listed if known else others).append(page.page_id)
    if not dense.pages:
        return frozenset(listed)
    return frozenset([*listed, *others][: max(dense.pages, len(listed))])


def _vectors_of(texts: Sequence[str], encoder: Encoder, cache: VectorCache, tell: Tell) -> Vectors:
    """Return the vectors of the texts, shape (n, dim), from the cache and the encoder."""
    digests = [text_digest(text) for text in texts]
    known = cache.find(digests)
    missing = {
        digest: text for digest, text in zip(digests, texts, strict=True) if digest not in known
    }
    tell(len(texts) - len(missing))
    ordered = sorted(missing.items(), key=lambda item: (len(item[1]), item[0]))
    for first in range(0, len(ordered), BATCH):
        batch = ordered[first : first + BATCH]
        vectors = encoder.encode_passages([text for _, text in batch])
        cache.store([digest for digest, _ in batch], vectors)
        known |= dict(zip((digest for digest, _ in batch), vectors, strict=True))
        tell(len(batch))
        kill_point("vectors")
    empty = np.empty((0, encoder.dim), np.float32)
    return np.concatenate([empty, *(known[digest][None] for digest in digests)])
