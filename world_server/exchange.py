"""One request as the handlers see it, and the reply they give back as bytes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"
HTML = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer: status, body and the headers beyond type and length.

    ``outcome`` and ``degraded`` (the mode a search was answered in instead of its own) are told to
    callers with the control key.
    """

    body: bytes
    status: int = 200
    media_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    outcome: str = "ok"
    degraded: str = ""


class Request:
    """One HTTP request; headers and query string are parsed when asked for.

    ``tail`` is what follows the route in the raw path, with the query string untouched: the target
    of a Jina Reader call. ``world`` is the name of the world asked, "" for the first.
    """

    __slots__ = ("_query", "_scope", "body", "method", "receive", "tail", "world")

    def __init__(
        self, scope: Scope, receive: Receive, *, world: str = "", tail: str = "", body: bytes = b""
    ) -> None:
        self._scope = scope
        self._query: dict[str, str] | None = None
        self.receive = receive
        self.method: str = scope["method"]
        self.world = world
        self.tail = tail
        self.body = body

    def header(self, name: bytes) -> str:
        """Return the first value of a header by its lower-case name, "" if there is none."""
        for key, value in self._scope["headers"]:
            if key == name:
                found: bytes = value
                return found.decode("latin-1")
        return ""

    @property
    def query_string(self) -> bytes:
        """The raw query string without its question mark."""
        raw: bytes = self._scope.get("query_string", b"")
        return raw

    @property
    def query(self) -> dict[str, str]:
        """The parameters of the query string; of a name given twice the last one holds."""
        if self._query is None:
            text = self.query_string.decode("utf-8", "replace")
            pairs = parse_qsl(text, keep_blank_values=True, errors="replace") if text else ()
            self._query = dict(pairs)
        return self._query

    def key(self, *, in_query: bool) -> str:
        """Return the key the client shows, by header or by query parameter, "" if none."""
        key = self.header(b"x-api-key")
        if key:
            return key
        authorization = self.header(b"authorization")
        if authorization[:7].lower() == "bearer ":
            return authorization[7:].strip()
        if in_query and self.query_string:
            return self.query.get("api_key") or self.query.get("apiKey") or ""
        return ""


async def send_reply(send: Send, reply: Reply, *, rest: Awaitable[None] | None = None) -> None:
    """Send a reply with its type, its length and the headers that keep browsers from guessing.

    ``rest`` takes what is still to come of the request; it is awaited when the client has the whole
    reply, before the connection may be closed.
    """
    headers = [
        (b"content-type", reply.media_type.encode("latin-1")),
        (b"content-length", str(len(reply.body)).encode("ascii")),
        (b"x-content-type-options", b"nosniff"),
    ]
    for name, value in reply.headers.items():
        headers.append((name.encode("latin-1"), value.encode("latin-1")))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    if rest is not None:
        await send({"type": "http.response.body", "body": reply.body, "more_body": True})
        await rest
        await send({"type": "http.response.body", "body": b""})
    else:
        await send({"type": "http.response.body", "body": reply.body})
