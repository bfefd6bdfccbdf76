"""The sparse index of a world, over the texts that its dense index was made of.

A model that gives vectors and weights gives both in one pass: while the dense stage encodes, what
it has just encoded is weighed too (``Accompanied``), and this stage finds it in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import numpy as np

from corpus_builder.indexing import BATCH, Row
from corpus_builder.recipe import SparseRecipe
from corpus_builder.sparse_cache import SparseCache
from corpus_builder.vector_cache import text_digest
from corpus_builder.workspace import kill_point
from world_core.encoders.base import Encoder, Wrapping
from world_core.encoders.sparse import SparseEncoder, SparseVector
from world_core.indexes.sparse_writer import SparseSummary, write_sparse
from world_core.types import Vectors

Tell = Callable[[int], None]
NOTHING = SparseVector(np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.float32))


class Weighing:
    """Weighs texts with one sparse encoder; what it weighed once it takes from the cache."""

    def __init__(self, encoder: SparseEncoder, cache: SparseCache) -> None:
        self._encoder = encoder
        self._cache = cache

    def notice(self, texts: Sequence[str]) -> None:
        """Weigh texts that another side of the model has just encoded.

        Raises:
            EncoderError: the model failed.
            StageFailedError: the cache is damaged.
        """
        digests = [text_digest(text) for text in texts]
        known = self._cache.read(digests)
        missing = {
            digest: text for digest, text in zip(digests, texts, strict=True) if digest not in known
        }
        if missing:
            self._cache.store(missing, self._encoder.encode_passages(list(missing.values())))

    def weights(self, texts: Sequence[str], tell: Tell) -> list[SparseVector]:
        """Return the weighted tokens of the texts.

        Raises:
            EncoderError: the model failed.
            StageFailedError: the cache is damaged.
        """
        found: list[SparseVector] = []
        for first in range(0, len(texts), BATCH):
            some = texts[first : first + BATCH]
            self.notice(some)
            known = self._cache.find([text_digest(text) for text in some])
            found += [known[text_digest(text)] for text in some]
            tell(len(some))
            kill_point("weights")
        return found


class Accompanied(Wrapping[Encoder]):
    """An encoder with a sparse one beside it: what it encodes is weighed at once."""

    def __init__(self, encoder: Encoder, weighing: Weighing) -> None:
        super().__init__(encoder)
        self._weighing = weighing

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """Return the encoder's vectors of queries, shape (n, dim); they are not weighed."""
        return self._encoder.encode_queries(texts)

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        """Return the encoder's vectors, shape (n, dim), and keep the weights of the same texts."""
        vectors = self._encoder.encode_passages(texts)
        self._weighing.notice(texts)
        return vectors


@contextmanager
def weighed(encoder: Encoder, sparse: SparseEncoder | None, cache: Path) -> Iterator[Encoder]:
    """Give the encoder itself or, beside a sparse one, accompanied by it.

    Args:
        encoder: the dense one.
        sparse: the one beside it, if there is any.
        cache: folder of the caches.
    """
    if sparse is None:
        yield encoder
        return
    with SparseCache(cache, sparse.id) as kept:
        yield Accompanied(encoder, Weighing(sparse, kept))


def sparse_stage(
    folder: Path,
    blocks: Iterable[Sequence[Row]],
    passages: int,
    recipe: SparseRecipe,
    encoder: SparseEncoder,
    *,
    cache: Path,
    tell: Tell,
) -> dict[str, object]:
    """Write ``sparse/`` into a stage's folder and return what the manifest says of it.

    Arguments and errors are those of ``write_weights``; ``cache`` is the folder of the caches.
    """
    (folder / "sparse").mkdir()
    with SparseCache(cache, encoder.id) as kept:
        summary = write_weights(
            folder / "sparse",
            blocks,
            passages,
            Weighing(encoder, kept),
            bits=recipe.bits,
            top=recipe.top,
            tell=tell,
        )
    return asdict(summary)


def write_weights(
    folder: Path,
    blocks: Iterable[Sequence[Row]],
    passages: int,
    weighing: Weighing,
    *,
    bits: int,
    top: int,
    tell: Tell,
) -> SparseSummary:
    """Weigh what the cache lacks and write the sparse index.

    Args:
        folder: an existing folder for the files.
        blocks: passages that get weights, ascending, with the text that is weighed.
        passages: number of passages of the world; those without a row get no weights.
        weighing: gives the weights.
        bits: of a weight.
        top: weights kept a passage, 0 for all.
        tell: told the number of passages done.

    Raises:
        EncoderError: the model failed.
        StageFailedError: the cache is damaged.
    """

    def every() -> Iterator[SparseVector]:
        following = 0
        for block in blocks:
            vectors = weighing.weights([row.text for row in block], tell)
            for row, vector in zip(block, vectors, strict=True):
                yield from [NOTHING] * (row.passage - following)
                yield vector
                following = row.passage + 1
        yield from [NOTHING] * (passages - following)

    return write_sparse(folder, every(), bits=bits, top=top)
