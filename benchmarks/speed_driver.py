"""A client that compares every body, and one that asks at a fixed rate whatever becomes of it.

It writes raw requests to sockets: a client library would be measured instead.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from benchmarks.speed_wrk import Request

LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
TIMEOUT_S = 60.0

Bodies = Mapping[Request, bytes]


@dataclass
class Tally:
    """What the calls of a run came to.

    Attributes:
        seconds: how long each good answer took, from the moment it was due.
        statuses: answers by status.
        wrong: good answers whose body was not the expected one.
        failures: calls without an answer, by kind.
        late: calls that were sent more than 50 ms after they were due.
    """

    seconds: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    wrong: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    late: int = 0

    def quantile(self, share: float) -> float:
        """Return a quantile of the seconds, NaN without answers."""
        values = sorted(self.seconds)
        return values[min(len(values) - 1, int(share * len(values)))] if values else float("nan")


class Connection(asyncio.Protocol):
    """One keep-alive connection with one call at a time."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._waiter: asyncio.Future[tuple[int, bytes]] | None = None
        self._transport: asyncio.Transport | None = None
        self.is_closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the call that waits."""
        self.is_closed = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(exc or ConnectionResetError("closed"))

    def data_received(self, data: bytes) -> None:
        """End the call when its answer is whole."""
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        found = LENGTH.search(self._buffer, 0, end + 2)
        size = int(found[1]) if found else 0
        if len(self._buffer) < end + 4 + size:
            return
        status, body = int(self._buffer[9:12]), bytes(self._buffer[end + 4 : end + 4 + size])
        del self._buffer[: end + 4 + size]
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result((status, body))

    async def call(self, request: Request) -> tuple[int, bytes]:
        """Send a request and return status and body of its answer."""
        self._waiter = asyncio.get_running_loop().create_future()
        if self._transport is None or self.is_closed:
            raise ConnectionResetError("closed")
        self._transport.write(request.raw())
        return await self._waiter

    def close(self) -> None:
        """Let go of the socket."""
        if self._transport is not None:
            self._transport.close()


async def connect(port: int) -> Connection:
    """Return an open connection to a server of this machine."""
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(Connection, "127.0.0.1", port)
    return connection


async def bodies(port: int, requests: Sequence[Request]) -> dict[Request, bytes]:
    """Return the body of each request, asked one after another over one connection.

    Raises:
        SystemExit: a request is not answered with 200.
    """
    connection = await connect(port)
    found = {}
    for request in requests:
        status, body = await connection.call(request)
        if status != 200:
            raise SystemExit(f"{request.path} answered {status}: {body[:200]!r}")
        found[request] = body
    connection.close()
    return found


async def closed_loop(
    port: int, requests: Sequence[Request], *, connections: int, expected: Bodies
) -> Tally:
    """Ask all requests once, in order, each connection taking the next one when it is free."""
    tally = Tally()
    waiting = iter(requests)

    async def client() -> None:
        connection = await connect(port)
        for request in waiting:
            await _timed(connection, request, time.perf_counter(), tally, expected)
            if connection.is_closed:
                connection = await connect(port)
        connection.close()

    await asyncio.gather(*(client() for _ in range(connections)))
    return tally


async def open_loop(
    port: int,
    requests: Sequence[Request],
    *,
    rate: float,
    seconds: float,
    expected: Bodies,
    connections: int = 512,
) -> Tally:
    """Ask the requests in turn at a fixed rate, evenly spaced; time counts from when each is due.

    A call for which no connection is free waits for one, and the wait counts.
    """
    free: asyncio.LifoQueue[Connection] = asyncio.LifoQueue()
    for _ in range(connections):
        free.put_nowait(await connect(port))
    tally = Tally()
    tasks: set[asyncio.Task[None]] = set()

    async def one(request: Request, due: float) -> None:
        connection = await free.get()
        if connection.is_closed:
            connection = await connect(port)
        await _timed(connection, request, due, tally, expected)
        free.put_nowait(connection)

    started = time.perf_counter()
    for number in range(int(rate * seconds)):
        due = started + number / rate
        now = time.perf_counter()
        if due > now:
            await asyncio.sleep(due - now)
        elif now - due > 0.05:
            tally.late += 1
        task = asyncio.create_task(one(requests[number % len(requests)], due))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    await asyncio.gather(*tasks)
    while not free.empty():
        free.get_nowait().close()
    return tally


async def _timed(
    connection: Connection, request: Request, due: float, tally: Tally, expected: Bodies
) -> None:
    try:
        async with asyncio.timeout(TIMEOUT_S):
            status, body = await connection.call(request)
    except (OSError, TimeoutError) as error:
        connection.close()
        tally.failures[type(error).__name__] += 1
        return
    tally.statuses[status] += 1
    if status == 200:
        tally.seconds.append(time.perf_counter() - due)
        tally.wrong += request in expected and expected[request] != body
