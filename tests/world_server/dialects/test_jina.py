from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.world_server.conftest import Running, Starter
from tests.world_server.stub import DEAD, XSS, XSS_TEXT, StubEngine, version
from world_core.errors import PageStoreError
from world_core.types import FetchAnswer, FetchCall, Outcome
from world_server.dialects.jina import target_of

PAGE = "https://site2.example/page/2"
FRAME = (
    "Title: Page 2\n\n"
    "URL Source: https://site2.example/page/2\n\n"
    "Published Time: 2021-03-06T00:00:00Z\n\n"
    "Markdown Content:\n"
    "# Page 2\n\nThe **tower** was lit in [1871](https://a.example/1871)."
)
TEXT = {"Accept": "*/*"}
JSON = {"Accept": "application/json"}


class EchoEngine(StubEngine):
    """Has a page at every address and keeps the addresses that were asked for."""

    def __init__(self) -> None:
        super().__init__(0.0)
        self.asked: list[str] = []

    async def fetch(self, call: FetchCall) -> FetchAnswer:
        self.asked.append(call.url)
        return FetchAnswer(Outcome.OK, call.url, version=version(2))


async def test_the_frame_is_exact(running: Running) -> None:
    reply = await running.client.get(f"/{PAGE}")
    assert reply.status_code == 200
    assert reply.headers["content-type"] == "text/plain; charset=utf-8"
    assert reply.text == FRAME
    assert reply.headers["x-usage-tokens"] == "17"


async def test_a_page_without_a_date_has_no_line_for_it(running: Running) -> None:
    reply = await running.client.get("/https://site1.example/page/1")
    assert reply.text.startswith(
        "Title: Page 1\n\nURL Source: https://site1.example/page/1\n\nMarkdown Content:\n# Page 1"
    )


async def test_json_only_when_text_is_not_acceptable(running: Running) -> None:
    reply = await running.client.get(f"/{PAGE}", headers=JSON)
    assert reply.headers["content-type"] == "application/json"
    assert reply.json() == {
        "code": 200,
        "status": 20000,
        "data": {
            "title": "Page 2",
            "description": "",
            "url": PAGE,
            "content": "# Page 2\n\nThe **tower** was lit in [1871](https://a.example/1871).",
            "publishedTime": "2021-03-06T00:00:00Z",
            "metadata": {"lang": "en"},
            "external": {},
            "usage": {"tokens": 17},
        },
        "meta": {"usage": {"tokens": 17}},
    }
    for accept in ("*/*", "application/json, */*", "text/plain, application/json", "text/html", ""):
        other = await running.client.get(f"/{PAGE}", headers={"Accept": accept})
        assert other.text == FRAME


@pytest.mark.parametrize(
    ("method", "path", "sent"),
    [
        ("GET", "/https://h.example/i.php?option=a&view=b&id=131", {}),
        ("GET", "/" + quote("https://h.example/i.php?option=a&view=b&id=131", safe=""), {}),
        ("GET", "/https:/h.example/i.php?option=a&view=b&id=131", {}),
        ("GET", "/jina/https://h.example/i.php?option=a&view=b&id=131", {}),
        ("GET", "/w/stub/https://h.example/i.php?option=a&view=b&id=131", {}),
        ("GET", "/?url=" + quote("https://h.example/i.php?option=a&view=b&id=131", safe=""), {}),
        (
            "POST", "/",
            {"content": b'{"url": "https://h.example/i.php?option=a&view=b&id=131"}'},
        ),
        ("POST", "/", {"data": {"url": "https://h.example/i.php?option=a&view=b&id=131"}}),
        ("POST", "/jina/", {"json": {"url": "https://h.example/i.php?option=a&view=b&id=131"}}),
    ],
)  # fmt: skip
async def test_the_target_arrives_whole(
    start: Starter, method: str, path: str, sent: dict[str, Any]
) -> None:
    engine = EchoEngine()
    reply = await start(engine=engine).client.request(method, path, headers=TEXT, **sent)
    assert reply.status_code == 200
    assert engine.asked == ["https://h.example/i.php?option=a&view=b&id=131"]


