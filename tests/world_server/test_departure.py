from __future__ import annotations

import asyncio
import contextlib

import pytest

from world_server.departure import while_connected
from world_server.errors import ClientLeftError
from world_server.exchange import Message


class Client:
    """A client that stays until told to leave."""

    def __init__(self) -> None:
        self.gone = asyncio.Event()
        self.asked = 0

    async def receive(self) -> Message:
        self.asked += 1
        if self.asked == 1:
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}


async def test_work_that_ends_first_gives_its_result() -> None:
    client = Client()
    assert await while_connected(client.receive, asyncio.sleep(0.001, "done")) == "done"
    client.gone.set()
    await asyncio.sleep(0.01)  # a departure after the end cancels nothing


async def test_the_work_stops_when_the_client_leaves() -> None:
    client = Client()
    stopped = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()

    asyncio.get_running_loop().call_later(0.01, client.gone.set)
    with pytest.raises(ClientLeftError):
        await while_connected(client.receive, work())
    assert stopped.is_set()
    await asyncio.sleep(0)  # the caller itself goes on


async def test_errors_of_the_work_pass() -> None:
    async def work() -> None:
        raise ValueError("boom")

    with pytest.raises(ValueError, match="boom"):
        await while_connected(Client().receive, work())


async def test_a_cancellation_from_outside_stays_one() -> None:
    task = asyncio.create_task(while_connected(Client().receive, asyncio.sleep(60)))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_departure_and_end_in_the_same_turn_leave_no_stray_cancellation() -> None:
    for _ in range(50):
        client = Client()
        work = asyncio.get_running_loop().create_future()

        def both(client: Client = client, work: asyncio.Future[str] = work) -> None:
            client.gone.set()
            work.set_result("done")

        asyncio.get_running_loop().call_later(0.0001, both)
        with contextlib.suppress(ClientLeftError):
            assert await while_connected(client.receive, work) == "done"
        await asyncio.sleep(0.0002)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_no_watch_is_left_behind() -> None:
    before = len(asyncio.all_tasks())
    await while_connected(Client().receive, asyncio.sleep(0))
    await asyncio.sleep(0.01)
    assert len(asyncio.all_tasks()) == before
