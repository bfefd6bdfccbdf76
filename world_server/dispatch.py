"""The way of every request: route, key, body, handler, answer, count."""

from __future__ import annotations

import logging
import time
from dataclasses import replace

from world_server.errors import BodyTooLargeError, UnauthorizedError
from world_server.exchange import Receive, Reply, Request, Scope, Send, send_reply
from world_server.http_body import drop_rest, read_body
from world_server.problems import answered
from world_server.routing import Access, Match, check_method, resolve
from world_server.service import Service

SCHEMA_PATH = "/openapi.json"

_LOG = logging.getLogger(__name__)


class Dispatch:
    """Answers what the routes know and leaves the schema to the app inside.

    Plain ASGI on purpose: a middleware that wraps ``receive`` would hide that a client left.
    """

    def __init__(self, app: object, service: Service) -> None:
        self._app = app
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection event of the ASGI protocol."""
        if scope["type"] != "http" or scope["path"] == SCHEMA_PATH:
            await self._app(scope, receive, send)  # type: ignore[operator]  # the next ASGI app
            return
        started = time.perf_counter()
        match = resolve(scope)
        request = Request(scope, receive, world=match.world, tail=match.tail)
        work = self._work(match, request, scope)
        reply = await answered(work, match.route.render, request)
        if reply is not None:
            is_large = reply.status == BodyTooLargeError.status
            rest = drop_rest(request.receive) if is_large else None
            await send_reply(send, self._signed(reply, request), rest=rest)
        self._count(match, reply, time.perf_counter() - started)

    async def _work(self, match: Match, request: Request, scope: Scope) -> Reply:
        check_method(match.route, request.method)
        self._check_key(match, request)
        if request.method == "POST":
            settings = self._service.settings
            request.body = await read_body(
                scope, request.receive, limit=settings.body_limit, seconds=settings.body_s
            )
        return await match.route.handler(self._service, request)

    def _check_key(self, match: Match, request: Request) -> None:
        keys = self._service.keys
        if match.route.access is Access.PUBLIC:
            return
        key = request.key(in_query=match.route.key_in_query)
        if match.route.access is Access.CONTROL:
            if not keys.opens_control(key):
                raise UnauthorizedError(
                    "This is a control route.", hint="Send the control key; WORLD_CONTROL_KEY."
                )
        elif not keys.opens(key):
            raise UnauthorizedError("The key is missing or not known.", hint="Send X-API-KEY.")

    def _signed(self, reply: Reply, request: Request) -> Reply:
        """Add the outcome for a caller with the control key; an agent sees only the answer."""
        if not self._service.keys.has_control:
            return reply
        if not self._service.keys.opens_control(request.key(in_query=False)):
            return reply
        headers = {**reply.headers, "X-World-Outcome": reply.outcome}
        if reply.degraded:
            headers["X-World-Degraded"] = reply.degraded
        return replace(reply, headers=headers)

    def _count(self, match: Match, reply: Reply | None, seconds: float) -> None:
        metrics = self._service.metrics
        outcome = "client_left" if reply is None else reply.outcome
        metrics.count_request(match.route.name, outcome, seconds)
        if reply is None:
            metrics.client_left += 1
        if _LOG.isEnabledFor(logging.DEBUG):
            _LOG.debug("%s %s %.1f ms", match.route.name, outcome, seconds * 1e3)
