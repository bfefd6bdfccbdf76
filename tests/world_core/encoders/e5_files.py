"""Small files in the layout of the weights of E5, for tests."""

from __future__ import annotations

import struct
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from world_core.encoders.e5_weights import GROUP, MAGIC

HIDDEN, LAYERS, HEADS, INNER, PLACES = 64, 2, 4, 96, 8
PIECES = ("<s>", "<pad>", "</s>", "<unk>", "▁", "é", "長")
SCORES = (0.0, 0.0, 0.0, 0.0, -1.5, -2.0, -2.5)
SPELLINGS = {0x3000: " ", 0xFB01: "fi", 0x01: ""}


def file_of(tensors: Mapping[str, tuple[int, int, bytes]], *, group: int = GROUP) -> bytes:
    """Return a small file in the layout: tensors by name as (type, count, bytes)."""
    blob = "".join(PIECES).encode()
    ends = np.cumsum([0, *(len(piece.encode()) for piece in PIECES)])
    marks = b"".join(
        struct.pack(f"<IB{len(to)}I", point, len(to), *map(ord, to))
        for point, to in SPELLINGS.items()
    )
    head = b"".join(
        (
            MAGIC,
            struct.pack(
                "<I7ifi", 1, HIDDEN, LAYERS, HEADS, INNER, len(PIECES), PLACES, 2, 1e-12, group
            ),
            struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, len(blob)),
            ends.astype("<u4").tobytes(),
            np.array(SCORES, dtype="<f4").tobytes(),
            blob,
            struct.pack("<iI", len(SPELLINGS), len(marks)),
            marks,
            struct.pack("<i", len(tensors)),
        )
    )
    at = len(head) + sum(2 + len(name) + 21 for name in tensors)
    entries, data = b"", b""
    for name, (kind, count, content) in tensors.items():
        place = at + len(data)
        entries += struct.pack(f"<H{len(name)}s", len(name), name.encode())
        entries += struct.pack("<BIQQ", kind, count, place, len(content))
        data += content
    return head + entries + data


def grouped(weights: list[int], scale: float) -> bytes:
    """Return one group of 32 numbers from 0 to 15."""
    low, high = np.array(weights[:16]), np.array(weights[16:])
    packed: NDArray[np.uint8] = (low | high << 4).astype(np.uint8)
    return np.array(scale, dtype="<f2").tobytes() + packed.tobytes()


def random_tensors(seed: int) -> dict[str, tuple[int, int, bytes]]:
    """Return all tensors of a small model with weights by a seed."""
    draw = np.random.default_rng(seed)
    found: dict[str, tuple[int, int, bytes]] = {}

    def vector(name: str, count: int, *, middle: float = 0.0) -> None:
        numbers = draw.normal(middle, 0.3, count).astype("<f4")
        found[name] = (0, count, numbers.tobytes())

    def matrix(name: str, outputs: int, inputs: int) -> None:
        parts = outputs * inputs // GROUP
        numbers: NDArray[np.int64] = draw.integers(0, 16, (parts, GROUP))
        scales = draw.uniform(0.01, 0.04, parts)
        content = b"".join(
            grouped(row.tolist(), scale) for row, scale in zip(numbers, scales, strict=True)
        )
        found[name] = (1, outputs * inputs, content)

    matrix("emb.word", len(PIECES), HIDDEN)
    vector("emb.pos", PLACES * HIDDEN)
    vector("emb.type", 2 * HIDDEN)
    norms = ["emb.ln", *(f"l{n}.{part}" for n in range(LAYERS) for part in ("aln", "oln"))]
    for name in norms:
        vector(f"{name}.w", HIDDEN, middle=1.0)
        vector(f"{name}.b", HIDDEN)
    for name in (f"l{n}" for n in range(LAYERS)):
        for part in ("q", "k", "v", "ao"):
            matrix(f"{name}.{part}.w", HIDDEN, HIDDEN)
            vector(f"{name}.{part}.b", HIDDEN)
        matrix(f"{name}.fi.w", INNER, HIDDEN)
        vector(f"{name}.fi.b", INNER)
        matrix(f"{name}.fo.w", HIDDEN, INNER)
        vector(f"{name}.fo.b", HIDDEN)
    return found
