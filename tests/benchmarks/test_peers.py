from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from benchmarks import peers, peers_search_r1
from world_core.encoders.loading import load

DOCS = [
    {"id": str(number), "title": f"Title {number}", "text": f"Page {number} about {word}."}
    for number, word in enumerate(("lighthouse", "ferry", "museum", "bridge"))
]


def row(name: str, rate: float, **changes: float) -> dict[str, Any]:
    return {"name": name, "per_s": rate, "wrong": 0, "failed": 0, **changes}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = "".join(json.dumps(doc) + "\n" for doc in DOCS)
    (tmp_path / "docs.jsonl").write_text(lines, encoding="utf-8")
    vectors = load("tiny", {}).encode_passages([doc["text"] for doc in DOCS])
    np.save(tmp_path / "vectors.npy", vectors, allow_pickle=False)
    return tmp_path


def test_requests_carry_the_query_whatever_is_in_it() -> None:
    query = 'a "quoted" $ \\ größe'
    for peer in peers.PEERS.values():
        request = peer.request(query)
        assert request.method == "POST"
        value = json.loads(request.body)
        assert query in (value.get("query"), *value.get("queries", []))
        assert {value.get(name, 10) for name in ("topk", "hits", "count")} == {10}


def test_every_peer_is_compared_with_one_of_ours() -> None:
    for peer in peers.PEERS.values():
        assert peer.name.startswith("ours") != bool(peer.against)
        assert not peer.against or peer.against in peers.PEERS


def test_ratios_and_bars(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [row("ours bm25", 900), row("ours hybrid", 300), row("search-r1 flat", 100)]
    assert peers.times(rows[2], rows) == 3.0
    assert peers.times(rows[0], rows) == 0.0
    assert peers.times(row("pyserini", 300), rows) == 3.0
    assert peers.holds(rows)
    assert not peers.holds([*rows[:2], row("search-r1 flat", 101)])
    assert not peers.holds([row("ours bm25", 900, wrong=1)])
    assert not peers.holds([row("ours bm25", 900, failed=1)])
    assert peers.holds([*rows, row("pyserini", 1, wrong=7, failed=3)])
    assert "MISSED" in capsys.readouterr().out


def test_a_row_is_one_line_of_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    full = row("ours bm25", 900, cpu_ms=1, p50_ms=2, p99_ms=3, compared=400, memory_mib=5, load=0.5)
    peers.print_row(full, [full])
    title, rule, line = capsys.readouterr().out.splitlines()
    assert title.count("|") == rule.count("|") == line.count("|")


@pytest.mark.parametrize("kind", ["flat", "ivf"])
async def test_the_peer_answers_as_its_users_expect(folder: Path, kind: str) -> None:
    app = httpx.ASGITransport(peers_search_r1.make_app(folder, kind, "tiny"))
    asked = {"queries": ["ferry", "museum", "lighthouse"], "topk": 2, "return_scores": True}
    async with httpx.AsyncClient(transport=app, base_url="http://peer.test") as client:
        assert (await client.get("/ready")).status_code == 200
        result = (await client.post("/retrieve", json=asked)).json()["result"]
        answer = await client.post("/retrieve", json={"queries": ["ferry"]})
    assert [len(hits) for hits in result] == [2, 2, 2]
    assert [hits[0]["document"]["id"] for hits in result] == ["1", "2", "0"]
    assert result[0][0]["document"]["contents"] == '"Title 1"\nPage 1 about ferry.'
    assert result[0][0]["score"] >= result[0][1]["score"]
    plain = answer.json()["result"]
    assert plain[0][0] == {"id": "1", "contents": '"Title 1"\nPage 1 about ferry.'}
    assert len(plain[0]) == 3
