from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.world_server.conftest import Running, Starter
from tests.world_server.stub import CLOCK, DEAD, NOTHING, StubEngine
from world_core.errors import IndexFailedError, PageStoreError


async def test_an_answer_is_of_the_contract(running: Running) -> None:
    reply = await running.client.post(
        "/search", json={"q": "lighthouse", "gl": "us", "hl": "en", "num": 2}
    )
    assert reply.status_code == 200
    assert reply.json() == {
        "searchParameters": {
            "q": "lighthouse", "gl": "us", "hl": "en", "num": 2, "type": "search",
            "engine": "google",
        },
        "organic": [
            {
                "title": "Page 0", "link": "https://site0.example/page/0",
                "snippet": "Snippet of page 0.", "date": "Mar 4, 2021", "position": 1,
            },
            {
                "title": "Page 1", "link": "https://site1.example/page/1",
                "snippet": "Snippet of page 1.", "position": 2,
            },
        ],
        "credits": 1,
    }  # fmt: skip


async def test_a_start_has_sitelinks(running: Running) -> None:
    reply = await running.client.post("/search", json={"q": "lighthouse", "num": 5})
    rows = reply.json()["organic"]
    assert rows[3]["sitelinks"] == [
        {"title": "Page 4", "link": "https://site4.example/page/4"},
        {"title": "Page 5", "link": "https://site5.example/page/5"},
    ]
    assert list(rows[3]) == ["title", "link", "snippet", "sitelinks", "position"]
    assert all("sitelinks" not in row for row in [*rows[:3], rows[4]])
    assert all(key not in row for row in rows for key in ("score", "parts", "page_id"))


async def test_organic_is_there_when_nothing_is_found(running: Running) -> None:
    reply = await running.client.post("/search", json={"q": NOTHING})
    assert reply.status_code == 200
    assert reply.json()["organic"] == []


async def test_every_way_to_ask_gives_the_same_hits(running: Running) -> None:
    """LangChain posts a query string with an empty body, smolagents gets one with the key in it."""
    client = running.client
    params = {"q": "ferry", "num": "3"}
    plain = await client.post("/search", json={"q": "ferry", "num": 3})
    others = [
        await client.post("/search", params=params, headers={"Content-Type": "application/json"}),
        await client.get("/search", params={**params, "api_key": "any"}),
        await client.post("/search", content=b'{"q":"ferry","num":"3"}'),
        await client.post(
            "/search", content=b'{"q":"ferry","num":3}', headers={"Content-Type": "text/plain"}
        ),
        await client.post("/serper/search", json={"q": "ferry", "num": 3}),
        await client.post("/search/", json={"q": "ferry", "num": 3}),
        await client.post(
            "/search", json={"q": "ferry", "num": 3}, headers={"Host": "google.serper.dev"}
        ),
    ]
    assert len(plain.json()["organic"]) == 3
    for reply in others:
        assert reply.status_code == 200
        assert reply.json()["organic"] == plain.json()["organic"]
        assert reply.json()["searchParameters"]["num"] == 3


async def test_the_body_wins_over_the_query_string(running: Running) -> None:
    reply = await running.client.post("/search?q=a&num=1", json={"q": "b"})
    assert reply.json()["searchParameters"]["q"] == "b"
    assert len(reply.json()["organic"]) == 1


@pytest.mark.parametrize(
    ("num", "hits", "credit"), [(1, 1, 1), (10, 10, 1), (11, 11, 2), (100, 100, 2), (10**9, 100, 2)]
)
async def test_num_is_obeyed_up_to_a_hundred(
    running: Running, num: int, hits: int, credit: int
) -> None:
    answer = (await running.client.post("/search", json={"q": "x", "num": num})).json()
    assert len(answer["organic"]) == hits
    assert answer["credits"] == credit


@pytest.mark.parametrize("name", ["num", "page"])
@pytest.mark.parametrize("value", [0, -1, "0", "-1", "x", 1.5, True, [], {}, "1.0", "\uff11"])
async def test_num_and_page_must_be_whole_and_positive(
    running: Running, name: str, value: object
) -> None:
    reply = await running.client.post("/search", json={"q": "x", name: value})
    assert reply.status_code == 400
    assert reply.json()["statusCode"] == 400
    assert reply.json()["message"].startswith(name)


async def test_pages_follow_each_other_and_count_from_one(running: Running) -> None:
    pages = [
        (await running.client.post("/search", json={"q": "x", "num": 5, "page": page})).json()
        for page in (1, 2)
    ]
    whole = (await running.client.post("/search", json={"q": "x", "num": 10})).json()
    links = [hit["link"] for page in pages for hit in page["organic"]]
    assert links == [hit["link"] for hit in whole["organic"]]
    assert [hit["position"] for hit in pages[1]["organic"]] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("page", [10**9, "999999999999999999999999", 1002])
