"""The same request gives the same bytes: again, after a restart, in batches, threads, workers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.parity.asking import digests, mixed_requests
from tests.support import RunningServer, running_server


@pytest.mark.parametrize(
    ("engine", "count"),
    [
        ("atlas", 50),
        pytest.param("atlas", 1000, marks=pytest.mark.slow),
        pytest.param("lucene", 1000, marks=[pytest.mark.slow, pytest.mark.java]),
    ],
)
def test_bodies_are_equal_whatever_serves_them(
    request: pytest.FixtureRequest, tmp_path: Path, engine: str, count: int
) -> None:
    world: Path = request.getfixturevalue(f"{engine}_world")
    server: RunningServer = request.getfixturevalue(f"{engine}_server")
    requests = mixed_requests(server, count)
    first = digests(server, requests, 1)
    assert digests(server, requests, 1) == first, "asked twice"
    assert digests(server, requests, 4) == first, "from four threads"
    with running_server(tmp_path, "serve", str(world), "--workers", "2") as other:
        assert digests(other, requests, 4) == first, "after a restart, on two workers"
    statuses = {status for status, _ in first}
    assert 200 in statuses
    assert len({body for _, body in first}) > count // 3, "the requests do differ"


@pytest.mark.parametrize(
    "engine",
    ["atlas", pytest.param("lucene", marks=[pytest.mark.slow, pytest.mark.java])],
)
def test_a_batch_gives_the_bodies_of_its_searches(
    request: pytest.FixtureRequest, engine: str
) -> None:
    server: RunningServer = request.getfixturevalue(f"{engine}_server")
    queries = ["river bridge", "who founded the museum", "建", "festival", "zzz qqq", "town"] * 4
    alone = [server.ask("/v1/search", {"query": query, "count": 7}).json() for query in queries]
    batch = server.ask(
        "/v1/search/batch", {"searches": [{"query": query, "count": 7} for query in queries]}
    )
    serper = json.loads(server.ask("/search", [{"q": query} for query in queries]).body)
    singles = [json.loads(server.ask("/search", {"q": query}).body) for query in queries]
    assert batch.json() == {"answers": alone}
    assert serper == singles
