"""Raw requests to a server process: what no client library would send."""

from __future__ import annotations

import re
import socket
import time
from pathlib import Path

from tests.world_server.conftest import Process

SEARCH = b'{"q": "ferry", "num": 1}'
POST = b"POST /search HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(SEARCH), SEARCH)
PATIENCE = 15.0


def connect(server: Process) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)


def answer(connection: socket.socket) -> bytes:
    """Read one whole answer, or what came before the connection was closed."""
    data = b""
    while True:
        head, mark, body = data.partition(b"\r\n\r\n")
        size = re.search(rb"content-length: (\d+)", head.lower())
        if mark and len(body) >= int(size[1] if size else 0):
            return data
        part = connection.recv(65536)
        if not part:
            return data
        data += part


def ask(server: Process, request: bytes) -> bytes:
    with connect(server) as connection:
        connection.sendall(request)
        return answer(connection)


def metric(server: Process, name: str) -> float:
    text = ask(server, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").decode()
    return float(re.findall(rf"^{name} (\S+)$", text, re.MULTILINE)[0])


def memory(server: Process) -> int:
    """Return the peak resident memory of the server in KiB."""
    status = Path(f"/proc/{server.process.pid}/status").read_text("utf-8")
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0])


def eventually(check: object, wanted: object) -> None:
    """Wait until ``check()`` gives what is wanted; another process is at work."""
    deadline = time.monotonic() + PATIENCE
    while (found := check()) != wanted:  # type: ignore[operator]
        assert time.monotonic() < deadline, (found, wanted)
        time.sleep(0.02)
