"""Load checks of the server: many clients at once, and more calls than it can answer.

usage:
    load.py clients   [--clients 2000] [--cold]          every client searches, then reads a page
    load.py overload  [--running 16] [--factor 3]        a sweep for the best rate, then a multiple
    load.py departures [--clients 50]                    clients leave while their calls run

Each starts ``tests/world_server/stub_server.py``, an engine that sleeps 50 ms, in a process of its
own. The client writes raw requests to sockets: client libraries would be measured instead.
Figures are ratios of this machine; the load average is printed beside them.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import uvloop

ROOT = Path(__file__).resolve().parent.parent
LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
SEARCH = b'{"q": "alder point lighthouse keeper"}'
POST = (
    b"POST /search HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(SEARCH), SEARCH)
)
HEALTH = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
GET = b"GET /https://site3.example/page/3 HTTP/1.1\r\nHost: x\r\n\r\n"


@dataclass
class Tally:
    """What the calls of a run came to; seconds by status."""

    seconds: dict[int, list[float]] = field(default_factory=dict)
    failures: Counter[str] = field(default_factory=Counter)
    without_retry_after: int = 0
    closed: int = 0

    def add(self, status: int, seconds: float) -> None:
        """Count an answer."""
        self.seconds.setdefault(status, []).append(seconds)

    def count(self, status: int) -> int:
        """Return the number of answers with a status."""
        return len(self.seconds.get(status, ()))

    def quantile(self, status: int, share: float) -> float:
        """Return a quantile of the seconds of a status."""
        values = sorted(self.seconds.get(status, ()))
        return values[min(len(values) - 1, int(share * len(values)))] if values else float("nan")


class Connection(asyncio.Protocol):
    """One keep-alive connection; answers are matched to requests in order."""

    def __init__(self) -> None:
        self.buffer = bytearray()
        self.waiter: asyncio.Future[tuple[int, bytes]] | None = None
        self.transport: asyncio.Transport | None = None
        self.is_closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self.transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the call that waits."""
        self.is_closed = True
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_exception(exc or ConnectionResetError("closed"))

    def data_received(self, data: bytes) -> None:
        """End the call when its answer is whole."""
        self.buffer += data
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(self.buffer[:end])
        found = LENGTH.search(head)
        size = int(found[1]) if found else 0
        if len(self.buffer) < end + 4 + size:
            return
        del self.buffer[: end + 4 + size]
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result((int(head[9:12]), head))

    async def call(self, request: bytes) -> tuple[int, bytes]:
        """Send a request and return status and head of its answer."""
        self.waiter = asyncio.get_running_loop().create_future()
        if self.transport is None or self.is_closed:
            raise ConnectionResetError("closed")
        self.transport.write(request)
        return await self.waiter


async def connect(port: int) -> Connection:
    """Return an open connection to the server."""
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(Connection, "127.0.0.1", port)
    return connection


async def timed(connection: Connection, request: bytes, tally: Tally) -> None:
    """Make one call and count it."""
    started = time.perf_counter()
    try:
        status, head = await connection.call(request)
    except OSError as error:
        tally.failures[type(error).__name__] += 1
        return
    tally.add(status, time.perf_counter() - started)
    if status == 503 and b"retry-after:" not in head.lower():
        tally.without_retry_after += 1
    if b"connection: close" in head.lower():
        tally.closed += 1


async def many_clients(port: int, clients: int, *, cold: bool) -> tuple[Tally, float]:
    """Connect all clients, then let each search and read a page; return tally and seconds.

    Unless ``cold``, every connection is used once before, so that the server has let it in: a
    connection counts as open for the client when the system, not yet the server, has taken it.
    """
    connections = [await connect(port) for _ in range(clients)]
    if not cold:
        await asyncio.gather(*(connection.call(HEALTH) for connection in connections))
    tally = Tally()

    async def client(connection: Connection) -> None:
        await timed(connection, POST, tally)
        await timed(connection, GET, tally)

    started = time.perf_counter()
    await asyncio.gather(*(client(connection) for connection in connections))
    return tally, time.perf_counter() - started


async def closed_loop(port: int, clients: int, seconds: float) -> float:
    """Return the good answers a second that clients get who ask again at once."""
    end = time.perf_counter() + seconds
    tally = Tally()

    async def client() -> None:
        connection = await connect(port)
        while time.perf_counter() < end:
            await timed(connection, POST, tally)

    started = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    return tally.count(200) / (time.perf_counter() - started)


async def open_loop(port: int, rate: float, seconds: float, connections: int) -> Tally:
    """Send calls at a fixed rate, whatever becomes of them, over a pool of connections."""
    free: asyncio.Queue[Connection] = asyncio.Queue()
    for _ in range(connections):
        free.put_nowait(await connect(port))
    tally = Tally()
    tasks: set[asyncio.Task[None]] = set()

    async def one(connection: Connection) -> None:
        await timed(connection, POST, tally)
        free.put_nowait(connection if not connection.is_closed else await connect(port))

    started = time.perf_counter()
    sent = 0
    while (now := time.perf_counter() - started) < seconds:
        while sent < now * rate:
            sent += 1
            if free.empty():
                tally.failures["client out of connections"] += 1
                continue
            task = asyncio.create_task(one(free.get_nowait()))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        await asyncio.sleep(0.005)
    await asyncio.gather(*tasks)
    return tally