async def test_percent_signs_of_the_target_stay(start: Starter) -> None:
    engine = EchoEngine()
    client = start(engine=engine).client
    await client.get("/https://h.example/a%2Fb%20c?x=%2F&api_key=of-the-target")
    assert engine.asked == ["https://h.example/a%2Fb%20c?x=%2F&api_key=of-the-target"]


async def test_by_host_the_scheme_may_be_left_out(start: Starter) -> None:
    engine = EchoEngine()
    client = start(engine=engine).client
    host = {"Host": "r.jina.ai"}
    assert (await client.get("/harbor.example", headers=host)).status_code == 200
    assert (await client.get("/harbor.example/search?q=1", headers=host)).status_code == 200
    assert (await client.get("/jina/harbor.example/x")).status_code == 200
    assert engine.asked == ["harbor.example", "harbor.example/search?q=1", "harbor.example/x"]


@pytest.mark.parametrize(
    ("raw", "target"),
    [
        ("https://a.example/x", "https://a.example/x"),
        ("https:/a.example/x", "https://a.example/x"),
        ("HTTPS:///a.example/x", "https://a.example/x"),
        ("http://a.example", "http://a.example"),
        ("https%3A%2F%2Fa.example%2Fx%3Fy%3D1", "https://a.example/x?y=1"),
        ("https%3a//a.example/x", "https://a.example/x"),
        ("https%3A%2F%2Fa.example%2Fx?z=%2F", "https://a.example/x?z=%2F"),
        ("a.example%2Fx", "a.example/x"),
        ("a.example/x%2Fy", "a.example/x%2Fy"),
        (
            "https://a.example/x?u=https://b.example/?c=d",
            "https://a.example/x?u=https://b.example/?c=d",
        ),
    ],
)
def test_targets(raw: str, target: str) -> None:
    assert target_of(raw) == target


@given(st.text())
def test_no_target_raises(raw: str) -> None:
    target_of(raw)
    target_of(f"https%3A%2F%2F{raw}")


@pytest.mark.parametrize(
    ("name", "format_", "body"),
    [
        ("X-Return-Format", "markdown", FRAME.split("Content:\n")[1]),
        ("X-Return-Format", "html", FRAME.split("Content:\n")[1]),
        ("X-Respond-With", "markdown", FRAME.split("Content:\n")[1]),
        ("X-Return-Format", "text", "Page 2\n\nThe tower was lit in 1871."),
        ("X-Return-Format", "content", FRAME),
    ],
)
async def test_formats(running: Running, name: str, format_: str, body: str) -> None:
    reply = await running.client.get(f"/{PAGE}", headers={name: format_})
    assert reply.text == body


async def test_links_summary(running: Running) -> None:
    unique = await running.client.get(f"/{PAGE}", headers={"X-With-Links-Summary": "true"})
    assert unique.text == (
        FRAME + "\n\nLinks/Buttons:\n- [one](https://site1.example/page/1)\n"
        "- [two](https://site2.example/page/2)"
    )
    every = await running.client.get(f"/{PAGE}", headers={"X-With-Links-Summary": "all", **JSON})
    assert every.json()["data"]["links"] == [
        ["one", "https://site1.example/page/1"],
        ["two", "https://site2.example/page/2"],
        ["one again", "https://site1.example/page/1"],
    ]


async def test_budget_rejects_and_maximum_trims(running: Running) -> None:
    over = await running.client.get(f"/{PAGE}", headers={"X-Token-Budget": "16", **JSON})
    assert over.status_code == 409
    assert (over.json()["name"], over.json()["status"]) == ("BudgetExceededError", 40904)
    enough = await running.client.get(f"/{PAGE}", headers={"X-Token-Budget": "17"})
    assert enough.text == FRAME
    trimmed = await running.client.get(f"/{PAGE}", headers={"X-Max-Tokens": "2", **JSON})
    assert trimmed.json()["data"]["content"] == "# Page 2"
    assert trimmed.json()["meta"] == {"usage": {"tokens": 2}}
    for odd in ("", "-1", "many", b"\xb2"):
        value = odd if isinstance(odd, bytes) else odd.encode()
        reply = await running.client.get(f"/{PAGE}", headers=[(b"X-Max-Tokens", value)])
        assert reply.text == FRAME


