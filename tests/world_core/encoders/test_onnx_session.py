from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from onnx import helper

from world_core.encoders import onnx_session
from world_core.encoders.onnx_session import (
    BATCH,
    BATCH_TOKENS,
    OUTPUT,
    OnnxSession,
    batches,
    need,
)
from world_core.errors import EncoderError, MissingPartError


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose hidden state of a token is (id, id squared), and which wants a mask."""
    kinds = onnx.TensorProto
    shape = ["texts", "length"]
    nodes = [
        helper.make_node("Mul", ["input_ids", "attention_mask"], ["seen"]),
        helper.make_node("Cast", ["seen"], ["number"], to=kinds.FLOAT),
        helper.make_node("Mul", ["number", "number"], ["square"]),
        helper.make_node("Unsqueeze", ["number", "last"], ["a"]),
        helper.make_node("Unsqueeze", ["square", "last"], ["b"]),
        helper.make_node("Concat", ["a", "b"], [OUTPUT], axis=-1),
    ]
    graph = helper.make_graph(
        nodes,
        "squares",
        [
            helper.make_tensor_value_info(name, kinds.INT64, shape)
            for name in ("input_ids", "attention_mask")
        ],
        [helper.make_tensor_value_info(OUTPUT, kinds.FLOAT, [*shape, 2])],
        [helper.make_tensor("last", kinds.INT64, [1], [-1])],
    )
    content = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10
    ).SerializeToString()
    path = tmp_path_factory.mktemp("onnx") / "squares.onnx"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("as_written", [False, True])
def test_means_come_back_in_the_order_of_the_texts(model: Path, as_written: bool) -> None:
    session = OnnxSession(model, 1, hint="", as_written=as_written)

    means = session.pooled([[1, 3], [5], [2, 4], [7, 7, 7]], 2)

    assert means.dtype == np.float64
    assert_array_equal(means, [[2, 5], [5, 25], [3, 10], [7, 49]])


def test_no_texts_give_no_rows(model: Path) -> None:
    assert OnnxSession(model, 1, hint="").pooled([], 2).shape == (0, 2)


def test_a_failing_run_names_the_batch(model: Path) -> None:
    session = OnnxSession(model, 1, hint="")
    session._inputs = lambda ids: {"input_ids": ids, "attention_mask": ids[:, 1:]}  # type: ignore[method-assign]

    with pytest.raises(EncoderError, match="2 texts of 3 tokens"):
        session.pooled([[1, 2, 3], [4, 5, 6]], 2)


@pytest.mark.parametrize("content", [b"", b"not a model"])
def test_a_damaged_file_is_named_with_the_command(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(content)

    with pytest.raises(EncoderError, match=r"model\.onnx") as caught:
        OnnxSession(path, 1, hint="do this")

    assert "do this" in caught.value.hint


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(EncoderError, match=r"none\.onnx"):
        OnnxSession(tmp_path / "none.onnx", 1, hint="")


@given(st.lists(st.integers(0, 3 * BATCH_TOKENS), max_size=60))
def test_batches_hold_every_text_once_with_its_equals_only(lengths: list[int]) -> None:
    parts = list(batches(lengths))

    assert sorted(number for part in parts for number in part) == list(range(len(lengths)))
    for part in parts:
        assert part == sorted(part)
        assert len({lengths[number] for number in part}) == 1
        assert len(part) <= BATCH
        assert len(part) == 1 or len(part) * lengths[part[0]] <= BATCH_TOKENS


def test_short_texts_fill_a_batch() -> None:
    assert [len(part) for part in batches([4] * (2 * BATCH + 3))] == [BATCH, BATCH, 3]


def test_long_texts_come_alone() -> None:
    assert [len(part) for part in batches([BATCH_TOKENS // 2 + 1] * 3)] == [1, 1, 1]


def test_a_missing_package_is_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    need(("numpy", "onnx"), "install it")
    monkeypatch.setattr(onnx_session, "find_spec", lambda name: None if name == "onnx" else name)

    with pytest.raises(MissingPartError, match="package onnx ") as caught:
        need(("numpy", "onnx"), "install it")

    assert caught.value.hint == "install it"
