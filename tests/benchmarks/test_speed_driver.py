from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from benchmarks import speed_driver
from benchmarks.speed_driver import Tally
from benchmarks.speed_wrk import Request, post

ASKED = [post("/echo", {"n": number}) for number in range(40)]
SLOW = Request("GET", "/slow")
DROP = Request("GET", "/drop")
FULL = Request("GET", "/full")


@asynccontextmanager
async def echo_server(*, wrong_from: int = 1 << 30) -> AsyncIterator[tuple[int, Counter[str]]]:
    """Answer with the body that came, another one from call ``wrong_from`` on; count the paths."""
    asked: Counter[str] = Counter()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                path = head.split(" ")[1]
                asked[path] += 1
                size = int(head.lower().partition("content-length: ")[2].split("\r\n")[0] or 0)
                body = await reader.readexactly(size)
                if path == DROP.path:
                    break
                if path == SLOW.path:
                    await asyncio.sleep(0.3)
                if asked.total() > wrong_from:
                    body += b"!"
                status = 503 if path == FULL.path else 200
                answer = f"HTTP/1.1 {status} x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                writer.write(answer[:9])
                await asyncio.sleep(0)  # in two pieces
                writer.write(answer[9:] + body)
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], asked
    finally:
        server.close()


async def test_every_request_is_asked_once_and_compared() -> None:
    async with echo_server() as (port, asked):
        expected = await speed_driver.bodies(port, ASKED)
        assert expected[ASKED[7]] == b'{"n": 7}'
        tally = await speed_driver.closed_loop(port, ASKED, connections=7, expected=expected)
    assert asked == {"/echo": 2 * len(ASKED)}
    assert tally.statuses == {200: len(ASKED)}
    assert (tally.wrong, tally.failures) == (0, {})
    assert len(tally.seconds) == len(ASKED)


async def test_a_wrong_body_is_counted() -> None:
    async with echo_server(wrong_from=len(ASKED) + 25) as (port, _):
        expected = await speed_driver.bodies(port, ASKED)
        tally = await speed_driver.closed_loop(port, ASKED, connections=3, expected=expected)
    assert tally.wrong == len(ASKED) - 25


async def test_statuses_and_broken_connections_are_counted_and_the_rest_goes_on() -> None:
    asked = [FULL, DROP, *ASKED[:5], DROP, FULL]
    async with echo_server() as (port, _):
        tally = await speed_driver.closed_loop(port, asked, connections=1, expected={})
    assert tally.statuses == {200: 5, 503: 2}
    assert tally.failures == {"ConnectionResetError": 2}


async def test_bodies_of_a_server_that_refuses_are_not_taken() -> None:
    async with echo_server() as (port, _):
        with pytest.raises(SystemExit, match="503"):
            await speed_driver.bodies(port, [FULL])


async def test_an_open_loop_asks_at_its_rate_whatever_the_server_does() -> None:
    async with echo_server() as (port, asked):
        tally = await speed_driver.open_loop(
            port, [SLOW, ASKED[0]], rate=100, seconds=0.5, expected={}, connections=40
        )
    assert asked == {SLOW.path: 25, "/echo": 25}
    assert tally.statuses == {200: 50}
    assert sum(seconds >= 0.3 for seconds in tally.seconds) >= 25


async def test_waiting_for_a_connection_counts() -> None:
    async with echo_server() as (port, _):
        tally = await speed_driver.open_loop(
            port, [SLOW], rate=1000, seconds=0.003, expected={}, connections=1
        )
    assert len(tally.seconds) == 3
    assert max(tally.seconds) >= 0.9 - 0.003


async def test_an_open_loop_takes_a_new_connection_for_a_broken_one() -> None:
    async with echo_server() as (port, _):
        tally = await speed_driver.open_loop(
            port, [DROP, ASKED[0]], rate=50, seconds=0.4, expected={}, connections=1
        )
    assert tally.failures == {"ConnectionResetError": 10}
    assert tally.statuses == {200: 10}


def test_quantiles() -> None:
    tally = Tally(seconds=[float(number) for number in range(100, 0, -1)])
    assert (tally.quantile(0.0), tally.quantile(0.5), tally.quantile(0.99)) == (1.0, 51.0, 100.0)
    assert Tally().quantile(0.5) != Tally().quantile(0.5)  # NaN
