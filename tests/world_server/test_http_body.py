from __future__ import annotations

import asyncio
import contextlib
import json
import tracemalloc
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from world_server.errors import BadFieldError, BodyTooLargeError, ClientLeftError, SlowBodyError
from world_server.exchange import Message, Receive
from world_server.http_body import clean_text, drop_rest, parse_json, read_body

Values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def sender(parts: Iterable[bytes], *, leaves: bool = False) -> tuple[Receive, list[int]]:
    """Return a ``receive`` that hands over these parts, and the sizes it has handed over."""
    left = list(parts)
    taken: list[int] = []

    async def receive() -> Message:
        if not left:
            if leaves:
                return {"type": "http.disconnect"}
            await asyncio.Event().wait()
        part = left.pop(0)
        taken.append(len(part))
        return {"type": "http.request", "body": part, "more_body": bool(left) or leaves}

    return receive, taken


def scope(**headers: str) -> dict[str, Any]:
    return {"headers": [(k.replace("_", "-").encode(), v.encode()) for k, v in headers.items()]}


async def test_reads_all_parts() -> None:
    receive, _ = sender([b"ab", b"", b"cd"])
    assert await read_body(scope(), receive, limit=4, seconds=1) == b"abcd"


async def test_a_stated_length_is_refused_unread() -> None:
    receive, taken = sender([b"x" * 10])
    with pytest.raises(BodyTooLargeError):
        await read_body(scope(content_length="5000000"), receive, limit=100, seconds=1)
    assert taken == []


async def test_an_unstated_length_is_refused_with_the_part_that_passes_the_limit() -> None:
    receive, taken = sender([b"x" * 64 for _ in range(1000)])
    with pytest.raises(BodyTooLargeError):
        await read_body(scope(), receive, limit=1000, seconds=1)
    assert sum(taken) <= 1000 + 64


async def test_the_limit_itself_is_allowed() -> None:
    receive, _ = sender([b"x" * 500, b"x" * 500])
    assert (
        len(await read_body(scope(content_length="1000"), receive, limit=1000, seconds=1)) == 1000
    )


async def test_the_rest_of_a_refused_body_is_read_away() -> None:
    receive, taken = sender([b"x" * 10, b"", b"y" * 5])
    await drop_rest(receive)
    assert taken == [10, 0, 5]


@pytest.mark.parametrize(("limit", "parts"), [(100, 2), (65, 2), (64, 1)])
async def test_no_more_than_so_much_is_read_away(limit: int, parts: int) -> None:
    receive, taken = sender([b"x" * 64 for _ in range(1000)])
    await drop_rest(receive, limit=limit)
    assert taken == [64] * parts


async def test_a_rest_that_does_not_come_is_not_waited_for() -> None:
    silent, taken = sender([])
    await drop_rest(silent, seconds=0.01)
    left, _ = sender([b"x"], leaves=True)
    await drop_rest(left)
    assert taken == []


async def test_a_slow_body_ends() -> None:
    stalled, _ = sender([b"a"])
    first = await stalled()
    assert first["body"] == b"a"
    with pytest.raises(SlowBodyError):
        await read_body(scope(), stalled, limit=10, seconds=0.01)


async def test_a_client_that_leaves_is_no_body() -> None:
    receive, _ = sender([b"a"], leaves=True)
    with pytest.raises(ClientLeftError):
        await read_body(scope(), receive, limit=10, seconds=1)


@given(Values)
def test_json_comes_back(value: object) -> None:
    assert parse_json(json.dumps(value, ensure_ascii=False).encode()) == value
    assert parse_json(json.dumps(value, ensure_ascii=True).encode()) == value


@given(st.text(st.characters(exclude_categories=[]), max_size=20))
def test_half_surrogates_become_replacement_characters(text: str) -> None:
    found = parse_json(json.dumps({"q": text}).encode())["q"]
    found.encode("utf-8")
    assert len(found) == len(json.loads(json.dumps(text)))
    assert found == clean_text(json.loads(json.dumps(text)))


def test_surrogates_are_replaced_in_every_place() -> None:
    body = rb'{"a\udc00": ["\ud83d b", {"x": "\ud83d\ude00"}], "n": 1.5}'
    assert parse_json(body) == {"a\ufffd": ["\ufffd b", {"x": "\U0001f600"}], "n": 1.5}


def test_an_escaped_backslash_is_no_surrogate() -> None:
    assert parse_json(rb'"\\ud83d"') == "\\ud83d"


def test_byte_order_mark_and_last_key() -> None:
    assert parse_json(b'\xef\xbb\xbf{"q": 1, "q": 2}') == {"q": 2}


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"NaN", b'{"n": Infinity}', b"1e400", b'"\xff"', b"q=ferry", b'"\x00"',
        b"[" * 100_000 + b"]" * 100_000,
        rb'["\ud83d", NaN]', rb'["\ud83d", 1e400]', rb'["\ud83d"',
        b"[" * 100_000 + rb'"\ud83d"' + b"]" * 100_000,
        b'["\\ud83d", "\xff"]',
    ],
)  # fmt: skip
def test_what_is_not_json_is_refused(body: bytes) -> None:
    with pytest.raises(BadFieldError, match="not JSON"):
        parse_json(body)


@given(st.binary(max_size=60))
def test_no_bytes_raise_anything_else(body: bytes) -> None:
    with contextlib.suppress(BadFieldError):
        parse_json(body)


def test_deep_nesting_costs_no_memory() -> None:
    body = b"[" * 100_000 + b"]" * 100_000
    tracemalloc.start()
    with pytest.raises(BadFieldError):
        parse_json(body)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 << 20
