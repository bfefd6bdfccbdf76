from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Sequence
from pathlib import Path

import httpx
import pytest

from benchmarks import rollouts
from benchmarks.rollouts import Period, Record
from benchmarks.rollouts_traffic import Rollout, Step, Turn
from tests.world_core.worlds import make_world
from world_client import WorldClient
from world_client.errors import OverloadedError

MIB = rollouts.MIB
ROWS = [
    {"case": "x", "turn": 1, "tool": "search", "queries": ["ferry of Norrvik", "old mill"]},
    {"case": "x", "turn": 2, "tool": "visit", "urls": ["https://a.example/"]},
]


def period(*milliseconds: float, memory: int = 100) -> Period:
    seconds = [one / 1e3 for one in milliseconds]
    return Period(seconds, Counter({"ok": len(seconds)}), memory * MIB)


def test_periods_follow_the_clock() -> None:
    record = Record(0.05)
    record.now().outcomes["ok"] += 1
    time.sleep(0.12)
    record.now().outcomes["empty"] += 1
    assert [dict(one.outcomes) for one in record.periods[:1]] == [{"ok": 1}]
    assert record.periods[-1].outcomes == {"empty": 1}
    assert len(record.periods) >= 3
    assert record.outcomes == {"ok": 1, "empty": 1}


async def test_outcomes_are_typed_or_counted_as_untyped() -> None:
    record = Record(60.0)

    async def good() -> Sequence[str]:
        return ["ok", "empty"]

    async def full() -> Sequence[str]:
        raise OverloadedError("full")

    async def broken() -> Sequence[str]:
        raise KeyError("organic")

    calls: list[tuple[Awaitable[Sequence[str]], int]] = [(good(), 2), (full(), 3), (broken(), 1)]
    for call, count in calls:
        await rollouts.timed(call, count, record)
    assert record.outcomes == {"ok": 1, "empty": 1, "overloaded": 3, "untyped KeyError": 1}
    assert len(record.periods[0].seconds) == 6


async def test_a_step_makes_its_calls_at_the_same_time_or_as_one_batch() -> None:
    paths: list[str] = []
    running = most = 0

    async def answer(request: httpx.Request) -> httpx.Response:
        nonlocal running, most
        paths.append(request.url.path)
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.05)
        running -= 1
        hit = {
            "rank": 1, "page_id": "p", "url": "https://hit.example/", "title": "t",
            "snippet": "s", "language": "en", "score": 1.0,
        }  # fmt: skip
        one = {"outcome": "ok", "query": "q", "hits": [hit]}
        value: object = one
        if request.url.path.endswith("batch"):
            value = {"answers": [one] * len(json.loads(request.content)["searches"])}
        if request.url.path.endswith("fetch"):
            value = {"outcome": "not_in_world", "url": "u"}
        return httpx.Response(200, json=value)

    record = Record(60.0)
    rollout = Rollout([[[Turn("search", ("q",))]]], ["o"], ["p"], random.Random(1))
    async with WorldClient("http://x.invalid", transport=httpx.MockTransport(answer)) as client:
        await rollouts.take(client, rollout, Step(0.0, queries=("a", "b", "c")), record)
        assert most == 3
        await rollouts.take(client, rollout, Step(0.0, queries=("a", "b"), together=True), record)
        await rollouts.take(client, rollout, Step(0.0, urls=("u", "v")), record)
    assert paths == ["/v1/search"] * 3 + ["/v1/search/batch"] + ["/v1/fetch"] * 2
    assert rollout.seen == ["https://hit.example/"] * 5
    assert record.outcomes == {"ok": 5, "not_in_world": 2}


def test_a_summary_compares_the_ends() -> None:
    record = Record(60.0)
    record.periods = [period(*[10.0 * (n + 1)] * 20, memory=100 + n) for n in range(12)]
    found = rollouts.summary(record, 4.0, 60.0)
    assert found["per_s"] == 4.0
    assert (found["p95_first_ms"], found["p95_last_ms"]) == pytest.approx((50.0, 120.0))
    assert (found["memory_first_mib"], found["memory_last_mib"]) == (104, 111)
    assert len(found["periods"]) == 12
    assert json.loads(json.dumps(found)) == found


@pytest.mark.parametrize(
    ("changes", "soak", "held"),
    [
        ({}, False, True),
        ({}, True, True),
        ({"untyped": 1}, False, False),
        ({"untyped": 1}, True, False),
        ({"per_s": 90.0}, False, False),
        ({"per_s": 90.0}, True, True),
        ({"p95_last_ms": 13.0}, True, False),
        ({"p95_last_ms": 13.0}, False, True),
        ({"memory_last_mib": 110.0}, True, False),
    ],
)
def test_the_bars(changes: dict[str, object], soak: bool, held: bool) -> None:
    found: dict[str, object] = {
        "per_s": 120.0,
        "wanted_per_s": 120.0,
        "outcomes": {"ok": 1},
        "untyped": 0,
        "p95_first_ms": 10.0,
        "p95_last_ms": 11.0,
        "memory_first_mib": 100.0,
        "memory_last_mib": 101.0,
        "load": 1.0,
    }
    assert rollouts.verdict({**found, **changes}, soak=soak) is held


@pytest.mark.parametrize("soak", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_short_run_against_a_real_server(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    soak: bool,
) -> None:
    world = make_world(tmp_path, '[lexical]\nengine = "tantivy"\n', count=20)
    rows = "".join(json.dumps(row) + "\n" for row in ROWS)
    (tmp_path / "small_requests.jsonl").write_text(rows, encoding="utf-8")
    figures = tmp_path / "figures.json"
    words = ["rollouts", str(world), "--traffic", str(tmp_path), "--json", str(figures)]
    words += ["--rate", "20", "--minutes", "0.05", "--period", "1", "--think", "0.2"]
    monkeypatch.setattr(sys, "argv", [*words, "--soak"] if soak else words)
    monkeypatch.setattr(rollouts, "PROBE_S", 1.0)
    rollouts.main()
    found = json.loads(figures.read_text("utf-8"))
    assert found["untyped"] == 0
    assert found["outcomes"]["ok"] > 0
    assert set(found["outcomes"]) <= {"ok", "empty", "not_in_world"}
    assert found["periods"][0]["memory_mib"] > 10
    said = capsys.readouterr().out
    assert "calls/s" in said
    assert ("best rate" in said) is soak
