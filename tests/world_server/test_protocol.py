"""Heads that are late, large or broken, on real sockets."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator

import pytest

from tests.world_server.conftest import Process, stub_process
from tests.world_server.sockets import POST, answer, ask, connect


@pytest.fixture(scope="module")
def strict() -> Iterator[Process]:
    """A server that is short of patience and of places."""
    with stub_process(
        delay=0.3, head_s=0.4, body_s=0.4, head_limit=4096, body_limit=1 << 20, max_running=1,
        queue_limit=0,
    ) as server:  # fmt: skip
        yield server


def test_a_half_written_head_is_closed_and_others_are_served(strict: Process) -> None:
    stalled = [connect(strict) for _ in range(50)]
    for connection in stalled[:40]:
        connection.sendall(b"POST /search HTTP/1.1\r\nHost: x\r\nX-Slow: ")
    assert ask(strict, POST).startswith(b"HTTP/1.1 200")
    for connection in stalled:
        assert connection.recv(1000) == b""
        connection.close()


def test_the_clock_starts_again_with_the_second_request(strict: Process) -> None:
    with connect(strict) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"200 OK" in answer(connection)
        time.sleep(0.6)  # idle is not slow
        connection.sendall(b"GET /health HTTP/1.1\r\nHo")
        assert connection.recv(1000) == b""


def test_a_large_head_is_431(strict: Process) -> None:
    with connect(strict) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nX-Large: ")
        with contextlib.suppress(OSError):
            for _ in range(100):
                connection.sendall(b"x" * 1000)
        assert answer(connection).startswith(b"HTTP/1.1 431")


@pytest.mark.parametrize(
    "request_",
    [
        b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /https://b\u00fccher.example/ HTTP/1.1\r\nHost: x\r\n\r\n".encode(),
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"POST /search HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"POST /search HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
        b"GET /%ff%00 HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
def test_broken_requests_are_4xx_and_the_server_lives(strict: Process, request_: bytes) -> None:
    said = ask(strict, request_)
    assert said == b"" or re.match(rb"HTTP/1.1 4\d\d", said)
    assert ask(strict, b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n").startswith(b"HTTP/1.1 200")
