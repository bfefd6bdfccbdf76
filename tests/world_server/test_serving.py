"""The server as a process on a socket: slow, large and leaving clients, and how it ends."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.world_server.conftest import Process, stub_process
from tests.world_server.sockets import (
    PATIENCE,
    POST,
    answer,
    connect,
    eventually,
    memory,
    metric,
)
from world_server import serving
from world_server.errors import SettingsError
from world_server.serving import address_of, bind
from world_server.settings import Settings


@pytest.fixture(scope="module")
def strict() -> Iterator[Process]:
    """A server that is short of patience and of places."""
    with stub_process(
        delay=0.3, head_s=0.4, body_s=0.4, head_limit=4096, body_limit=1 << 20, max_running=1,
        queue_limit=0,
    ) as server:  # fmt: skip
        yield server


def test_a_slow_body_is_408_and_closed(strict: Process) -> None:
    with connect(strict) as connection:
        connection.sendall(b"POST /search HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        said = answer(connection)
        assert said.startswith(b"HTTP/1.1 408")
        assert b'"statusCode":408' in said
        assert b"connection: close" in said.lower()
        assert connection.recv(1000) == b""


@pytest.mark.parametrize("stated", [True, False])
def test_a_64_mib_body_is_413_and_stays_outside(strict: Process, stated: bool) -> None:
    before = memory(strict)
    length = b"Content-Length: 67108864" if stated else b"Transfer-Encoding: chunked"
    sent = 0
    with connect(strict) as connection:
        connection.sendall(b"POST /search HTTP/1.1\r\nHost: x\r\n" + length + b"\r\n\r\n")
        chunk = b"x" * 65536
        with contextlib.suppress(OSError):
            while sent < 64 << 20:
                connection.sendall(chunk if stated else b"10000\r\n" + chunk + b"\r\n")
                sent += len(chunk)
        said = answer(connection)
    assert said.startswith(b"HTTP/1.1 413")
    assert b'{"message":"The body is larger than 1048576 bytes.","statusCode":413}' in said
    assert sent < 64 << 20
    assert memory(strict) - before <= 8192


@pytest.mark.parametrize("size", [(1 << 20) + 1, 4 << 20])
def test_a_client_that_sends_all_before_it_reads_hears_the_refusal(
    strict: Process, size: int
) -> None:
    with connect(strict) as connection:
        head = f"POST /search HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n"
        connection.sendall(head.encode() + b"x" * size)
        assert answer(connection).startswith(b"HTTP/1.1 413")
        assert connection.recv(100) == b""


def test_a_refusal_keeps_the_connection(strict: Process) -> None:
    with connect(strict) as busy, connect(strict) as other:
        busy.sendall(POST)
        time.sleep(0.1)
        other.sendall(POST)
        refused = answer(other)
        assert refused.startswith(b"HTTP/1.1 503")
        assert re.search(rb"retry-after: [1-5]\r\n", refused)
        assert b"connection: close" not in refused.lower()
        assert answer(busy).startswith(b"HTTP/1.1 200")
        other.sendall(POST)
        assert answer(other).startswith(b"HTTP/1.1 200")


def test_when_clients_leave_their_work_stops() -> None:
    with stub_process(delay=5.0, max_running=30) as server:
        connections = [connect(server) for _ in range(50)]
        for connection in connections:
            connection.sendall(POST)
        eventually(lambda: metric(server, "world_waiting_calls"), 20.0)
        for connection in connections:
            connection.close()
        eventually(lambda: metric(server, "world_client_left_total"), 50.0)
        assert metric(server, "world_running_calls") == 0
        assert metric(server, "world_waiting_calls") == 0


def test_sigterm_lets_running_calls_finish_and_closes_the_idle_ones() -> None:
    with stub_process(delay=1.0) as server, contextlib.ExitStack() as opened:
        idle = [opened.enter_context(connect(server)) for _ in range(50)]
        idle[0].sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        answer(idle[0])
        running = opened.enter_context(connect(server))
        running.sendall(POST)
        eventually(lambda: metric(server, "world_running_calls"), 1.0)
        server.process.send_signal(signal.SIGTERM)
        assert answer(running).startswith(b"HTTP/1.1 200")
        assert [connection.recv(100) for connection in idle] == [b""] * 50
        assert server.process.wait(timeout=10) == 0
        with pytest.raises(ConnectionRefusedError):
            connect(server)
        assert server.process.stderr is not None
        assert "Traceback" not in server.process.stderr.read()


def test_a_second_sigterm_ends_at_once() -> None:
    with stub_process(delay=20.0, work_s=30) as server, connect(server) as running:
        running.sendall(POST)
        eventually(lambda: metric(server, "world_running_calls"), 1.0)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        assert server.process.poll() is None
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(timeout=5) == 128 + signal.SIGTERM


def test_a_port_in_use_is_said_before_anything_is_loaded() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(SettingsError, match=f"Cannot listen on 127.0.0.1 port {port}"):
            bind(Settings(port=port))


def test_an_address_that_is_not_ours_is_said() -> None:
    with pytest.raises(SettingsError, match="Cannot listen on"):
        bind(Settings(host="192.0.2.1", port=0, allow_no_key=True))


def test_an_open_address_needs_a_key() -> None:
    with pytest.raises(SettingsError, match="no key is set"):
        bind(Settings(host="0.0.0.0", port=0))  # noqa: S104 - the case


def test_addresses_are_written_as_urls() -> None:
    with bind(Settings(port=0)) as bound:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", address_of(bound))
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", serving.listen(bound))


@contextlib.contextmanager
def workers(*arguments: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run ``world-server serve`` with two processes; yield its address and the parent."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "world_server.cli",
            "serve",
            "--workers",
            "2",
            "--port",
            "0",
            *arguments,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        yield line.rsplit(" ", 1)[-1].strip(), process
    finally:
        process.terminate()
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
        assert process.stderr is not None
        process.stderr.close()


def children(pid: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text("utf-8").rsplit(")", 1)[1].split()
            command = (path.parent / "cmdline").read_bytes()
            if int(fields[1]) == pid and fields[0] != "Z" and b"spawn_main" in command:
                found.append(int(path.parent.name))
    return found


def fetch(url: str, body: bytes | None = None) -> tuple[int, bytes]:
    with urllib.request.urlopen(url, data=body, timeout=PATIENCE) as reply:
        return reply.status, reply.read()


def comes_up(address: str) -> bool:
    with contextlib.suppress(OSError):
        return fetch(f"{address}/ready")[0] == 200
    return False


@pytest.mark.slow
def test_two_processes_serve_one_socket_and_one_that_dies_is_replaced(tiny_world: Path) -> None:
    with workers(str(tiny_world)) as (address, parent):
        eventually(lambda: comes_up(address), True)
        eventually(lambda: len(children(parent.pid)), 2)
        bodies = {fetch(f"{address}/search", b'{"q": "ferry"}')[1] for _ in range(40)}
        assert len(bodies) == 1
        assert json.loads(bodies.pop())["organic"][0]["link"] == "https://ferry.example/timetable"
        first = children(parent.pid)
        subprocess.run(["kill", "-9", str(first[0])], check=True)
        eventually(lambda: len(set(children(parent.pid)) - {first[0]}), 2)
        eventually(lambda: comes_up(address), True)
        parent.send_signal(signal.SIGTERM)
        assert parent.wait(timeout=40) == 0


@pytest.mark.slow
def test_processes_that_cannot_open_the_world_end_the_parent(tmp_path: Path) -> None:
    with workers(str(tmp_path / "nowhere")) as (_, parent):
        assert parent.wait(timeout=60) == 2
        assert parent.stderr is not None
        said = parent.stderr.read()
        assert "nowhere" in said
        assert "Traceback" not in said


def test_one_socket_has_several_doors() -> None:
    with bind(Settings(port=0)) as bound:
        doors = serving._doors(bound)
        assert len(doors) == serving.DOORS
        assert {door.getsockname() for door in doors} == {bound.getsockname()}
        assert len({door.fileno() for door in doors}) == serving.DOORS
        for door in doors[1:]:
            door.close()


def test_a_thousand_clients_that_connect_at_once_are_all_let_in() -> None:
    with stub_process(delay=0.0, queue_limit=2000) as server, contextlib.ExitStack() as opened:
        connections = [opened.enter_context(connect(server)) for _ in range(500)]
        for connection in connections:
            connection.sendall(POST)
        assert all(answer(one).startswith(b"HTTP/1.1 200") for one in connections)
