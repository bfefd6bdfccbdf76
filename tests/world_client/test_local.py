"""The local client calls an ASGI app by the same contract, without a socket."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import pytest

from world_client import ServerFailedError, local_client

Message = MutableMapping[str, Any]


async def echo(
    scope: Message,
    receive: Callable[[], Awaitable[Message]],
    send: Callable[[Message], Awaitable[None]],
) -> None:
    message = await receive()
    body = json.loads(message["body"])
    content = {"outcome": "empty", "query": body["query"], "hits": []}
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": json.dumps(content).encode()})


async def failing(
    scope: Message,
    receive: Callable[[], Awaitable[Message]],
    send: Callable[[Message], Awaitable[None]],
) -> None:
    content = {"outcome": "internal", "code": "encoder", "message": "The encoder died."}
    await send({"type": "http.response.start", "status": 503, "headers": []})
    await send({"type": "http.response.body", "body": json.dumps(content).encode()})


async def test_calls_reach_the_app() -> None:
    async with local_client(echo) as client:
        assert (await client.search("q")).query == "q"


async def test_failures_keep_their_type() -> None:
    async with local_client(failing) as client:
        with pytest.raises(ServerFailedError, match="encoder died") as caught:
            await client.search("q")
    assert caught.value.code == "encoder"


def test_importing_the_client_loads_nothing_heavy() -> None:
    program = (
        "import sys, world_client, world_client.cli;"
        "print([name for name in ('numpy', 'torch', 'fastapi', 'sqlalchemy', 'world_core')"
        " if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert shown.stdout.decode().strip() == "[]"
