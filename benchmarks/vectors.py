"""Real vectors for benchmarks: out of a vector cache, or encoded; and perturbed ones of them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np

from corpus_builder.vector_cache import VectorCache, default_folder
from world_core.encoders.base import Encoder
from world_core.types import Vectors

BLOCK = 1 << 16
STRENGTH = 0.35
"""Length of the difference of two real vectors that is added to a real one."""


def cached(path: Path) -> Vectors:
    """Return all vectors of a vector cache's file, in the order of their texts' digests."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        rows = connection.execute("SELECT vector FROM vectors ORDER BY digest").fetchall()
    if not rows:
        raise SystemExit(f"{path} holds no vectors: build a world with this encoder first")
    return np.stack([np.frombuffer(row[0], dtype="<f4") for row in rows]).astype(np.float32)


def queries(shared: Path, count: int, *, sets: tuple[str, ...] = ("cacm", "xquad/en")) -> list[str]:
    """Return the texts of judged queries, evenly out of all of the sets."""
    texts = [
        json.loads(line)["text"]
        for name in sets
        for line in (shared / "data/ir" / name / "queries.jsonl").read_text("utf-8").splitlines()
        if line.strip()
    ]
    return texts[:: max(1, len(texts) // count)][:count]


def cache_of(encoder: Encoder) -> Path:
    """Return the file in which builds of this machine keep an encoder's vectors."""
    with VectorCache(default_folder(), encoder.id, encoder.dim) as cache:
        return cache.path


def perturbed(real: Vectors, rows: int, seed: int) -> Iterator[Vectors]:
    """Yield blocks of ``rows`` vectors in all: the real ones, then perturbed copies of them.

    A copy is a real vector plus a share of the difference of two others, of length 1 again: so it
    leaves the others' directions no more than they do, unlike one with noise of every direction.
    """
    source = np.random.default_rng(seed)
    for start in range(0, rows, BLOCK):
        numbers = np.arange(start, min(start + BLOCK, rows))
        plus, minus = source.integers(0, len(real), (2, len(numbers)))
        made = real[numbers % len(real)]
        copies = (numbers >= len(real))[:, np.newaxis]
        made = made + np.where(copies, STRENGTH, 0.0) * (real[plus] - real[minus])
        yield (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)
