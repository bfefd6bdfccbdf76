"""A scripted HTTP server on a real socket, so that the client meets real connections."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

Reply = tuple[int, dict[str, str], bytes]
Handler = Callable[["Request"], Awaitable[Reply | None]]


@dataclass
class Request:
    """One request as it arrived; ``connection`` counts connections from 1."""

    connection: int
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class ScriptedServer:
    """Answers by ``handler``; ``None`` closes the connection without an answer."""

    handler: Handler
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    url: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.decode().split("\r\n")
                fields = (line.split(": ", 1) for line in lines[1:] if line)
                headers = {name.lower(): value for name, value in fields}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                request = Request(
                    number, lines[0].split()[1], headers, json.loads(body) if body else None
                )
                self.requests.append(request)
                reply = await self.handler(request)
                if reply is None:
                    break
                status, extra, content = reply
                sent = {"Content-Length": str(len(content)), **extra}
                rows = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
                writer.write(f"HTTP/1.1 {status} X\r\n{rows}\r\n".encode() + content)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@pytest.fixture
async def scripted() -> AsyncIterator[Callable[[Handler], Awaitable[ScriptedServer]]]:
    """Return a function that starts a server with a handler; all stop after the test."""
    running: list[asyncio.Server] = []

    async def start(handler: Handler) -> ScriptedServer:
        server = ScriptedServer(handler)
        listener = await asyncio.start_server(server.serve, "127.0.0.1", 0, backlog=4096)
        running.append(listener)
        server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        return server

    yield start
    for listener in running:
        listener.close()
