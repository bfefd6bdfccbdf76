"""The models that a recipe names, loaded before a build begins: none is found missing late."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from corpus_builder.recipe import Recipe
from world_core.encoders.base import Encoder
from world_core.encoders.loading import load as load_encoder
from world_core.encoders.sparse import SparseEncoder
from world_core.encoders.sparse_loading import load_sparse
from world_core.rerankers.loading import load_reranker


@dataclass(frozen=True, slots=True)
class Models:
    """The encoders of a build, ``None`` where the recipe has none, and the id of its reranker.

    Nothing is reranked while building, so of the reranker only the id is kept.
    """

    encoder: Encoder | None = None
    sparse: SparseEncoder | None = None
    reranker_id: str = ""

    @classmethod
    def load(cls, recipe: Recipe, threads: int) -> Self:
        """Load what the recipe names.

        Raises:
            BadInputError: an argument of a model cannot be used.
            MissingPartError: a package or the weights are not there.
            EncoderError, RerankerError: a model cannot be loaded.
        """
        encoder: Encoder | None = None
        sparse: SparseEncoder | None = None
        reranker_id = ""
        if (dense := recipe.dense) is not None:
            encoder = load_encoder(dense.encoder, dense.arguments, threads=threads)
        if (weights := recipe.sparse) is not None:
            sparse = load_sparse(
                weights.encoder, weights.arguments, threads=threads, beside=encoder
            )
        if (chosen := recipe.reranker) is not None:
            reranker_id = load_reranker(chosen.kind, chosen.arguments, threads=threads).id
        return cls(encoder, sparse, reranker_id)

    @property
    def encoder_id(self) -> str:
        """Id of the encoder, "" without one."""
        return self.encoder.id if self.encoder is not None else ""

    @property
    def sparse_id(self) -> str:
        """Id of the sparse encoder, "" without one."""
        return self.sparse.id if self.sparse is not None else ""

    def content_part(self, recipe: Recipe) -> dict[str, object]:
        """Return what of the recipe goes into the world id, with the ids of optional models."""
        return recipe.content_part(sparse_id=self.sparse_id, reranker_id=self.reranker_id)
