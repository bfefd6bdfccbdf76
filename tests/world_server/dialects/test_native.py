from __future__ import annotations

import itertools

import httpx
import pytest

from tests.world_server.conftest import Running, Starter
from tests.world_server.stub import DEAD, NOTHING, StubEngine, hit
from world_client.wire import (
    CharacterRange,
    FetchResponse,
    ProblemResponse,
    SearchBatchResponse,
    SearchResponse,
)
from world_core.errors import (
    BadInputError,
    EncoderError,
    IndexFailedError,
    PageStoreError,
    WorldError,
)
from world_core.types import FetchAnswer, Mode, Outcome
from world_server.dialects.native import shown_outcome


async def test_a_search_is_of_the_contract(running: Running) -> None:
    reply = await running.client.post("/v1/search", json={"query": "lighthouse", "count": 3})
    assert reply.status_code == 200
    assert reply.headers["content-type"] == "application/json"
    answer = SearchResponse.model_validate_json(reply.content)
    assert (answer.outcome, answer.query) == ("ok", "lighthouse")
    assert [one.rank for one in answer.hits] == [1, 2, 3]
    first = answer.hits[0]
    assert (first.page_id, first.url, first.title) == (
        hit(0).meta.page_id,
        "https://site0.example/page/0",
        "Page 0",
    )
    assert first.published == "2021-03-04T00:00:00Z"
    assert answer.hits[1].published is None
    assert first.parts is None
    assert "parts" not in reply.json()["hits"][0]


async def test_explain_adds_the_score_parts(running: Running) -> None:
    body = {"query": "x", "count": 2, "offset": 4, "explain": True}
    answer = SearchResponse.model_validate_json(
        (await running.client.post("/v1/search", json=body)).content
    )
    assert [one.rank for one in answer.hits] == [5, 6]
    parts = answer.hits[0].parts
    assert parts is not None
    assert (parts.lexical, parts.dense, parts.lexical_rank, parts.dense_rank) == (0.2, 0.5, 5, None)
    shares = (parts.lexical_share, parts.dense_share, parts.sparse_share, parts.rerank)
    assert shares == (0.25, 0.75, None, None)
    assert parts.passage == CharacterRange(start=10, end=90)
    assert parts.dense_passage is None


async def test_sitelinks_are_there_when_they_are_asked_for(running: Running) -> None:
    body = {"query": "x", "count": 5}
    plain = (await running.client.post("/v1/search", json=body)).json()["hits"]
    asked = (await running.client.post("/v1/search", json=body | {"sitelinks": True})).json()
    assert [hit["sitelinks"] for hit in asked["hits"]] == [
        *([], [], []),
        [
            {"title": "Page 4", "url": "https://site4.example/page/4"},
            {"title": "Page 5", "url": "https://site5.example/page/5"},
        ],
        [],
    ]
    without = [{k: v for k, v in hit.items() if k != "sitelinks"} for hit in asked["hits"]]
    assert without == plain
    assert [call.sitelinks for call in running.engine.searches] == [False, True]


async def test_the_call_reaches_the_engine_as_it_was_sent(running: Running) -> None:
    await running.client.post(
        "/v1/search",
        json={
            "query": " x ", "count": 7, "offset": 3, "mode": "dense",
            "published_from": "2021-03-04", "published_to": "2021-03-05T12:00:00+02:00",
        },
    )  # fmt: skip
    call = running.engine.searches[0]
    assert (call.query, call.count, call.offset, call.mode) == (" x ", 7, 3, Mode.DENSE)
    assert (call.published_from, call.published_to) == (1_614_816_000, 1_614_938_400)


