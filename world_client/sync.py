"""The same client for code that is not asynchronous: the async object behind a portal."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from world_client.client import WorldClient
from world_client.wire import FetchResponse, SearchRequest, SearchResponse

T = TypeVar("T")


class SyncWorldClient:
    """Runs a :class:`WorldClient` on an event loop in a thread of its own; safe for many threads.

    Args:
        client: address of the server, such as ``http://127.0.0.1:8000``, or an asynchronous
            client, which belongs to this object from now on.
        key: API key for an address; an asynchronous client has its own.

    Raises:
        ConnectionFailedError: the address has no ``http://`` or ``https://``.
    """

    def __init__(self, client: WorldClient | str, *, key: str = "") -> None:
        self._client = WorldClient(client, key=key) if isinstance(client, str) else client
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="world-client", daemon=True
        )
        self._thread.start()

    def search(self, query: str, *, count: int = 10, offset: int = 0) -> SearchResponse:
        """Return what :meth:`WorldClient.search` returns."""
        return self._run(self._client.search(query, count=count, offset=offset))

    def send_search(self, request: SearchRequest) -> SearchResponse:
        """Return what :meth:`WorldClient.send_search` returns."""
        return self._run(self._client.send_search(request))

    def search_batch(self, requests: Sequence[SearchRequest]) -> list[SearchResponse]:
        """Return what :meth:`WorldClient.search_batch` returns."""
        return self._run(self._client.search_batch(requests))

    def fetch(self, url: str) -> FetchResponse:
        """Return what :meth:`WorldClient.fetch` returns."""
        return self._run(self._client.fetch(url))

    def close(self) -> None:
        """Close all connections and end the thread."""
        if self._loop.is_closed():
            return
        self._run(self._client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        """Enter the context."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close all connections and end the thread."""
        self.close()

    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(call, self._loop).result()
