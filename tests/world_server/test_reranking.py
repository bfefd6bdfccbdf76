"""The operator's reranker, through the whole server of a real world."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import httpx
import pytest

from world_core.errors import MissingPartError, RerankerError
from world_core.rerankers.tiny import TinyReranker
from world_core.types import Numbers
from world_server.app import create_app
from world_server.settings import Settings
from world_server.worlds import open_worlds, opener_for

BODY = {"query": "a", "explain": True}


def settings(**changes: str | int) -> Settings:
    return Settings(plan_check=False, reranker="tiny", **changes)  # type: ignore[arg-type]


@pytest.fixture
async def client(tiny_world: Path) -> AsyncIterator[httpx.AsyncClient]:
    chosen = settings(rerank_top=2)
    worlds = open_worlds([str(tiny_world)], opener_for(chosen, verify=False))
    transport = httpx.ASGITransport(create_app(worlds, chosen))
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as opened:
        yield opened
    await worlds.close()


async def test_the_first_pages_are_reranked(client: httpx.AsyncClient) -> None:
    answer = await client.post("/v1/search", json=BODY)

    assert answer.status_code == 200
    scores = [hit["parts"]["rerank"] for hit in answer.json()["hits"]]
    assert len(scores) == 3
    assert scores[:2] == sorted(scores[:2], reverse=True)
    assert None not in scores[:2]
    assert scores[2] is None


async def test_a_failing_reranker_is_a_503_and_no_other_order(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def score(_self: TinyReranker, _query: str, _passages: Sequence[str]) -> Numbers:
        raise RerankerError("The reranker lost its GPU.")

    monkeypatch.setattr(TinyReranker, "score", score)
    answer = await client.post("/v1/search", json=BODY)

    assert answer.status_code == 503
    problem = answer.json()
    assert (problem["outcome"], problem["code"]) == ("internal", "reranker")
    assert "hits" not in problem
    lexical = await client.post("/v1/search", json={**BODY, "mode": "lexical"})
    assert lexical.status_code == 200


def test_a_reranker_that_is_not_here_opens_no_world(tiny_world: Path) -> None:
    missing = Settings(plan_check=False, reranker="flag:/no/such/model")

    with pytest.raises(MissingPartError, match="/no/such/model") as caught:
        open_worlds([str(tiny_world)], opener_for(missing, verify=False))
    assert "hf download" in caught.value.hint
