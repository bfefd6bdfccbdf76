"""Writes an ONNX model operator by operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

FUSED = "com.microsoft"
"""The domain of the operators that ONNX Runtime adds to the standard."""


class OnnxGraph:
    """Collects operators and constants of a model with one input of token ids."""

    def __init__(self) -> None:
        import onnx

        self._onnx = onnx
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}

    def add(self, operator: str, inputs: Sequence[str], out: str, **attributes: float) -> str:
        """Add an operator with one output and return the output's name."""
        self.add_many("", operator, inputs, [out], **attributes)
        return out

    def add_many(
        self,
        domain: str,
        operator: str,
        inputs: Sequence[str],
        outs: Sequence[str],
        **attributes: float,
    ) -> None:
        """Add an operator with several outputs."""
        node = self._onnx.helper.make_node(
            operator, list(inputs), list(outs), domain=domain, **attributes
        )
        self._nodes.append(node)

    def fused(self, operator: str, inputs: Sequence[str], out: str, **attributes: float) -> str:
        """Add an operator of ONNX Runtime's own and return the output's name."""
        self.add_many(FUSED, operator, inputs, [out], **attributes)
        return out

    def constant(self, name: str, values: NDArray[np.generic]) -> str:
        """Add a constant once and return its name."""
        if name not in self._constants:
            tensor = self._onnx.numpy_helper.from_array(np.ascontiguousarray(values), name)
            self._constants[name] = tensor
        return name

    def halves(self, name: str, values: NDArray[np.uint8]) -> str:
        """Add a matrix of signed 4-bit numbers, given as 0 to 15 for -8 to 7."""
        signed = values ^ 8
        packed = signed[:, 0::2] | (signed[:, 1::2] << 4)
        kind = self._onnx.TensorProto.INT4
        self._constants[name] = self._onnx.helper.make_tensor(
            name, kind, list(values.shape), packed.tobytes(), raw=True
        )
        return name

    def content(self, name: str, output: str, components: int) -> bytes:
        """Return the model: ``input_ids`` (texts, length) to (texts, length, components)."""
        helper, kinds = self._onnx.helper, self._onnx.TensorProto
        shape = ["texts", "length"]
        graph = helper.make_graph(
            self._nodes,
            name,
            [helper.make_tensor_value_info("input_ids", kinds.INT64, shape)],
            [helper.make_tensor_value_info(output, kinds.FLOAT, [*shape, components])],
            list(self._constants.values()),
        )
        sets = [helper.make_opsetid("", 21), helper.make_opsetid(FUSED, 1)]
        model = helper.make_model(graph, opset_imports=sets, ir_version=10, producer_name="")
        return bytes(model.SerializeToString(deterministic=True))