async def test_a_degraded_answer_says_so_to_everybody_and_to_the_control_plane(
    start: Starter,
) -> None:
    running = start(control_key="c", keys=("k",))
    whole = (await _search(running, "c", allow_lexical=True)).json()
    assert running.engine.searches[-1].allow_lexical
    running.engine.degraded = Mode.LEXICAL
    by_control = await _search(running, "c", allow_lexical=True)
    by_agent = await _search(running, "k", allow_lexical=True)
    assert by_control.json() == by_agent.json() == {**whole, "degraded": "lexical"}
    assert SearchResponse.model_validate_json(by_agent.content).degraded == "lexical"
    assert by_control.headers["x-world-degraded"] == "lexical"
    assert "x-world-degraded" not in by_agent.headers
    batch = await running.client.post(
        "/v1/search/batch",
        json={"searches": [{"query": "x", "count": 1}]},
        headers={"X-API-KEY": "c"},
    )
    assert batch.json()["answers"][0]["degraded"] == "lexical"
    assert batch.headers["x-world-degraded"] == "lexical"
    metrics = await running.client.get("/metrics", headers={"X-API-KEY": "c"})
    assert "world_degraded_total 3" in metrics.text


async def _search(running: Running, key: str, **fields: object) -> httpx.Response:
    return await running.client.post(
        "/v1/search", json={"query": "x", **fields}, headers={"X-API-KEY": key}
    )


async def test_nothing_found_is_200_and_empty(running: Running) -> None:
    reply = await running.client.post("/v1/search", json={"query": NOTHING})
    assert (reply.status_code, reply.json()) == (
        200,
        {"outcome": "empty", "query": NOTHING, "hits": []},
    )


async def test_a_batch_is_its_single_answers(running: Running) -> None:
    searches = [
        {"query": "a", "count": 2},
        {"query": NOTHING},
        {"query": "c", "explain": True, "offset": 9},
    ]
    batch = await running.client.post("/v1/search/batch", json={"searches": searches})
    SearchBatchResponse.model_validate_json(batch.content)
    singles = [await running.client.post("/v1/search", json=one) for one in searches]
    assert batch.json()["answers"] == [one.json() for one in singles]


@pytest.mark.parametrize(
    ("path", "body", "named"),
    [
        ("/v1/search", {}, "query"),
        ("/v1/search", {"query": ""}, "query"),
        ("/v1/search", {"query": "  "}, "query"),
        ("/v1/search", {"query": None}, "query"),
        ("/v1/search", {"query": 42}, "query"),
        ("/v1/search", {"query": ["x"]}, "query"),
        ("/v1/search", {"query": "x" * 100_001}, "query"),
        ("/v1/search", {"query": "x", "count": 0}, "count"),
        ("/v1/search", {"query": "x", "count": 101}, "count"),
        ("/v1/search", {"query": "x", "count": "many"}, "count"),
        ("/v1/search", {"query": "x", "offset": -1}, "offset"),
        ("/v1/search", {"query": "x", "mode": "psychic"}, "mode"),
        ("/v1/search", {"query": "x", "published_from": "yesterday"}, "published_from"),
        ("/v1/search", {"query": "x", "published_to": 3}, "published_to"),
        ("/v1/search", [], "The body"),
        ("/v1/search", "x", "The body"),
        ("/v1/search/batch", {"searches": []}, "searches"),
        ("/v1/search/batch", {"searches": [{"query": "x"}] * 101}, "searches"),
        ("/v1/search/batch", {"searches": [{"query": "x"}, {"query": ""}]}, "searches.1.query"),
        ("/v1/search/batch", {"searches": [{"query": " "}]}, "searches.0.query"),
        ("/v1/fetch", {}, "url"),
        ("/v1/fetch", {"url": ""}, "url"),
        ("/v1/fetch", {"url": {"a": 1}}, "url"),
    ],
)
async def test_a_bad_request_names_the_field(
    running: Running, path: str, body: object, named: str
) -> None:
    reply = await running.client.post(path, json=body)
    problem = ProblemResponse.model_validate_json(reply.content)
    assert reply.status_code == 400
    assert problem.message.startswith(named)
    assert (problem.outcome.value, problem.trainable, problem.retryable) == (
        "bad_request",
        True,
        False,
    )
    assert len(reply.content) < 1000
    assert running.engine.begun == 0


