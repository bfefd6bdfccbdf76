from __future__ import annotations

from math import erf
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from tests.world_core.encoders.e5_files import (
    HEADS,
    HIDDEN,
    INNER,
    LAYERS,
    PIECES,
    PLACES,
    file_of,
    random_tensors,
)
from world_core.encoders.e5_graph import GELU_DEPTH, onnx_model
from world_core.encoders.e5_weights import E5Weights
from world_core.encoders.onnx_session import OnnxSession
from world_core.errors import EncoderError

Floats = NDArray[np.float64]
SEEDS = (1, 2, 3)
IDS = ([0, 4, 2], [0, 5, 6, 4, 4, 1, 5, 2], [3], [6, 6])


def normed(weights: E5Weights, name: str, values: Floats) -> Floats:
    centred = values - values.mean(axis=-1, keepdims=True)
    scale = np.sqrt(centred.var(axis=-1, keepdims=True) + weights.sizes.epsilon)
    found: Floats = centred / scale * weights.vector(f"{name}.w") + weights.vector(f"{name}.b")
    return found


def times(weights: E5Weights, name: str, values: Floats) -> Floats:
    matrix = weights.matrix(f"{name}.w", values.shape[-1]).weights().astype(np.float64)
    return values @ matrix.T + weights.vector(f"{name}.b")


def expected(weights: E5Weights, ids: list[int]) -> Floats:
    """The hidden states of one text, written out with numpy."""
    words = weights.matrix("emb.word", HIDDEN).weights()[ids].astype(np.float64)
    places = weights.vector("emb.pos").reshape(PLACES, HIDDEN)[: len(ids)]
    state = normed(weights, "emb.ln", words + places + weights.vector("emb.type")[:HIDDEN])
    for layer in (f"l{n}" for n in range(LAYERS)):
        q, k, v = (
            times(weights, f"{layer}.{part}", state).reshape(-1, HEADS, HIDDEN // HEADS)
            for part in "qkv"
        )
        logits = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(HIDDEN // HEADS)
        shares = np.exp(logits - logits.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        context = np.einsum("hqk,khd->qhd", shares, v).reshape(-1, HIDDEN)
        state = normed(weights, f"{layer}.aln", state + times(weights, f"{layer}.ao", context))
        inner = times(weights, f"{layer}.fi", state)
        active = inner * (1 + np.vectorize(erf)(inner / np.sqrt(2))) / 2
        state = normed(weights, f"{layer}.oln", state + times(weights, f"{layer}.fo", active))
    return state


@pytest.fixture(scope="module", params=SEEDS)
def weights(request: pytest.FixtureRequest) -> E5Weights:
    return E5Weights(file_of(random_tensors(request.param)))


def session(weights: E5Weights, folder: Path, *, integers: bool) -> OnnxSession:
    path = folder / "small.onnx"
    path.write_bytes(onnx_model(weights, integers=integers))
    return OnnxSession(path, 1, hint="", as_written=True)


def cosines(one: Floats, other: Floats) -> Floats:
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    found: Floats = (one * other).sum(axis=1) / lengths
    return found


def test_the_model_computes_what_the_formulas_say(weights: E5Weights, tmp_path: Path) -> None:
    means = session(weights, tmp_path, integers=False).pooled(IDS, HIDDEN)

    for ids, mean in zip(IDS, means, strict=True):
        assert_allclose(mean, expected(weights, ids).mean(axis=0), atol=2e-5)


def test_integers_come_near_the_formulas(weights: E5Weights, tmp_path: Path) -> None:
    means = session(weights, tmp_path, integers=True).pooled(IDS, HIDDEN)

    wanted = np.stack([expected(weights, ids).mean(axis=0) for ids in IDS])
    assert cosines(means, wanted).min() > 0.999
    assert np.abs(means - wanted).max() < 0.1


@pytest.mark.parametrize("integers", [False, True])
def test_a_text_has_the_same_bits_beside_any_other(
    weights: E5Weights, tmp_path: Path, integers: bool
) -> None:
    model = session(weights, tmp_path, integers=integers)
    ids = np.random.default_rng(5).integers(0, len(PIECES), (40, PLACES)).tolist()

    together = model.pooled(ids, HIDDEN)

    for number in range(40):
        assert_array_equal(model.pooled([ids[number]], HIDDEN)[0], together[number])


def test_the_depth_lies_below_every_value_of_gelu() -> None:
    values = np.linspace(-3, 1, 100_001)
    gelu = values * (1 + np.vectorize(erf)(values / np.sqrt(2))) / 2

    assert -GELU_DEPTH < gelu.min() < 0.001 - GELU_DEPTH


@pytest.mark.parametrize("integers", [False, True])
def test_the_same_weights_give_the_same_bytes(weights: E5Weights, integers: bool) -> None:
    assert onnx_model(weights, integers=integers) == onnx_model(weights, integers=integers)


@pytest.mark.parametrize("integers", [False, True])
def test_the_model_passes_the_checker_of_its_standard_part(
    weights: E5Weights, integers: bool
) -> None:
    model = onnx.load_from_string(onnx_model(weights, integers=integers))

    onnx.checker.check_model(model)
    kinds = {node.op_type for node in model.graph.node}
    assert ("MatMulIntegerToFloat" in kinds) == integers
    assert sum(node.op_type == "MatMul" for node in model.graph.node) == LAYERS * (
        1 if integers else 4
    )


def test_a_matrix_of_zeros_is_no_division_by_zero(tmp_path: Path) -> None:
    tensors = random_tensors(4)
    kind, count, content = tensors["l0.fo.w"]
    tensors["l0.fo.w"] = (kind, count, bytes(len(content)))
    blank = E5Weights(file_of(tensors))
    assert not blank.matrix("l0.fo.w", INNER).weights().any()

    mean = session(blank, tmp_path, integers=True).pooled([[0, 4, 2]], HIDDEN)[0]

    assert cosines(mean[None], expected(blank, [0, 4, 2]).mean(axis=0)[None])[0] > 0.999


def test_a_missing_tensor_is_named() -> None:
    tensors = random_tensors(1)
    del tensors["l1.fi.w"]

    with pytest.raises(EncoderError, match=r"l1\.fi\.w"):
        onnx_model(E5Weights(file_of(tensors)), integers=True)
