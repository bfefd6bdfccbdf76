"""The same request gives the same bytes: again, after a restart, in batches, threads, workers."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support import RunningServer, running_server

Request = tuple[str, Any]
Digest = tuple[int, str]


def mixed_requests(server: RunningServer, count: int) -> list[Request]:
    """Return searches and fetches over every route, drawn with a fixed seed."""
    source = random.Random(20)
    words = []
    links = ["https://nowhere.example/page", "not an address"]
    for query in ("river", "town", "builder", "museum", "founded", "Fluss", "ciudad", "建"):
        answer: Any = server.ask("/v1/search", {"query": query, "count": 20}).json()
        for hit in answer["hits"]:
            words += hit["title"].split()
            links.append(hit["url"])
    requests: list[Request] = []
    for _ in range(count):
        query = " ".join(source.sample(words, source.randint(1, 4)))
        link = source.choice(links)
        requests.append(
            source.choice(
                [
                    ("/v1/search", {"query": query, "count": source.choice((1, 10, 37))}),
                    ("/v1/search", {"query": query, "mode": "lexical", "explain": True}),
                    ("/v1/search", {"query": query, "mode": "dense", "offset": 5}),
                    ("/search", {"q": query, "num": 10, "page": source.choice((1, 2))}),
                    ("/search", [{"q": query}, {"q": words[0]}]),
                    ("/scrape", {"url": link}),
                    ("/v1/fetch", {"url": link}),
                    ("/" + link, None),
                ]
            )
        )
    return requests


def digest(server: RunningServer, request: Request) -> Digest:
    path, content = request
    answer = server.ask(path.replace(" ", "%20"), content)
    return answer.status, hashlib.sha256(answer.body).hexdigest()


def digests(server: RunningServer, requests: Sequence[Request], threads: int) -> list[Digest]:
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda request: digest(server, request), requests))


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
