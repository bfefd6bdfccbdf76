"""The dense side of models of the BGE family, through FlagEmbedding and torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

from world_core.encoders.arguments import Settings
from world_core.encoders.flag_model import KIND, FlagModel, FlagSettings
from world_core.encoders.hub import local_folder, model_files
from world_core.encoders.recipe_encoder import RecipeEncoder
from world_core.encoders.texts import unit_rows
from world_core.encoders.weights import Recipe
from world_core.types import Vectors


class FlagEncoder(RecipeEncoder):
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

    def _encode(self, texts: Sequence[str], *, is_query: bool) -> Vectors:
        rows = self.model.vectors(texts, is_query=is_query)
        return unit_rows(rows.reshape(len(texts), self._dim), KIND)
