"""What the encoders on ONNX Runtime share: a session, and batches of texts of equal length.

ONNX Runtime gives a text the same bits alone and in a batch, on one thread or several, as long as
nothing is padded and no operator looks at more than one text; so a batch holds texts of equal token
length only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from world_core.errors import EncoderError, MissingPartError

BATCH = 16
"""Texts in a batch at most."""

BATCH_TOKENS = 2048
"""Tokens in a batch at most, unless one text has more: attention takes memory by their square."""

OUTPUT = "last_hidden_state"


class OnnxSession:
    """A model that gives hidden states; safe to run from several threads at once."""

    def __init__(self, model: Path, threads: int, *, hint: str, as_written: bool = False) -> None:
        """Open a model.

        Args:
            model: the file.
            threads: threads of one run.
            hint: of the error, what to do about a file that cannot be loaded.
            as_written: run the operators that the file names, without fusing them.

        Raises:
            EncoderError: the file cannot be loaded.
        """
        import onnxruntime

        self._failures = _failures()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        if as_written:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        # Idle threads sleep instead of spinning: the cores are shared with the other index.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            self._session = onnxruntime.InferenceSession(
                str(model), options, providers=["CPUExecutionProvider"]
            )
        except self._failures as error:
            raise EncoderError(
                f"The model file {model} cannot be loaded: {error}.", hint=hint
            ) from error

    def pooled(self, tokens: Sequence[Sequence[int]], dim: int) -> NDArray[np.float64]:
        """Return the mean hidden state of each text, shape (n, dim).

        Raises:
            EncoderError: the model failed.
        """
        rows = np.empty((len(tokens), dim), dtype=np.float64)
        for numbers in batches([len(ids) for ids in tokens]):
            rows[numbers] = self._means(np.array([tokens[n] for n in numbers], dtype=np.int64))
        return rows

    def _means(self, ids: NDArray[np.int64]) -> NDArray[np.float64]:
        try:
            hidden = self._session.run([OUTPUT], self._inputs(ids))[0]
        except self._failures as error:
            raise EncoderError(
                f"ONNX Runtime failed on {ids.shape[0]} texts of {ids.shape[1]} tokens: {error}"
            ) from error
        return np.stack([states.mean(axis=0, dtype=np.float64) for states in hidden])

    def _inputs(self, ids: NDArray[np.int64]) -> Mapping[str, NDArray[np.int64]]:
        """Return what the model asks for besides the ids: nothing is masked, all is one segment."""
        values = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }
        return {wanted.name: values[wanted.name] for wanted in self._session.get_inputs()}


def need(packages: Sequence[str], hint: str) -> None:
    """Refuse to go on without these packages; nothing is imported.

    Raises:
        MissingPartError: naming the first that is not installed, with the command as the hint.
    """
    for package in packages:
        if find_spec(package) is None:
            raise MissingPartError(f"The package {package} is not installed.", hint=hint)


def batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield the numbers of the texts in batches of equal length, each text once."""
    by_length: dict[int, list[int]] = {}
    for number, length in enumerate(lengths):
        by_length.setdefault(length, []).append(number)
    for length, numbers in by_length.items():
        size = max(1, min(BATCH, BATCH_TOKENS // max(1, length)))
        for start in range(0, len(numbers), size):
            yield numbers[start : start + size]


def _failures() -> tuple[type[Exception], ...]:
    """Return the exceptions that loading and running a model may raise."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    names = (
        "Fail",
        "InvalidArgument",
        "InvalidGraph",
        "InvalidProtobuf",
        "NoModel",
        "NoSuchFile",
        "NotImplemented",
        "RuntimeException",
    )
    found: list[Any] = [getattr(state, name) for name in names]
    return tuple(found)
