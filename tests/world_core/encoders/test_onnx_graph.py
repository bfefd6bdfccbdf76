from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from numpy.testing import assert_array_equal

from world_core.encoders.onnx_graph import FUSED, OnnxGraph


def looked_up(graph: OnnxGraph) -> OnnxGraph:
    """Add a look-up of 4-bit rows as the output ``rows``, with 32 numbers a row."""
    table = np.arange(64, dtype=np.uint8).reshape(2, 32) % 16
    scales = graph.constant("scales", np.array([[0.5], [2.0]], dtype=np.float32))
    graph.fused(
        "GatherBlockQuantized",
        [graph.halves("table", table), "input_ids", scales],
        "rows",
        gather_axis=0,
        quantize_axis=1,
        block_size=32,
    )
    return graph


def test_halves_are_signed_numbers_around_eight(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(looked_up(OnnxGraph()).content("m", "rows", 32))
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])

    (rows,) = session.run(["rows"], {"input_ids": np.array([[1, 0, 1]])})

    line = np.arange(32) % 16 - 8
    assert_array_equal(rows, [[line * 2.0, line * 0.5, line * 2.0]])


def test_the_model_says_its_input_output_and_operators() -> None:
    model = onnx.load_from_string(looked_up(OnnxGraph()).content("m", "rows", 32))

    assert [value.name for value in model.graph.input] == ["input_ids"]
    assert [value.name for value in model.graph.output] == ["rows"]
    assert [node.domain for node in model.graph.node] == [FUSED]
    assert {entry.domain for entry in model.opset_import} == {"", FUSED}


def test_names_of_outputs_are_given_back_and_attributes_kept() -> None:
    graph = OnnxGraph()

    assert graph.add("Shape", ["input_ids"], "shape", start=1) == "shape"
    graph.add_many("", "Split", ["shape"], ["a", "b"], axis=0, num_outputs=2)

    model = onnx.load_from_string(graph.content("m", "a", 1))
    shape, split = model.graph.node
    assert shape.attribute[0].i == 1
    assert list(split.output) == ["a", "b"]


def test_a_constant_is_added_once() -> None:
    graph = OnnxGraph()
    one = np.array([1], dtype=np.int64)

    assert graph.constant("one", one) == graph.constant("one", one) == "one"
    graph.add("Add", ["one", "one"], "two")

    model = onnx.load_from_string(graph.content("m", "two", 1))
    assert [constant.name for constant in model.graph.initializer] == ["one"]


def test_the_same_operators_give_the_same_bytes() -> None:
    first, second = (looked_up(OnnxGraph()).content("m", "rows", 32) for _ in range(2))

    assert first == second
