"""Heads that are late, large or broken, on real sockets."""

from __future__ import annotations

import contextlib
import json
import re
import socket
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


@pytest.fixture(scope="module")
def roomy() -> Iterator[Process]:
    """A server with the limits of the settings."""
    with stub_process(delay=0.0) as server:
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


def sent_in(server: Process, request: bytes, size: int) -> bytes:
    """Send a request in pieces of a size, each in a packet of its own, and return the answer."""
    with connect(server) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(OSError):
            for start in range(0, len(request), size):
                connection.sendall(request[start : start + size])
                time.sleep(0.002)
        with contextlib.suppress(ConnectionError):
            return answer(connection)
    return b""


@pytest.mark.parametrize("size", [100, 1000, 4097, 6000, 1 << 20])
def test_a_head_over_the_limit_is_431_however_it_is_cut(strict: Process, size: int) -> None:
    line = b"GET /health HTTP/1.1\r\n"
    padded = b"Host: x\r\nX-Large: %s\r\n\r\n"
    room = 4096 - len(line) - len(padded % b"")
    fits, large = (line + padded % (b"x" * count) for count in (room, room + 1))

    assert sent_in(strict, fits, size).startswith(b"HTTP/1.1 200")
    assert sent_in(strict, large, size).startswith(b"HTTP/1.1 431")


@pytest.mark.parametrize("cut", range(1, 5))
def test_a_body_is_no_part_of_the_head_wherever_they_are_cut(strict: Process, cut: int) -> None:
    question = json.dumps({"q": "ferry", "num": 1, "pad": "x" * 9000}).encode()
    head = b"POST /search HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(question)
    with connect(strict) as connection:
        for _ in range(2):
            connection.sendall(head[:-cut])
            time.sleep(0.02)
            connection.sendall(head[-cut:] + question)
            assert answer(connection).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    ("query", "status"),
    [(b"a" * 60_000, b"200"), (b"a" * 66_000, b"414"), ("é".encode() * 12_000, b"414")],
)
def test_a_request_line_that_the_parser_would_refuse_is_414(
    roomy: Process, query: bytes, status: bytes
) -> None:
    request = b"GET /search?num=1&q=" + query + HEAD
    for size in (5000, 1 << 20):
        assert sent_in(roomy, request, size).startswith(b"HTTP/1.1 " + status)


@pytest.mark.parametrize(
    "request_",
    [
        b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
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


RAW = "/jina/https://bücher.example/münchen?q=北京"
HEAD = b" HTTP/1.1\r\nHost: x\r\n\r\n"
ENCODED = b"/jina/https://b%C3%BCcher.example/m%C3%BCnchen?q=%E5%8C%97%E4%BA%AC"  # by hand


def body_of(reply: bytes) -> bytes:
    return reply.partition(b"\r\n\r\n")[2]


def test_raw_utf8_in_a_path_is_the_same_as_percent_encoded(strict: Process) -> None:
    wanted = ask(strict, b"GET " + ENCODED + HEAD)
    assert b"cher.example" in body_of(wanted)
    assert body_of(ask(strict, b"GET " + RAW.encode() + HEAD)) == body_of(wanted)


def test_raw_utf8_in_a_query_reaches_the_search(strict: Process) -> None:
    wanted = ask(strict, b"GET /search?q=caf%C3%A9" + HEAD)
    assert wanted.startswith(b"HTTP/1.1 200")
    assert "café".encode() in body_of(wanted)
    assert body_of(ask(strict, "GET /search?q=café".encode() + HEAD)) == body_of(wanted)


@pytest.mark.parametrize("cut", [5, 22, 23, 40, 60])
def test_raw_utf8_may_come_in_pieces(strict: Process, cut: int) -> None:
    wanted = body_of(ask(strict, b"GET " + ENCODED + HEAD))
    request = b"GET " + RAW.encode() + HEAD
    with connect(strict) as connection:
        connection.sendall(request[:cut])
        time.sleep(0.05)
        connection.sendall(request[cut:])
        assert body_of(answer(connection)) == wanted


def test_raw_utf8_is_read_in_each_request_of_a_connection_and_left_alone_in_bodies(
    strict: Process,
) -> None:
    question = '{"q": "café", "num": 1}'.encode()
    post = b"POST /search HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(question)
    wanted = body_of(ask(strict, b"GET " + ENCODED + HEAD))
    with connect(strict) as connection:
        for _ in range(2):
            connection.sendall(b"GET " + RAW.encode() + HEAD)
            assert body_of(answer(connection)) == wanted
            connection.sendall(post + question)
            assert "café".encode() in body_of(answer(connection))
