from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from benchmarks import vectors
from benchmarks.vectors import cache_of, cached, perturbed, queries
from corpus_builder.vector_cache import VectorCache
from world_core.encoders.loading import load
from world_core.types import Vectors


def unit_rows(count: int, seed: int = 1) -> Vectors:
    rows = np.random.default_rng(seed).standard_normal((count, 16)).astype(np.float32)
    made: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return made


def whole(real: Vectors, rows: int, seed: int) -> Vectors:
    return np.concatenate(list(perturbed(real, rows, seed)))


def test_a_cache_gives_its_vectors_in_the_order_of_their_digests(tmp_path: Path) -> None:
    rows = unit_rows(5)
    digests = [bytes([number]) * 32 for number in (3, 1, 4, 0, 2)]
    with VectorCache(tmp_path, "some", 16) as cache:
        cache.store(digests, rows)

    assert_array_equal(cached(cache.path), rows[[3, 1, 4, 0, 2]])


def test_the_cache_of_an_encoder_is_that_of_builds_and_must_hold_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    encoder = load("tiny", {"dim": 32})

    path = cache_of(encoder)

    with pytest.raises(SystemExit, match="holds no vectors"):
        cached(path)
    with VectorCache(tmp_path / ".cache/searchworld/vectors", encoder.id, 32) as cache:
        assert cache.path == path
        cache.store([b"x" * 32], encoder.encode_passages(["a text"]))
    assert cached(path).shape == (1, 32)


def test_the_real_vectors_come_first_and_copies_are_near_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vectors, "BLOCK", 7)
    real = unit_rows(10)

    made = whole(real, 35, 1)

    assert made.shape == (35, 16)
    assert made.dtype == np.float32
    assert np.abs(made[:10] - real).max() < 1e-6
    assert np.abs(np.linalg.norm(made, axis=1) - 1).max() < 1e-6
    for number in range(10, 35):
        cosine = float(made[number] @ real[number % 10])
        assert 0.7 < cosine <= 1.000001
    assert len({row.tobytes() for row in made}) > 30


def test_a_seed_decides_the_copies() -> None:
    real = unit_rows(10)

    assert_array_equal(whole(real, 40, 1), whole(real, 40, 1))
    assert not np.array_equal(whole(real, 40, 1), whole(real, 40, 2))
    assert_array_equal(whole(real, 20, 1)[:10], whole(real, 40, 2)[:10])


def test_queries_come_from_all_sets(tmp_path: Path) -> None:
    for name, count in (("one", 6), ("two", 6)):
        folder = tmp_path / "data/ir" / name
        folder.mkdir(parents=True)
        lines = [json.dumps({"text": f"{name} {number}"}) for number in range(count)]
        (folder / "queries.jsonl").write_text("\n".join(lines) + "\n", "utf-8")

    assert queries(tmp_path, 4, sets=("one", "two")) == ["one 0", "one 3", "two 0", "two 3"]
