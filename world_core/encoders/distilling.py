"""Makes a table of token vectors out of a transformer: what the model says of each token alone.

Every token of the vocabulary goes through the model between the marks of start and end; principal
components keep what differs between tokens; and a token counts by a / (a + p), where p is how
often it occurs (smooth inverse frequency of Arora, Liang and Ma, "A Simple but Tough-to-Beat
Baseline for Sentence Embeddings", 2017). The vocabulary stands in the order of frequency, so p is
taken from Zipf's law of its rank.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from world_core.encoders.onnx_minilm import OnnxMiniLm
from world_core.errors import BadInputError

_LOG = logging.getLogger(__name__)

VERSION = 1
"""To be raised with every change here that changes a table."""

COMMON = 1e-4
"""The a of the weights: tokens much more frequent than this count little."""

BLOCK = 4096  # tokens between two lines in the log


def distil(model: OnnxMiniLm, components: int) -> bytes:
    """Return the table as the content of an npy file, float16, shape (vocabulary, components).

    Takes about a minute of one core. The last bits may differ between families of processors.

    Raises:
        BadInputError: more components than the model has.
        EncoderError: the model failed.
    """
    if not 1 <= components <= model.dim:
        raise BadInputError(f"{components} components of {model.dim} cannot be kept.")
    states = _states(model)
    table = reduced(states, components) * inverse_frequencies(len(states))[:, None]
    content = io.BytesIO()
    np.save(content, table.astype(np.float16), allow_pickle=False)
    return content.getvalue()


def inverse_frequencies(count: int) -> NDArray[np.float64]:
    """Return the weight of each rank, from the most frequent token on, shape (count,)."""
    shares = 1.0 / np.arange(2, count + 2)
    shares /= shares.sum()
    weights: NDArray[np.float64] = COMMON / (COMMON + shares)
    return weights


def reduced(states: NDArray[np.float64], components: int) -> NDArray[np.float64]:
    """Return the states less their mean in their first principal components.

    Shape (n, components). The sign of a component, which is free, is that of its largest entry.
    """
    centred = states - states.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred)
    axes = vectors[:, np.argsort(-values, kind="stable")[:components]]
    largest = axes[np.abs(axes).argmax(axis=0), np.arange(components)]
    projected: NDArray[np.float64] = centred @ (axes * np.sign(largest))
    return projected


def _states(model: OnnxMiniLm) -> NDArray[np.float64]:
    tokenizer = model.tokenizer
    start, end = _marks(tokenizer.encode("").ids)
    count = tokenizer.get_vocab_size()
    parts = []
    for first in range(0, count, BLOCK):
        some = range(first, min(first + BLOCK, count))
        parts.append(model.token_states([[start, token, end] for token in some]))
        _LOG.info("Distilled %d of %d tokens.", some.stop, count)
    return np.concatenate(parts)


def _marks(empty: Sequence[int]) -> tuple[int, int]:
    """Return the marks of start and end, which are all that an empty text has."""
    start, end = empty
    return start, end
