from __future__ import annotations

from typing import Any

import pytest

from world_server.exchange import Message, Reply, Request, send_reply


def request(query: bytes = b"", **headers: str) -> Request:
    rows = [
        (name.replace("_", "-").encode(), value.encode("latin-1"))
        for name, value in headers.items()
    ]
    scope: dict[str, Any] = {"method": "GET", "headers": rows, "query_string": query}
    return Request(scope, _never)


async def _never() -> Message:
    return {"type": "http.disconnect"}


def test_headers_are_found_by_lower_case_name() -> None:
    asked = request(x_api_key="k\xe9y")
    assert asked.header(b"x-api-key") == "k\xe9y"
    assert asked.header(b"accept") == ""


def test_query_parameters() -> None:
    asked = request(b"q=a+b%20c&q=last&empty=&bad=%ff%ed%a0%bd&%C3%A9=1")
    assert asked.query["q"] == "last"
    assert asked.query["empty"] == ""
    assert asked.query["\xe9"] == "1"
    asked.query["bad"].encode("utf-8")
    assert asked.query is asked.query
    assert request().query == {}
    assert request(b"\xff=%").query == {"\ufffd": "%"}


@pytest.mark.parametrize(
    ("asked", "key"),
    [
        (request(x_api_key="a", authorization="Bearer b"), "a"),
        (request(authorization="Bearer b"), "b"),
        (request(authorization="bearer  b "), "b"),
        (request(authorization="Basic b"), ""),
        (request(b"api_key=c"), "c"),
        (request(b"apiKey=d"), "d"),
        (request(), ""),
    ],
)
def test_the_key_comes_in_four_ways(asked: Request, key: str) -> None:
    assert asked.key(in_query=True) == key


def test_the_query_string_of_a_target_is_not_a_key() -> None:
    assert request(b"api_key=c").key(in_query=False) == ""


async def test_a_reply_is_sent_with_type_length_and_nosniff() -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    await send_reply(send, Reply(b"body", 404, "text/x", {"Retry-After": "1"}))
    assert sent[0]["status"] == 404
    assert dict(sent[0]["headers"]) == {
        b"content-type": b"text/x",
        b"content-length": b"4",
        b"x-content-type-options": b"nosniff",
        b"Retry-After": b"1",
    }
    assert sent[1] == {"type": "http.response.body", "body": b"body"}


async def test_the_rest_of_a_request_is_taken_between_the_answer_and_its_end() -> None:
    steps: list[object] = []

    async def send(message: Message) -> None:
        steps.append((message["type"], message.get("body"), message.get("more_body", False)))

    async def rest() -> None:
        steps.append("rest")

    await send_reply(send, Reply(b"{}", 413), rest=rest())
    assert steps == [
        ("http.response.start", None, False),
        ("http.response.body", b"{}", True),
        "rest",
        ("http.response.body", b"", False),
    ]
