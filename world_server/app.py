"""The application: worlds and settings in, an ASGI app out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib import metadata

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from world_server.admission import Admission
from world_server.dialects.pages import load_assets
from world_server.dispatch import SCHEMA_PATH, Dispatch
from world_server.keys import KeyRing
from world_server.metrics import Metrics
from world_server.openapi import document
from world_server.readiness import Readiness
from world_server.service import Service
from world_server.settings import Settings
from world_server.stopping import StopSignals
from world_server.watching import watch
from world_server.worlds import Worlds


class WorldApp(FastAPI):
    """A FastAPI app whose requests meet the plain routes first.

    The routes stand before the framework, not in it: its own way to a route costs more than the
    route's work. The schema and the life-cycle are the framework's.
    """

    entry: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection event of the ASGI protocol."""
        await self.entry(scope, receive, send)

    async def inner(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the framework serve what no plain route takes."""
        await super().__call__(scope, receive, send)


def create_app(worlds: Worlds, settings: Settings) -> WorldApp:
    """Return the app that serves open worlds; it closes them when its life ends.

    The routes answer without the app's life-cycle too (as an in-process client uses them); then
    nobody follows the pointers and the signals.

    Raises:
        SettingsError: the keys file cannot be read.
    """
    service = Service(
        settings=settings,
        worlds=worlds,
        keys=KeyRing(settings.keys, keys_file=settings.keys_file, control=settings.control_key),
        admission=Admission(
            running_limit=settings.running_limit,
            queue_limit=settings.queue_limit,
            wait_s=settings.wait_s,
        ),
        metrics=Metrics(),
        readiness=Readiness(worlds, seconds=settings.ready_s, deadline=settings.ready_deadline_s),
        assets=load_assets(),
    )

    @asynccontextmanager
    async def life(_app: FastAPI) -> AsyncIterator[dict[str, float]]:
        StopSignals(lambda: setattr(service, "stopping", True)).install()
        await worlds.start()
        watcher = asyncio.create_task(watch(service))
        # What is yielded reaches the protocol of each connection, see protocol.py.
        try:
            yield {"head_limit": settings.head_limit, "head_s": settings.head_s}
            watcher.cancel()
            with suppress(asyncio.CancelledError):
                await watcher
        finally:
            watcher.cancel()
            await worlds.close()

    app = WorldApp(
        title="SearchWorld",
        version=metadata.version("searchworld"),
        openapi_url=SCHEMA_PATH,
        docs_url=None,  # its page loads scripts from elsewhere
        redoc_url=None,
        lifespan=life,
    )
    app.openapi = lambda: document(app.title, app.version)  # type: ignore[method-assign]
    app.entry = Dispatch(app.inner, service)
    if settings.cors_origins:
        app.entry = CORSMiddleware(
            app.entry,
            allow_origins=settings.cors_origins,
            allow_methods=["GET", "POST"],
            allow_headers=["authorization", "content-type", "x-api-key"],
        )
    app.state.service = service
    return app