async def test_a_page_out_of_the_world_is_final_and_typed(running: Running) -> None:
    reply = await running.client.get("/https://nowhere.example/x", headers=JSON)
    assert reply.status_code == 422
    body = reply.json()
    assert (body["data"], body["code"], body["name"], body["status"]) == (
        None,
        422,
        "AssertionFailureError",
        42206,
    )
    assert body["readableMessage"] == f"AssertionFailureError: {body['message']}"
    text = await running.client.get("/https://nowhere.example/x")
    assert (text.status_code, text.text) == (422, body["readableMessage"])
    assert text.headers["content-type"] == "text/plain; charset=utf-8"


async def test_a_dead_link_is_200_with_a_warning(running: Running) -> None:
    reply = await running.client.get(f"/{DEAD}")
    assert reply.status_code == 200
    assert reply.text == (
        f"Title: \n\nURL Source: {DEAD}\n\n"
        "Warning: Target URL returned error 404: Not Found\n\nMarkdown Content:\n"
    )
    data = (await running.client.get(f"/{DEAD}", headers=JSON)).json()["data"]
    assert data["warning"] == "Target URL returned error 404: Not Found"
    bare = await running.client.get(f"/{DEAD}", headers={"X-Return-Format": "markdown"})
    assert "Warning:" in bare.text


@pytest.mark.parametrize("outcome", [Outcome.MASKED, Outcome.NOT_YET_PUBLISHED])
async def test_a_hidden_page_cannot_be_told_from_an_absent_one(
    start: Starter, outcome: Outcome
) -> None:
    class Hiding(StubEngine):
        async def fetch(self, call: FetchCall) -> FetchAnswer:
            return FetchAnswer(outcome, call.url)

    hidden = await start(engine=Hiding(0.0)).client.get("/https://nowhere.example/x")
    absent = await start().client.get("/https://nowhere.example/x")
    assert (hidden.status_code, hidden.content) == (absent.status_code, absent.content)
    assert {**hidden.headers} == {**absent.headers}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/https://", b""),
        ("GET", "/http:///", b""),
        ("GET", "/https://%00/", b""),
        ("GET", "/?url=", b""),
        ("GET", "/?url=ftp://a.example/", b""),
        ("POST", "/", b"{}"),
        ("POST", "/", b""),
        ("POST", "/", b'{"url": 3}'),
        ("POST", "/", b"[]"),
        ("POST", "/", b"{"),
        ("POST", "/", b'{"url": "  "}'),
        ("POST", "/", b'{"url": "' + b"x" * 100_001 + b'"}'),
    ],
)
async def test_malformed_requests_are_400(
    running: Running, method: str, path: str, body: bytes
) -> None:
    reply = await running.client.request(method, path, content=body, headers=JSON)
    assert reply.status_code == 400
    assert (reply.json()["name"], reply.json()["status"]) == ("ParamValidationError", 40001)
    assert running.engine.begun == 0


async def test_page_text_is_text_with_nosniff(running: Running) -> None:
    reply = await running.client.get(f"/{XSS}", headers={"X-Return-Format": "html"})
    assert reply.text == XSS_TEXT
    assert reply.headers["content-type"] == "text/plain; charset=utf-8"
    assert reply.headers["x-content-type-options"] == "nosniff"


async def test_a_lost_page_store_is_503_not_422(start: Starter) -> None:
    engine = StubEngine(0.0)
    engine.page_failure = PageStoreError("The page store is gone.")
    reply = await start(engine=engine).client.get(f"/{PAGE}", headers=JSON)
    assert reply.status_code == 503
    assert reply.json()["code"] == 503
    assert reply.json()["data"] is None


async def test_keys(start: Starter) -> None:
    client = start(keys=("good",)).client
    refused = await client.get(f"/{PAGE}?api_key=good", headers=JSON)
    assert refused.status_code == 401
    assert refused.json()["name"] == "AuthenticationRequiredError"
    let_in = await client.get(f"/{PAGE}", headers={"Authorization": "Bearer good"})
    assert let_in.text == FRAME
