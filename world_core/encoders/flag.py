"""The dense side of models of the BGE family, through FlagEmbedding and torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

from world_core.encoders.arguments import Settings
from world_core.encoders.flag_model import KIND, FlagModel, FlagSettings
from world_core.encoders.hub import local_folder, model_files
from world_core.encoders.texts import unit_rows
from world_core.encoders.weights import Recipe
from world_core.types import Vectors


class FlagEncoder:
    """A transformer on CPU or GPU.

    Attributes:
        model: the model in memory, which a sparse side may share.
    """

    def __init__(self, model: FlagModel, files: Mapping[str, str]) -> None:
        self.model = model
        self._recipe = Recipe(
            kind=KIND,
            model=model.name,
            files=files,
            pooling=model.family.pooling,
            limit=f"{model.settings.tokens} tokens",
            query_prefix=model.family.query_instruction,
        )
        # A first text finds out now, and not at the first query, whether the device can run it.
        self._dim = int(model.vectors(["a"], is_query=False).shape[1])

    @classmethod
    def load(cls, arguments: Settings, threads: int) -> Self:
        """Open a model; the arguments are those of ``FlagSettings.of``.

        Raises:
            BadInputError: an argument is unknown, missing or out of range.
            MissingPartError: the package, the folder or the weights are not there.
            EncoderError: the model cannot be loaded.
        """
        settings = FlagSettings.of(arguments)
        # Before the model is loaded: a folder without weights is told from one with bad weights.
        files = model_files(local_folder(settings.model, download=settings.download))
        model = FlagModel(settings, threads)
        return cls(model, {file.path.name: file.sha256 for file in files})

    @property
    def id(self) -> str:
        """Names model, precision, digests, pooling, token limit and query instruction."""
        return self._recipe.id

    @property
    def dim(self) -> int:
        """Number of components."""
        return self._dim

    def files(self) -> Mapping[str, str]:
        """Return the sha256 of configuration, tokenizer and weights by file name."""
        return self._recipe.files

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """Return (n, dim) float32, one row a query, length 1, with the model's instruction.

        Raises:
            EncoderError: the model failed.
        """
        return self._encode(texts, is_query=True)

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        """Return (n, dim) float32, one row a passage, length 1, without an instruction.

        Raises:
            EncoderError: the model failed.
        """
        return self._encode(texts, is_query=False)

    def _encode(self, texts: Sequence[str], *, is_query: bool) -> Vectors:
        rows = self.model.vectors(texts, is_query=is_query)
        return unit_rows(rows.reshape(len(texts), self._dim), KIND)
