"""Servers as processes: started, watched for processor time and memory, and ended."""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from world_core import manifest as manifests
from world_core.passages import PassageFile

ROOT = Path(__file__).resolve().parent.parent
OWN = re.compile(r"^Pss_Anon:\s+(\d+)", re.MULTILINE)
WORD = re.compile(r"[^\W\d_]{3,}")
PATIENCE_S = 600.0
MISSES = 100
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Server:
    """A running server: its port and the processes below it."""

    process: subprocess.Popen[str]
    port: int

    @property
    def address(self) -> str:
        """Its http address."""
        return f"http://127.0.0.1:{self.port}"

    def processes(self) -> list[int]:
        """Return the ids of its process and all below that one."""
        parents: dict[int, int] = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                with contextlib.suppress(OSError, IndexError, ValueError):
                    parents[int(entry.name)] = int(_stat(int(entry.name))[1])
        found = [self.process.pid]
        for pid in found:  # grows while it is walked: children, then theirs
            found += [child for child, parent in parents.items() if parent == pid]
        return found

    def cpu_seconds(self) -> float:
        """Return the processor time that its processes have used."""
        total = 0
        for pid in self.processes():
            with contextlib.suppress(OSError):
                fields = _stat(pid)
                total += int(fields[11]) + int(fields[12])
        return total / TICKS

    def memory(self) -> int:
        """Return the bytes its processes hold for themselves, shared pages counted once."""
        total = 0
        for pid in self.processes():
            with contextlib.suppress(OSError):
                text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
                total += sum(
                    int(size) for size in re.findall(r"^Pss_Anon:\s+(\d+)", text, re.MULTILINE)
                )
        return total * 1024


@contextmanager
def running(command: Sequence[str], port: int, ready: str, **settings: str) -> Iterator[Server]:
    """Run a server until the end of the block; it is ready when a path answers 200.

    Args:
        command: program and arguments; what it prints on stdout is dropped.
        port: where it will listen.
        ready: the path asked until it is ready.
        settings: further environment variables.

    Raises:
        SystemExit: it ended, or was not ready in ten minutes.
    """
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, **settings},
        stdout=subprocess.DEVNULL,
        text=True,
    )
    try:
        server = Server(process, port)
        _wait(server, ready)
        yield server
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def world_server(world: Path, *arguments: str) -> Iterator[Server]:
    """Run ours on a world."""
    port = free_port()
    command = str(Path(sys.executable).with_name("world-server"))
    words = [command, "serve", str(world), "--port", str(port), "--no-verify", *arguments]
    with running(words, port, "/ready") as server:
        yield server


def free_port() -> int:
    """Return a port that nobody listens on at this moment."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def version_of(world: Path) -> Path:
    """Return the folder that a world's pointer names, or the folder itself."""
    pointer = world / "current"
    return world / pointer.read_text(encoding="utf-8").strip() if pointer.is_file() else world


def queries_of(world: Path, count: int, *, seed: int) -> list[str]:
    """Return distinct queries of 3 to 7 words in a row out of random passages of a world.

    A small world has no more than it has: the list ends when a hundred tries in a row gave none.
    """
    folder = version_of(world)
    manifests.read(folder)  # says what is wrong where it is no world
    passages = PassageFile.open(folder / "passages.bin")
    source = random.Random(seed)
    found: dict[str, None] = {}
    misses = 0
    while len(found) < count and misses < MISSES:
        words = WORD.findall(passages.text(source.randrange(passages.count)))
        length = source.randint(3, 7)
        first = source.randrange(max(1, len(words) - length + 1))
        query = " ".join(words[first : first + length])
        misses = misses + 1 if len(words) < length or query in found else 0
        if not misses:
            found[query] = None
    passages.close()
    return list(found)


def load_average() -> float:
    """Return the load of the last minute."""
    return os.getloadavg()[0]


def _wait(server: Server, ready: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if server.process.poll() is not None:
            raise SystemExit(f"the server ended with {server.process.returncode}")
        with (
            contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError),
            urllib.request.urlopen(server.address + ready, timeout=30) as answer,  # noqa: S310 - the benchmark's own server
        ):
            if answer.status == 200:
                return
        time.sleep(0.2)
    raise SystemExit(f"the server was not ready after {PATIENCE_S:g} s")


def _stat(pid: int) -> list[str]:
    """Return the fields of a process from its state on."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
