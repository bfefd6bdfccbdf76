"""multilingual-e5-small as an ONNX model, made from its weights file.

A BERT encoder (Devlin et al., 2019) with layer norms after the additions. The embedding table
stays in 4 bits. In the form of 8 bits, three of the four matrix products of a layer are taken in
integers: the inputs of one token share a scale, so no token and no text ever decides about another.
The product for queries, keys and values stays in float32, since its errors would be sharpened by
the softmax.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from world_core.encoders.e5_weights import GROUP, E5Weights
from world_core.encoders.onnx_graph import OnnxGraph
from world_core.encoders.onnx_session import OUTPUT

Floats: TypeAlias = NDArray[np.float32]

VERSION = 1
"""To be raised with every change here that changes a vector."""

GELU_DEPTH = 0.17
"""GELU is nowhere below -0.17, so its values plus this are positive numbers of 8 bits."""

LEAST = 1e-9
"""A scale that can be divided by."""


def onnx_model(weights: E5Weights, *, integers: bool) -> bytes:
    """Return the model: input ``input_ids`` (texts, length), output (texts, length, hidden).

    Args:
        weights: the weights file.
        integers: take most products of matrices in 8-bit integers, else all in float32.

    Raises:
        EncoderError: a tensor is missing.
    """
    return _E5Graph(weights, integers=integers).content()


class _E5Graph:
    """Adds the model part by part; every method returns the name of what it adds."""

    def __init__(self, weights: E5Weights, *, integers: bool) -> None:
        self._weights = weights
        self._sizes = weights.sizes
        self._integers = integers
        self._graph = OnnxGraph()

    def content(self) -> bytes:
        state = self._embeddings()
        for layer in range(self._sizes.layers):
            state = self._layer(f"l{layer}", state)
        self._graph.add("Identity", [state], OUTPUT)
        return self._graph.content("multilingual-e5-small", OUTPUT, self._sizes.hidden)

    def _embeddings(self) -> str:
        """Add the normed sum of word, position and segment."""
        graph, weights, hidden = self._graph, self._weights, self._sizes.hidden
        table = weights.matrix("emb.word", hidden)
        words = graph.fused(
            "GatherBlockQuantized",
            [graph.halves("words", table.halves), "input_ids", graph.constant("s", table.scales)],
            "word",
            gather_axis=0,
            quantize_axis=1,
            block_size=GROUP,
        )
        rows = weights.vector("emb.pos").reshape(-1, hidden) + weights.vector("emb.type")[:hidden]
        zero, one = (graph.constant(f"axis {n}", np.array([n], dtype=np.int64)) for n in (0, 1))
        length = graph.add("Gather", [graph.add("Shape", ["input_ids"], "shape"), one], "length")
        place = graph.add("Slice", [graph.constant("places", rows), zero, length, zero], "place")
        return self._norm("emb.ln", graph.add("Add", [words, place], "embedding"))

    def _layer(self, name: str, state: str) -> str:
        graph = self._graph
        mixed, bias = self._product(f"{name}.ao", self._attention(name, state))
        state = self._update(f"{name}.aln", state, mixed, bias)
        inner, bias = self._product(f"{name}.fi", state)
        active = graph.fused(
            "BiasGelu", [inner, graph.constant(f"{name}.fi.b", bias)], f"{name}.gelu"
        )
        outer, bias = self._product(f"{name}.fo", active, after_gelu=True)
        return self._update(f"{name}.oln", state, outer, bias)

    def _attention(self, name: str, state: str) -> str:
        graph, weights = self._graph, self._weights
        parts = [f"{name}.{part}" for part in "qkv"]
        matrix = np.concatenate(
            [weights.matrix(f"{part}.w", self._sizes.hidden).weights() for part in parts]
        )
        bias = np.concatenate([weights.vector(f"{part}.b") for part in parts])
        joined = graph.add(
            "MatMul", [state, graph.constant(f"{name}.qkv.w", matrix.T)], f"{name}.qkv"
        )
        graph.add_many("", "Split", [joined], parts, axis=-1, num_outputs=len(parts))
        return graph.fused(
            "MultiHeadAttention",
            [*parts, graph.constant(f"{name}.qkv.b", bias)],
            f"{name}.context",
            num_heads=self._sizes.heads,
        )

    def _update(self, norm: str, state: str, change: str, bias: Floats) -> str:
        """Add change and bias to the state, normed."""
        graph = self._graph
        # The fused operator for these three is several times slower on a CPU.
        change = graph.add("Add", [change, graph.constant(f"{norm}.bias", bias)], f"{norm}.change")
        return self._norm(norm, graph.add("Add", [change, state], f"{norm}.sum"))

    def _norm(self, name: str, value: str) -> str:
        graph, weights = self._graph, self._weights
        factors = [graph.constant(f"{name}.{p}", weights.vector(f"{name}.{p}")) for p in "wb"]
        return graph.add(
            "LayerNormalization",
            [value, *factors],
            f"{name}.out",
            axis=-1,
            epsilon=self._sizes.epsilon,
        )

    def _product(self, name: str, value: str, *, after_gelu: bool = False) -> tuple[str, Floats]:
        """Add the product with a matrix; return its name and the bias that is still to be added."""
        graph = self._graph
        inputs = self._sizes.inner if after_gelu else self._sizes.hidden
        matrix = self._weights.matrix(f"{name}.w", inputs).weights().T
        bias = self._weights.vector(f"{name}.b")
        if not self._integers:
            factors = graph.constant(f"{name}.w", matrix)
            return graph.add("MatMul", [value, factors], f"{name}.product"), bias
        steps = (np.abs(matrix).max(axis=0) / 127).clip(LEAST).astype(np.float32)
        factors = np.round(matrix / steps).astype(np.int8)
        rounded, scale, zero = self._raised(value) if after_gelu else self._centred(value)
        raw = graph.fused(
            "MatMulIntegerToFloat",
            [
                rounded,
                graph.constant(f"{name}.w", factors),
                self._number(1.0),
                graph.constant(f"{name}.steps", steps),
                zero,
            ],
            f"{name}.raw",
        )
        if after_gelu:
            # Every input was raised; what that adds to each output is taken off with the bias.
            bias = bias - np.float32(GELU_DEPTH) * (factors.sum(axis=0) * steps)
        return graph.add("Mul", [raw, scale], f"{name}.product"), bias.astype(np.float32)

    def _centred(self, value: str) -> tuple[str, str, str]:
        """Round each token's inputs to 8 bits around 128; return bytes, scale and zero point."""
        graph = self._graph
        sizes = graph.add("Abs", [value], f"{value}.sizes")
        largest = graph.add("ReduceMax", [sizes, self._last_axis()], f"{value}.largest")
        safe = graph.add("Max", [largest, self._number(LEAST)], f"{value}.safe")
        scale = graph.add("Mul", [safe, self._number(1 / 127)], f"{value}.scale")
        return self._rounded(value, scale, 128)

    def _raised(self, value: str) -> tuple[str, str, str]:
        """Do the same for values of GELU, raised above 0, with all 8 bits there."""
        graph = self._graph
        raised = graph.add("Add", [value, self._number(GELU_DEPTH)], f"{value}.raised")
        largest = graph.add("ReduceMax", [raised, self._last_axis()], f"{value}.largest")
        scale = graph.add("Mul", [largest, self._number(1 / 255)], f"{value}.scale")
        return self._rounded(raised, scale, 0)

    def _rounded(self, value: str, scale: str, zero: int) -> tuple[str, str, str]:
        graph = self._graph
        middle = graph.constant(f"zero {zero}", np.array(zero, dtype=np.uint8))
        ratio = graph.add("Div", [value, scale], f"{value}.ratio")
        # Rounds half to even and stops at 0 and 255.
        rounded = graph.add("QuantizeLinear", [ratio, self._number(1.0), middle], f"{value}.bytes")
        return rounded, scale, middle

    def _number(self, value: float) -> str:
        return self._graph.constant(f"number {value!r}", np.array(value, dtype=np.float32))

    def _last_axis(self) -> str:
        return self._graph.constant("last axis", np.array([-1], dtype=np.int64))
