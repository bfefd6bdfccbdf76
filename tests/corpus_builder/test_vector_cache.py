from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from corpus_builder.errors import StageFailedError
from corpus_builder.vector_cache import VectorCache, default_folder, text_digest
from world_core.types import Vectors


def vectors(count: int, dim: int = 4, seed: int = 0) -> Vectors:
    made = np.random.default_rng(seed).normal(size=(count, dim)).astype(np.float32)
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    return made.astype(np.float32)


DIGESTS = [text_digest(f"text {n}") for n in range(1200)]


def test_vectors_come_back_bit_for_bit(tmp_path: Path) -> None:
    stored = vectors(1200)
    with VectorCache(tmp_path, "e", 4) as cache:
        cache.store(DIGESTS[:1100], stored[:1100])
    with VectorCache(tmp_path, "e", 4) as cache:
        found = cache.find(DIGESTS)
    assert found.keys() == set(DIGESTS[:1100])
    for place, digest in enumerate(DIGESTS[:1100]):
        assert found[digest].tobytes() == stored[place].tobytes()
        assert found[digest].dtype == np.float32


def test_encoders_do_not_meet(tmp_path: Path) -> None:
    with VectorCache(tmp_path, "one", 4) as one, VectorCache(tmp_path, "two", 4) as two:
        one.store(DIGESTS[:1], vectors(1))
        assert two.find(DIGESTS[:1]) == {}
        assert one.path != two.path


def test_the_first_vector_of_a_text_stays(tmp_path: Path) -> None:
    with VectorCache(tmp_path, "e", 4) as cache:
        cache.store(DIGESTS[:1], vectors(1, seed=1))
        cache.store(DIGESTS[:1], vectors(1, seed=2))
        assert cache.find(DIGESTS[:1])[DIGESTS[0]].tobytes() == vectors(1, seed=1).tobytes()


def test_a_batch_is_stored_whole_or_not(tmp_path: Path) -> None:
    with VectorCache(tmp_path, "e", 4) as cache:
        with pytest.raises(ValueError, match="shorter"):
            cache.store(DIGESTS[:3], vectors(2))
        assert cache.find(DIGESTS[:3]) == {}


def test_a_kill_in_a_batch_leaves_the_ones_before(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys, pathlib, numpy as np\n"
        "from corpus_builder.vector_cache import VectorCache, text_digest\n"
        "one = np.array([[1, 0, 0, 0]], np.float32)\n"
        "cache = VectorCache(pathlib.Path(sys.argv[1]), 'e', 4)\n"
        "cache.store([text_digest('a')], one)\n"
        "cache._connection.execute('BEGIN')\n"
        "cache._connection.execute('INSERT INTO vectors VALUES (?, ?)',\n"
        "                          (text_digest('b'), one.tobytes()))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False, timeout=60)
    assert done.returncode == -9
    with VectorCache(tmp_path, "e", 4) as cache:
        assert cache.find([text_digest("a"), text_digest("b")]).keys() == {text_digest("a")}


def test_two_builds_may_write_at_once(tmp_path: Path) -> None:
    with VectorCache(tmp_path, "e", 4) as one, VectorCache(tmp_path, "e", 4) as two:
        one.store(DIGESTS[:2], vectors(2))
        two.store(DIGESTS[1:3], vectors(2))
        assert len(one.find(DIGESTS[:3])) == 3


@pytest.mark.parametrize("data", [b"", b"\x00" * 16, np.ones(4, "<f4").tobytes(), b"\x00" * 12])
def test_a_damaged_vector_is_refused(tmp_path: Path, data: bytes) -> None:
    with VectorCache(tmp_path, "e", 4) as cache:
        path = cache.path
    connection = sqlite3.connect(path)
    connection.execute("INSERT INTO vectors VALUES (?, ?)", (DIGESTS[0], data))
    connection.commit()
    connection.close()
    with (
        VectorCache(tmp_path, "e", 4) as cache,
        pytest.raises(StageFailedError, match="another shape or length") as caught,
    ):
        cache.find(DIGESTS[:1])
    assert str(path) in caught.value.hint


def test_a_file_of_rubbish_is_refused(tmp_path: Path) -> None:
    with VectorCache(tmp_path, "e", 4) as cache:
        path = cache.path
    path.write_bytes(b"rubbish" * 1000)
    with pytest.raises(StageFailedError, match="not a database"):
        VectorCache(tmp_path, "e", 4)


def test_a_file_of_another_encoder_is_refused(tmp_path: Path) -> None:
    with VectorCache(tmp_path, "one", 4) as one:
        first = one.path
    with VectorCache(tmp_path, "two", 4) as two:
        second = two.path
    second.unlink()
    first.rename(second)
    with pytest.raises(StageFailedError, match="two encoders"):
        VectorCache(tmp_path, "two", 4)


def test_the_default_folder_is_the_users_cache() -> None:
    assert default_folder().is_relative_to(Path.home())
    assert text_digest("a") != text_digest("b")