async def test_a_page_is_of_the_contract(running: Running) -> None:
    reply = await running.client.post("/v1/fetch", json={"url": "https://site2.example/page/2"})
    page = FetchResponse.model_validate_json(reply.content)
    assert (page.outcome, page.title, page.language) == ("ok", "Page 2", "en")
    assert page.text.startswith("# Page 2\n\nThe **tower**")
    assert page.published == "2021-03-06T00:00:00Z"
    assert page.modified is None
    assert page.valid_from == "2021-03-04T00:00:00Z"
    assert [link.url for link in page.links][:2] == [
        "https://site1.example/page/1",
        "https://site2.example/page/2",
    ]


async def test_no_page_and_a_dead_link_are_answers(running: Running) -> None:
    gone = await running.client.post("/v1/fetch", json={"url": "https://nowhere.example/"})
    assert (gone.status_code, gone.json()) == (
        200,
        {"outcome": "not_in_world", "url": "https://nowhere.example/"},
    )
    dead = await running.client.post("/v1/fetch", json={"url": DEAD})
    assert (dead.status_code, dead.json()) == (
        200,
        {"outcome": "dead_link", "url": DEAD, "status": 404},
    )
    for reply in (gone, dead):
        FetchResponse.model_validate_json(reply.content)


@pytest.mark.parametrize("hidden", [Outcome.MASKED, Outcome.NOT_YET_PUBLISHED])
def test_what_is_hidden_looks_absent(hidden: Outcome) -> None:
    assert shown_outcome(FetchAnswer(hidden, "https://x.example/")) is Outcome.NOT_IN_WORLD


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (EncoderError("x"), (503, "encoder", "internal")),
        (IndexFailedError("x"), (503, "index", "internal")),
        (PageStoreError("x"), (503, "page_store", "internal")),
        (BadInputError("No dense index."), (400, "bad_request", "bad_request")),
        (RuntimeError("x"), (503, "internal", "internal")),
    ],
)
@pytest.mark.parametrize(
    ("path", "body"),
    [("/v1/search", {"query": "x"}), ("/v1/fetch", {"url": "https://site1.example/page/1"})],
)
async def test_our_failure_is_never_an_answer(
    start: Starter, failure: Exception, said: tuple[int, str, str], path: str, body: dict[str, str]
) -> None:
    status, code, outcome = said
    engine = StubEngine(0.0)
    engine.failure = failure
    reply = await start(engine=engine).client.post(path, json=body)
    problem = ProblemResponse.model_validate_json(reply.content)
    assert (reply.status_code, problem.code, problem.outcome.value) == (status, code, outcome)
    assert problem.trainable is (status == 400)
    assert isinstance(failure, WorldError) or "x" not in problem.message.split()


async def test_every_pair_of_options_works(running: Running) -> None:
    options: list[tuple[str, list[object]]] = [
        ("count", [1, 100]),
        ("offset", [0, 10_000]),
        ("mode", ["hybrid", "lexical", "dense"]),
        ("published_from", [None, "2021-03-04"]),
        ("published_to", [None, "2030-01-01"]),
        ("explain", [True, False]),
    ]
    for (one, ones), (other, others) in itertools.combinations(options, 2):
        for first, second in itertools.product(ones, others):
            body = {"query": "x", one: first, other: second}
            reply = await running.client.post("/v1/search", json=body)
            assert reply.status_code == 200, body
            SearchResponse.model_validate_json(reply.content)


async def test_unknown_fields_are_ignored(running: Running) -> None:
    reply = await running.client.post("/v1/search", json={"query": "x", "top_k": 3})
    assert reply.status_code == 200


async def test_the_same_request_gives_the_same_bytes(running: Running) -> None:
    body = {"query": "x", "explain": True}
    first, second = [await running.client.post("/v1/search", json=body) for _ in range(2)]
    assert first.content == second.content