async def test_a_page_deeper_than_any_world_costs_nothing(running: Running, page: object) -> None:
    reply = await running.client.post("/search", json={"q": "x", "page": page})
    assert (reply.status_code, reply.json()["organic"]) == (200, [])
    assert running.engine.begun == 0


@pytest.mark.parametrize(
    "body",
    [
        b'{"q": "x", "page": "%s"}' % (b"9" * 30),
        b'{"q": "\\ud800", "page": %s}' % (b"9" * 30),
        b'{"q": "x", "page": 9223372036854775808}',
    ],
)
async def test_numbers_too_large_for_a_writer_are_cut(running: Running, body: bytes) -> None:
    reply = await running.client.post("/search", content=body)
    assert reply.status_code == 200
    assert reply.json()["searchParameters"]["page"] == 999_999_999_999_999_999


async def test_a_batch_keeps_its_order_and_a_bad_item_fails_alone(running: Running) -> None:
    items: list[object] = [
        {"q": "a", "num": 1}, {"q": ""}, {"q": NOTHING}, 7, {"q": "b", "page": 10**9},
        {"q": "c", "num": 0}, {"q": "d", "num": 2},
    ]  # fmt: skip
    reply = await running.client.post("/search", json=items)
    assert reply.status_code == 200
    answers = reply.json()
    assert [len(answer["organic"]) if "organic" in answer else answer for answer in answers] == [
        1,
        {"message": "Missing query parameter", "statusCode": 400},
        0,
        {"message": "The body must be an object or an array of objects", "statusCode": 400},
        0,
        {"message": "num must be at least 1, not 0", "statusCode": 400},
        2,
    ]
    for item, answer in zip(items, answers, strict=True):
        single = await running.client.post("/search", json=item)
        assert single.json() == answer


async def test_batches_have_a_size(running: Running) -> None:
    assert (await running.client.post("/search", json=[])).json() == []
    full = await running.client.post("/search", json=[{"q": "x", "num": 1}] * 100)
    assert len(full.json()) == 100
    over = await running.client.post("/search", json=[{"q": "x"}] * 101)
    assert over.status_code == 400
    assert "101" in over.json()["message"]


@pytest.mark.parametrize(
    "body", [{}, {"q": ""}, {"q": "   "}, {"q": None}, {"q": 42}, {"q": ["x"]}, 3, "x", None]
)
async def test_a_missing_query_is_said_in_serpers_shape(running: Running, body: object) -> None:
    reply = await running.client.post("/search", json=body)
    assert reply.status_code == 400
    assert set(reply.json()) == {"message", "statusCode"}
    assert reply.json()["statusCode"] == 400


async def test_a_query_has_a_length(running: Running) -> None:
    good = await running.client.post("/search", json={"q": "x" * 100_000, "num": 1})
    bad = await running.client.post("/search", json={"q": "x" * 100_001, "num": 1})
    assert (good.status_code, bad.status_code) == (200, 400)
    assert "100000" in bad.json()["message"]


async def test_dates_count_from_the_world_clock(running: Running) -> None:
    await running.client.post("/search", json={"q": "x", "tbs": "qdr:d"})
    await running.client.post(
        "/search", json={"q": "x", "tbs": "cdr:1,cd_min:3/4/2021,cd_max:03/06/2021"}
    )
    recent, between = running.engine.searches
    assert (recent.published_from, recent.published_to) == (CLOCK - 86400, None)
    assert (between.published_from, between.published_to) == (1_614_816_000, 1_615_075_200)


async def test_a_strange_tbs_is_echoed_and_has_no_effect(running: Running) -> None:
    reply = await running.client.post("/search", json={"q": "x", "tbs": "li:1,qdr:fortnight"})
    assert reply.json()["searchParameters"]["tbs"] == "li:1,qdr:fortnight"
    assert running.engine.searches[0].published_from is None


@pytest.mark.parametrize(("sent", "echoed"), [(True, True), ("false", False), ("true", True)])
async def test_autocorrect_is_echoed(running: Running, sent: object, echoed: bool) -> None:
    reply = await running.client.post("/search", json={"q": "x", "autocorrect": sent})
    assert reply.json()["searchParameters"]["autocorrect"] is echoed


async def test_languages_and_places_are_never_an_error(running: Running) -> None:
    body = {"q": "\u56fe\u4e66\u9986", "gl": "cn", "hl": "zh-cn", "location": "China", "extra": {}}
    reply = await running.client.post("/search", json={**body, "hl": "zh-CN"})
    assert reply.status_code == 200
    assert reply.json()["searchParameters"]["hl"] == "zh-CN"
    odd = await running.client.post("/search", json={**body, "gl": 7, "hl": None, "location": []})
    assert odd.status_code == 200
    assert "gl" not in odd.json()["searchParameters"]


