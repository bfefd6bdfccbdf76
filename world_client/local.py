"""The client without a network: calls an ASGI app in this process by the same contract."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import httpx

from world_client.client import DEFAULT_DEADLINE, WorldClient

Message = MutableMapping[str, Any]
AsgiApp = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]],
    Awaitable[None],
]


def local_client(app: AsgiApp, *, key: str = "", deadline: float = DEFAULT_DEADLINE) -> WorldClient:
    """Return a client whose calls go straight into ``app``; the answers are those of HTTP.

    The app's life-cycle (its start-up and shutdown) is the caller's business.
    """
    return WorldClient(
        "http://local.invalid",
        key=key,
        deadline=deadline,
        pools=1,
        transport=httpx.ASGITransport(app=app, raise_app_exceptions=False),
    )
