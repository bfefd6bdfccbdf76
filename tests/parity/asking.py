"""Requests of every family, drawn with a fixed seed, and digests of what they are answered."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.support import RunningServer

Request = tuple[str, Any]
Digest = tuple[int, str]


SEEDS = ("river", "town", "builder", "museum", "founded", "Fluss", "ciudad", "建")


def mixed_requests(
    server: RunningServer, count: int, *, world: str = "", seeds: Sequence[str] = SEEDS
) -> list[Request]:
    """Return searches and fetches over every route, drawn with a fixed seed.

    Their words and addresses are those that the server finds for ``seeds`` in the world of this
    name, the first for "".
    """
    source = random.Random(20)
    prefix = f"/w/{world}" if world else ""
    words = []
    links = ["https://nowhere.example/page", "not an address"]
    for query in seeds:
        answer: Any = server.ask(f"{prefix}/v1/search", {"query": query, "count": 20}).json()
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
    return [(prefix + path, content) for path, content in requests]


def digest(server: RunningServer, request: Request) -> Digest:
    path, content = request
    answer = server.ask(path.replace(" ", "%20"), content)
    return answer.status, hashlib.sha256(answer.body).hexdigest()


def digests(server: RunningServer, requests: Sequence[Request], threads: int) -> list[Digest]:
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda request: digest(server, request), requests))