@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    body=st.dictionaries(
        st.sampled_from(["q", "num", "page", "tbs", "gl", "autocorrect", "type", "x"]),
        st.none()
        | st.booleans()
        | st.integers()
        | st.text(max_size=20)
        | st.floats(allow_nan=False)
        | st.lists(st.text(max_size=3), max_size=2),
    )
)
async def test_no_object_is_more_than_a_bad_request(running: Running, body: dict[str, Any]) -> None:
    reply = await running.client.post("/search", content=json.dumps(body).encode())
    assert reply.status_code in (200, 400)
    answer = reply.json()
    assert ("organic" in answer) is (reply.status_code == 200)
    for hit in answer.get("organic", ()):
        assert {"title", "link", "snippet", "position"} <= set(hit)
        assert isinstance(hit.get("date", ""), str)


async def test_keys_are_checked_when_they_are_set(start: Starter) -> None:
    client = start(keys=("good",)).client
    body = {"q": "x", "num": 1}
    refused = [
        await client.post("/search", json=body),
        await client.post("/search", json=body, headers={"X-API-KEY": "bad"}),
        await client.get("/search?q=x&api_key=bad"),
    ]
    for reply in refused:
        assert reply.status_code == 403
        assert reply.json() == {"message": "Unauthorized.", "statusCode": 403}
    let_in = [
        await client.post("/search", json=body, headers={"X-API-KEY": "good"}),
        await client.post("/search", json=body, headers={"Authorization": "Bearer good"}),
        await client.get("/search?q=x&api_key=good"),
        await client.get("/search?q=x&apiKey=good"),
    ]
    assert [reply.status_code for reply in let_in] == [200] * 4


async def test_our_failures_are_503_and_never_empty(start: Starter) -> None:
    engine = StubEngine(0.0)
    engine.failure = IndexFailedError("The index failed.")
    running = start(engine=engine)
    for body in ({"q": "x"}, [{"q": "x"}]):
        reply = await running.client.post("/search", json=body)
        assert reply.status_code == 503
        assert reply.json() == {"message": "The index failed.", "statusCode": 503}


async def test_scrape_gives_text_and_markdown(running: Running) -> None:
    url = "https://site1.example/page/1"
    plain = await running.client.post("/scrape", json={"url": url})
    assert plain.json() == {
        "text": "Page 1\n\nThe tower was lit in 1871.",
        "metadata": {"title": "Page 1"},
        "credits": 2,
    }
    for wanted in (True, "true"):
        both = await running.client.post("/scrape", json={"url": url, "includeMarkdown": wanted})
        assert both.json()["markdown"].startswith("# Page 1")
    without = await running.client.post("/scrape", json={"url": url, "includeMarkdown": "false"})
    assert "markdown" not in without.json()


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/", {"X-API-KEY": "any"}),
        ("/", {"Host": "scrape.serper.dev"}),
        ("/serper/scrape", {}),
        ("/scrape", {"Content-Type": "text/plain"}),
    ],
)
async def test_scrape_is_met_in_several_places(
    running: Running, path: str, headers: dict[str, str]
) -> None:
    body = json.dumps({"url": "https://site1.example/page/1"})
    reply = await running.client.post(path, content=body, headers=headers)
    assert reply.json()["metadata"] == {"title": "Page 1"}


async def test_scrape_misses_are_final(running: Running) -> None:
    gone = await running.client.post("/scrape", json={"url": "https://nowhere.example/"})
    assert (gone.status_code, gone.json()) == (
        404,
        {"message": "Page not found", "statusCode": 404},
    )
    dead = await running.client.post("/scrape", json={"url": DEAD})
    assert (dead.status_code, dead.json()) == (
        404,
        {"message": "Target URL returned error 404", "statusCode": 404},
    )


@pytest.mark.parametrize("body", [{}, {"url": ""}, {"url": 3}, [], {"url": "x" * 100_001}])
async def test_scrape_needs_an_address(running: Running, body: object) -> None:
    reply = await running.client.post("/scrape", json=body)
    assert reply.status_code == 400
    assert set(reply.json()) == {"message", "statusCode"}


async def test_a_lost_page_store_is_not_a_missing_page(start: Starter) -> None:
    engine = StubEngine(0.0)
    engine.page_failure = PageStoreError("The page store is gone.")
    reply = await start(engine=engine).client.post("/scrape", json={"url": "https://a.example/"})
    assert reply.status_code == 503