async def departures(port: int, clients: int) -> str:
    """Let clients leave 0.3 s after they asked, and return the server's own counts a second on."""
    connections = [await connect(port) for _ in range(clients)]
    for connection in connections:
        assert connection.transport is not None  # noqa: S101 - for the type
        connection.transport.write(POST)
    await asyncio.sleep(0.3)
    for connection in connections:
        assert connection.transport is not None  # noqa: S101 - for the type
        connection.transport.abort()
    await asyncio.sleep(1.0)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    text = (await reader.read()).decode()
    writer.close()
    wanted = ("world_client_left_total ", "world_running_calls ", "world_waiting_calls ")
    return "; ".join(line for line in text.splitlines() if line.startswith(wanted))


@contextmanager
def stub_server(**settings: str) -> Iterator[tuple[int, int]]:
    """Run the stub server and yield its port and process id."""
    delay = settings.pop("delay", "0.05")
    environment = {
        **os.environ,
        "WORLD_PORT": "0",
        **{f"WORLD_{name.upper()}": value for name, value in settings.items()},
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.world_server.stub_server", "--delay", delay],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None  # noqa: S101 - for the type
        yield int(process.stdout.readline().rsplit(":", 1)[1]), process.pid
    finally:
        process.terminate()
        process.wait(timeout=60)


def peak_memory(pid: int) -> float:
    """Return the peak resident memory of a process in MiB."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) / 1024


def cpu_seconds(pid: int) -> float:
    """Return the CPU time a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def report_clients(clients: int, *, cold: bool) -> None:
    """Print what many clients at once get."""
    with stub_server(max_running="256") as (port, pid):
        before = cpu_seconds(pid)
        tally, seconds = uvloop.run(many_clients(port, clients, cold=cold))
        cpu = cpu_seconds(pid) - before
        how = ", connecting at the same time" if cold else ""
        good, slowest = tally.count(200), tally.quantile(200, 0.99)
        print(
            f"{clients} clients x 2 calls{how}: {good} of {2 * clients} answered 200 in "
            f"{seconds:.2f} s ({2 * clients / seconds:.0f} calls/s), p50 "
            f"{tally.quantile(200, 0.5):.2f} s, p99 {slowest:.2f} s, failures "
            f"{dict(tally.failures)}, server peak {peak_memory(pid):.0f} MiB and {cpu:.2f} s of "
            f"CPU, load average {os.getloadavg()[0]:.1f}"
        )


def report_overload(running: int, factor: float, seconds: float) -> None:
    """Print the best rate of a sweep, then what a multiple of it comes to."""
    with stub_server(max_running=str(running), queue_limit=str(8 * running)) as (port, _):
        rates = {
            clients: uvloop.run(closed_loop(port, clients, seconds / 2))
            for clients in (running // 2, running, 2 * running, 4 * running)
        }
        best = max(rates.values())
        print(
            f"best of the sweep: {best:.0f} calls/s { ({k: round(v) for k, v in rates.items()}) }"
        )
        calm = uvloop.run(open_loop(port, 0.7 * best, seconds, 4000))
        tally = uvloop.run(open_loop(port, factor * best, seconds, 4000))
        after = uvloop.run(open_loop(port, 0.7 * best, seconds / 2, 4000))
    good = tally.count(200) / seconds
    print(
        f"at {factor:g} times that: {good:.0f} good calls/s ({good / best:.2f} of the best), "
        f"{tally.count(503)} answered 503 (without Retry-After: {tally.without_retry_after}, "
        f"connections closed: {tally.closed}), median of the refusals "
        f"{tally.quantile(503, 0.5) * 1e3:.0f} ms, other statuses "
        f"{sorted(set(tally.seconds) - {200, 503})}, failures {dict(tally.failures)}\n"
        f"p99 of the good calls: {calm.quantile(200, 0.99):.2f} s at 0.7, "
        f"{tally.quantile(200, 0.99):.2f} s at {factor:g}, "
        f"{after.quantile(200, 0.99):.2f} s afterwards at 0.7; load average "
        f"{os.getloadavg()[0]:.1f}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one check."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("check", choices=("clients", "overload", "departures"))
    parser.add_argument("--clients", type=int, default=0)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--running", type=int, default=16)
    parser.add_argument("--factor", type=float, default=3.0)
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args(arguments)
    files, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, max(files, 20_000)), most))
    if options.check == "clients":
        report_clients(options.clients or 2000, cold=options.cold)
    elif options.check == "overload":
        report_overload(options.running, options.factor, options.seconds)
    else:
        with stub_server(delay="5", max_running="30") as (port, _):
            print(uvloop.run(departures(port, options.clients or 50)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
