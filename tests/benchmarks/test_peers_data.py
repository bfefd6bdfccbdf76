from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import peers_data
from benchmarks.peers_search_r1 import make_index
from tests.world_core.worlds import make_world
from world_core.encoders.loading import load
from world_core.manifest import read

RECIPE = '[lexical]\nengine = "tantivy"\n[passages]\ntarget = 300\nlimit = 500\n'


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_world(tmp_path_factory.mktemp("peers"), RECIPE, count=40)


def test_passages_are_cut_evenly_with_their_titles(world: Path) -> None:
    count = read(world).counts.passages
    every = list(peers_data.cut(world, count))
    assert [one.id for one in every] == [str(number) for number in range(count)]
    assert all(one.title and one.text for one in every)
    some = list(peers_data.cut(world, 10))
    assert some[0] == every[0]
    assert some[-1] == every[-1]
    assert len({one.id for one in some}) == 10


def test_a_world_with_too_few_passages_is_said_so(world: Path) -> None:
    with pytest.raises(SystemExit, match="fewer than 1000000"):
        list(peers_data.cut(world, 1_000_000))


@pytest.mark.java
def test_every_server_gets_the_same_passages(world: Path, tmp_path: Path) -> None:
    peers_data.prepare(world, tmp_path, 30, "tiny", "flat")
    docs = [json.loads(line) for line in (tmp_path / "docs.jsonl").read_text("utf-8").splitlines()]
    theirs = (tmp_path / "anserini" / "docs.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["id"] for line in theirs] == [doc["id"] for doc in docs]
    version = (tmp_path / "peers" / "current").read_text("utf-8").strip()
    counts = read(tmp_path / "peers" / version).counts
    assert (counts.pages, counts.passages) == (30, 30)
    vectors = np.load(tmp_path / "vectors.npy", allow_pickle=False)
    # The codes are one byte a component, so the vectors are those of the texts but for rounding.
    wanted = load("tiny", {}).encode_passages([doc["text"] for doc in docs])
    assert np.min(np.sum(vectors * wanted, axis=1)) > 0.99
    stamp = (tmp_path / "made.json").stat().st_mtime_ns
    peers_data.prepare(world, tmp_path, 30, "tiny", "flat")
    assert (tmp_path / "made.json").stat().st_mtime_ns == stamp


@pytest.mark.parametrize("kind", ["flat", "ivf"])
def test_the_peers_index_finds_a_vector_itself(kind: str) -> None:
    vectors = np.random.default_rng(2).normal(size=(2000, 16)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    index = make_index(vectors, kind)
    _, found = index.search(vectors[:50], 1)
    assert found[:, 0].tolist() == list(range(50))
