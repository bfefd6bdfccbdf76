"""An engine in this process, a server's answers and the local client's say the same."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support import RunningServer
from world_client import BadRequestError, WorldClient, local_client
from world_client.wire import SearchRequest
from world_core.engine import Engine
from world_core.generation import Generation
from world_core.types import FetchCall, Hit, Mode, SearchCall
from world_server.app import WorldApp, create_app
from world_server.pointer import WorldFolder
from world_server.settings import Settings
from world_server.worlds import open_worlds, opener_for

QUERIES = (
    "river", "who built the old bridge", "museum founded in the harbour town", "Fluss", "ciudad",
    "\u5efa", "festival of lanterns", "zzz qqq", "a", "the the the", "1874", "caf\u00e9 \U0001f600",
)  # fmt: skip
LUCENE = pytest.param("lucene", marks=[pytest.mark.slow, pytest.mark.java])


@dataclass(frozen=True)
class Sides:
    """One world, served by a process and open in this one."""

    server: RunningServer
    engine: Engine
    app: WorldApp


@pytest.fixture(scope="module", params=["atlas", LUCENE])
def sides(request: pytest.FixtureRequest) -> Iterator[Sides]:
    """Return both sides for a world of each lexical engine."""
    world: Path = request.getfixturevalue(f"{request.param}_world")
    server: RunningServer = request.getfixturevalue(f"{request.param}_server")
    settings = Settings()
    worlds = open_worlds([str(world)], opener_for(settings, verify=False))
    engine = Engine(Generation.open(WorldFolder(world).target()))
    yield Sides(server, engine, create_app(worlds, settings))
    engine.close()
    asyncio.run(worlds.close())


@pytest.fixture
async def local(sides: Sides) -> AsyncIterator[WorldClient]:
    """Return a client without a network."""
    async with local_client(sides.app) as client:
        yield client


@pytest.fixture
async def remote(sides: Sides) -> AsyncIterator[WorldClient]:
    """Return a client of the server process."""
    async with WorldClient(sides.server.url, pools=1) as client:
        yield client


def shown(hit: Hit) -> dict[str, object]:
    """Return what a native answer says of a hit, dates and rank left out."""
    why = hit.explanation
    assert why is not None
    ranges = {"passage": why.passage, "dense_passage": why.dense_passage}
    return {
        "page_id": hit.meta.page_id,
        "url": hit.meta.url,
        "title": hit.meta.title,
        "snippet": hit.snippet,
        "language": hit.meta.language,
        "score": hit.score,
        "parts": {
            "lexical": hit.parts.lexical,
            "dense": hit.parts.dense,
            "lexical_rank": hit.parts.lexical_rank,
            "dense_rank": hit.parts.dense_rank,
            "sparse": hit.parts.sparse,
            "sparse_rank": hit.parts.sparse_rank,
            "rerank": hit.parts.rerank,
            "lexical_share": why.lexical,
            "dense_share": why.dense,
            "sparse_share": why.sparse,
            **{name: None if span is None else asdict(span) for name, span in ranges.items()},
        },
        "sitelinks": [asdict(link) for link in hit.sitelinks],
    }


@pytest.mark.parametrize("mode", Mode)
def test_an_engine_here_answers_as_the_server(sides: Sides, mode: Mode) -> None:
    found = 0
    for query in QUERIES:
        call = SearchCall(query, count=15, offset=2, mode=mode, explain=True, sitelinks=True)
        answer = sides.engine.search(call)
        body = {"query": query, "count": 15, "offset": 2, "mode": mode.value}
        body |= {"explain": True, "sitelinks": True}
        told: Any = sides.server.ask("/v1/search", body).json()
        assert told["outcome"] == answer.outcome.value
        hits = [shown(hit) for hit in answer.hits]
        for row, hit in zip(told["hits"], hits, strict=True):
            # Equal to the last bit: nothing on the way may round.
            assert {key: row[key] for key in hit} == hit
        assert [row["rank"] for row in told["hits"]] == list(range(3, 3 + len(hits)))
        found += len(hits)
    assert found > 50


def test_a_page_here_is_the_servers_page(sides: Sides) -> None:
    hits = sides.engine.search(SearchCall(query="river bridge", count=5)).hits
    assert hits
    for hit in hits:
        answer = sides.engine.fetch(FetchCall(hit.meta.url))
        assert answer.version is not None
        told: Any = sides.server.ask("/v1/fetch", {"url": hit.meta.url}).json()
        assert told["text"] == answer.version.text
        assert told["page_id"] == hit.meta.page_id
        links = [link.url for link in answer.version.links]
        assert [link["url"] for link in told["links"]] == links


async def test_the_local_client_is_told_what_a_remote_one_is(
    local: WorldClient, remote: WorldClient
) -> None:
    wanted = [
        SearchRequest(query=query, count=7, explain=True, mode=mode)
        for query in QUERIES
        for mode in ("hybrid", "lexical", "dense")
    ]
    here, there = [await client.search_batch(wanted) for client in (local, remote)]
    assert here == there
    assert [await local.send_search(one) for one in wanted[:6]] == here[:6]
    urls = [hit.url for answer in here for hit in answer.hits[:1]]
    for url in [*urls[:5], "https://nowhere.example/"]:
        assert await local.fetch(url) == await remote.fetch(url)
    refusals = []
    for client in (local, remote):
        with pytest.raises(BadRequestError) as caught:
            await client.fetch("not an address")
        refusals.append((caught.value.sentence, caught.value.code, caught.value.hint))
    assert refusals[0] == refusals[1]


async def test_the_application_gives_the_bytes_of_the_server(sides: Sides) -> None:
    name = sides.engine.generation.manifest.name
    asked = [
        *[(f"/w/{name}/search", {"q": query}) for query in QUERIES[:4]],
        ("/search", [{"q": query} for query in QUERIES]),
        ("/search", {"q": 5}),
        ("/scrape", {"url": "https://nowhere.example/"}),
        ("/v1/search", {"query": ""}),
        ("/w/nowhere/search", {"q": "river"}),
    ]
    transport = httpx.ASGITransport(sides.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://here.invalid") as here:
        for path, content in asked:
            answer = await here.post(path, content=json.dumps(content).encode())
            there = sides.server.ask(path, content)
            assert (answer.status_code, answer.content) == (there.status, there.body)
            assert answer.headers["content-type"] == there.headers["content-type"]


@pytest.mark.slow
@pytest.mark.java
def test_both_lexical_engines_serve_the_same_world(lucene_server: RunningServer) -> None:
    server, names = lucene_server, ("tantivy", "lucene")
    info: Any = server.ask("/info").json()
    engines = {world["name"]: world["lexical"].split()[0].lower() for world in info["worlds"]}
    assert engines == {name: name for name in names}
    assert len({world["world_id"] for world in info["worlds"]}) == 1, "the engine is not content"
    assert server.ask("/ready").json() == {"ready": True, "worlds": dict.fromkeys(names, "ok")}
    for query in QUERIES:
        body = {"query": query, "count": 20, "mode": "dense", "explain": True}
        one, other = (server.ask(f"/w/{name}/v1/search", body).json() for name in names)
        assert one == other, "vectors do not depend on the lexical engine"
        assert isinstance(one, dict)
        for hit in one["hits"][:2]:
            pages = [server.ask(f"/w/{name}/{hit['url']}") for name in names]
            assert pages[0].body == pages[1].body
