"""BGE-M3's learned sparse weights, from the same model and the same pass as its dense vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

from world_core.encoders.arguments import Settings
from world_core.encoders.flag import FlagEncoder
from world_core.encoders.flag_model import KIND, FlagModel, FlagSettings
from world_core.encoders.hub import head_files, local_folder, model_files
from world_core.encoders.sparse import SparseVector
from world_core.encoders.weights import Recipe
from world_core.errors import BadInputError


class FlagSparse:
    """The weight that the model gives each token of a text; its best where one occurs often.

    Tokens that mark beginning, end, padding and unknown words have none. The weights of a text
    that the dense side has just encoded are taken from that pass.
    """

    def __init__(self, model: FlagModel, files: Mapping[str, str]) -> None:
        model.weigh()
        self._model = model
        self._recipe = Recipe(
            kind=f"{KIND}-sparse",
            model=model.name,
            files=files,
            pooling="max",
            limit=f"{model.settings.tokens} tokens",
        )
        model.weights(["a"], is_query=False)

    @classmethod
    def load(cls, arguments: Settings, threads: int, beside: object = None) -> Self:
        """Open a model, or share that of the encoder beside it when its arguments are equal.

        The arguments are those of ``FlagSettings.of``; the family is m3.

        Raises:
            BadInputError: an argument is unknown, missing or out of range, or the model is none
                with sparse weights.
            MissingPartError: the package, the folder or a file is not there.
            EncoderError: the model cannot be loaded.
        """
        settings = FlagSettings.of(arguments)
        if settings.family != "m3":
            raise BadInputError(
                f"The model {settings.model} (family {settings.family}) has no sparse weights.",
                hint="Use BAAI/bge-m3 or a model made from it, with family = 'm3'.",
            )
        folder = local_folder(settings.model, download=settings.download)
        files = [*model_files(folder), *head_files(folder)]
        shared = beside.model if isinstance(beside, FlagEncoder) else None
        if shared is None or shared.settings != settings:
            shared = FlagModel(settings, threads)
        return cls(shared, {file.path.name: file.sha256 for file in files})

    @property
    def id(self) -> str:
        """Names model, precision, digests of model and heads, and the token limit."""
        return self._recipe.id

    @property
    def vocabulary(self) -> int:
        """Number of tokens of the model."""
        return self._model.vocabulary

    def files(self) -> Mapping[str, str]:
        """Return the sha256 of configuration, tokenizer, weights and heads by file name."""
        return self._recipe.files

    def encode_queries(self, texts: Sequence[str]) -> list[SparseVector]:
        """Return the weighted tokens of each query.

        Raises:
            EncoderError: the model failed.
        """
        return self._model.weights(texts, is_query=True)

    def encode_passages(self, texts: Sequence[str]) -> list[SparseVector]:
        """Return the weighted tokens of each passage.

        Raises:
            EncoderError: the model failed.
        """
        return self._model.weights(texts, is_query=False)
