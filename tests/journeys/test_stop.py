"""How a server ends, and how it goes on when one of its processes is killed."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import urllib.error
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.journeys.processes import children, eventually
from tests.support import RunningServer, running_server

BODY = b'{"q": "small lighthouse"}'
LENGTH = b"Content-Length: %d\r\n" % len(BODY)
HEAD = b"POST /search HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n" + LENGTH + b"\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
GRACE = 35


@contextlib.contextmanager
def half_sent(server: RunningServer, count: int) -> Iterator[list[socket.socket]]:
    """Open calls that are running because the server waits for the second half of their bodies."""
    address = urlsplit(server.url)
    with contextlib.ExitStack() as opened:
        calls = []
        for _ in range(count):
            call = socket.create_connection((address.hostname, address.port), timeout=30)
            calls.append(opened.enter_context(call))
            call.sendall(HEAD)
            # Sent when a handler asks for the body: from now on the call is running.
            assert call.recv(len(CONTINUE), socket.MSG_WAITALL) == CONTINUE
            call.sendall(BODY[:9])
        yield calls


def finish(call: socket.socket) -> bytes:
    """Send the second half of a call and return its whole answer."""
    call.sendall(BODY[9:])
    with call.makefile("rb") as answer:
        return answer.read()


def is_refused(server: RunningServer) -> bool:
    """Say whether a new connection is refused, or let go before it was answered."""
    address = urlsplit(server.url)
    try:
        with socket.create_connection((address.hostname, address.port), timeout=30) as call:
            call.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            return call.recv(100) == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_running_calls_finish_and_new_ones_are_refused(
    plain_world: Path, tmp_path: Path, workers: int
) -> None:
    flags = ("--workers", str(workers), "--body-s", "60")
    with (
        running_server(tmp_path, "serve", str(plain_world), *flags) as server,
        half_sent(server, 8) as calls,
    ):
        expected = server.ask("/search", BODY).body
        server.process.send_signal(signal.SIGTERM)
        eventually(lambda: is_refused(server), "new connections are refused")
        assert server.process.poll() is None, "calls are still running"
        for call in calls:
            answer = finish(call)
            assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
            assert answer.endswith(b"\r\n\r\n" + expected)
        assert server.process.wait(timeout=GRACE) == 0
        log = server.log.read_text("utf-8")
    assert "Traceback" not in log
    assert "ERROR" not in log


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_the_second_sigterm_ends_at_once(plain_world: Path, tmp_path: Path, workers: int) -> None:
    flags = ("--workers", str(workers), "--body-s", "600", "--graceful-s", "600")
    with (
        running_server(tmp_path, "serve", str(plain_world), *flags) as server,
        half_sent(server, 4) as calls,
    ):
        pids = [server.process.pid, *children(server.process.pid)]
        server.process.send_signal(signal.SIGTERM)
        eventually(lambda: is_refused(server), "new connections are refused")
        assert server.process.poll() is None
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(timeout=GRACE)
        for call in calls:
            with contextlib.suppress(ConnectionError):
                assert call.recv(100) == b""
        eventually(lambda: not any(map(is_there, pids)), "no process is left")


def is_there(pid: int) -> bool:
    """Say whether a process is alive."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return "zombie" not in Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return False


def answer(server: RunningServer) -> bytes:
    """Return the body of a search, empty when the connection broke."""
    try:
        return server.ask("/search", BODY).body
    except (ConnectionError, urllib.error.URLError):
        return b""


def test_a_killed_process_is_replaced_and_the_other_goes_on(
    plain_world: Path, tmp_path: Path
) -> None:
    with running_server(tmp_path, "serve", str(plain_world), "--workers", "2") as server:
        eventually(lambda: len(children(server.process.pid)) == 2, "two workers")
        expected = server.ask("/search", BODY).body
        first, second = children(server.process.pid)
        os.kill(first, signal.SIGKILL)
        eventually(lambda: not is_there(first), "the killed worker is gone")
        # Until the new one is there the other serves alone.
        for _ in range(20):
            eventually(lambda: answer(server) == expected, "an answer of the other")
        eventually(lambda: len(children(server.process.pid)) == 2, "another worker")
        (third,) = set(children(server.process.pid)) - {second}
        os.kill(second, signal.SIGKILL)
        eventually(lambda: not is_there(second), "the other is gone, too")
        # A connection that the killed one still held may be reset; the service itself goes on.
        eventually(lambda: answer(server) == expected, "the new one answers")
        assert first not in children(server.process.pid)
        assert third in children(server.process.pid)
        log = server.log.read_text("utf-8")
    assert f"worker {first} died with -9, another takes its place" in log
    assert "Traceback" not in log
    assert server.process.returncode == 0
