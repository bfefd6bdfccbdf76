"""Starts the project's own commands as a user would, for tests that need them whole."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import ROOT

PATIENCE = 120.0


def command(name: str) -> str:
    """Return the path of one of the project's commands in this environment."""
    return str(Path(sys.executable).with_name(name))


def free_port() -> int:
    """Return a port nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def build(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``corpus-builder build`` and return what it printed."""
    return subprocess.run(
        [command("corpus-builder"), "build", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


@dataclass(frozen=True)
class Answer:
    """Status, headers (lower-case names) and body of an answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> object:
        """Return the parsed body."""
        return json.loads(self.body)


@dataclass(frozen=True)
class RunningServer:
    """A server process and where it listens."""

    process: subprocess.Popen[str]
    url: str
    log: Path

    def ask(
        self,
        path: str,
        content: object | bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """Send GET, or POST when there is content, and return whatever comes back."""
        data = content if isinstance(content, bytes) or content is None else None
        if data is None and content is not None:
            data = json.dumps(content).encode()
        request = urllib.request.Request(
            self.url + path,
            data=data,
            headers={"Content-Type": "application/json", **(headers or {})},
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return Answer(answer.status, _lower(answer.headers.items()), answer.read())
        except urllib.error.HTTPError as answer:
            with answer:
                return Answer(answer.code, _lower(answer.headers.items()), answer.read())


def _lower(items: Sequence[tuple[str, str]]) -> dict[str, str]:
    return {name.lower(): value for name, value in items}


@contextlib.contextmanager
def running_server(
    folder: Path,
    *arguments: str,
    environment: dict[str, str] | None = None,
    cwd: Path = ROOT,
) -> Iterator[RunningServer]:
    """Run ``world-server ARGUMENTS --port N`` to the end of the block; log in ``folder``."""
    port = free_port()
    log = folder / f"server-{port}.log"
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            [command("world-server"), *arguments, "--port", str(port)],
            cwd=cwd,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **(environment or {})},
        )
        try:
            server = RunningServer(process, f"http://127.0.0.1:{port}", log)
            _wait_until_ready(server)
            yield server
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=40)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise


def _wait_until_ready(server: RunningServer) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if server.process.poll() is not None:
            break
        with contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError):
            if server.ask("/ready").status == 200:
                return
        time.sleep(0.1)
    message = f"the server was not ready: {server.log.read_text(encoding='utf-8')[-3000:]}"
    raise AssertionError(message)
