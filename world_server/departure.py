"""Work that stops when its client leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from world_server.errors import ClientLeftError
from world_server.exchange import Receive

Result = TypeVar("Result")


async def while_connected(receive: Receive, work: Awaitable[Result]) -> Result:
    """Return the result of the work; cancel it when the client closes the connection.

    The body of the request must have been read: whatever else arrives is dropped.

    Raises:
        ClientLeftError: the client left before the work was done.
    """
    watch = _Watch(receive)
    try:
        return await work
    except asyncio.CancelledError:
        if not watch.left:
            raise
        watch.caller.uncancel()
        raise ClientLeftError("The client left before the answer.") from None
    finally:
        watch.stop()


class _Watch:
    """Waits for the disconnect and cancels the task that made this object."""

    __slots__ = ("_stopped", "_task", "caller", "left")

    def __init__(self, receive: Receive) -> None:
        task = asyncio.current_task()
        assert task is not None, "a coroutine runs in a task"  # noqa: S101 - for the type
        self.caller: asyncio.Task[object] = task
        self.left = False
        self._stopped = False
        self._task = asyncio.create_task(_disconnect(receive))
        self._task.add_done_callback(self._gone)

    def stop(self) -> None:
        """End the watch; a disconnect noticed from now on cancels nothing."""
        self._stopped = True
        self._task.cancel()

    def _gone(self, task: asyncio.Task[None]) -> None:
        if not self._stopped and not task.cancelled():
            self.left = True
            self.caller.cancel()


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
