"""Which handler a request is for: by host, by prefix, or by what it looks like at the root."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from urllib.parse import quote

from world_server.dialects import control, jina, native, pages, serper
from world_server.errors import NoRouteError, WrongMethodError
from world_server.exchange import Reply, Request, Scope
from world_server.problems import Renderer
from world_server.service import Service

Handler = Callable[[Service, Request], Awaitable[Reply]]

WORLD_PREFIX = "/w/"
READER_PREFIX = "/jina/"
READER_HOST = "r.jina.ai"
_WORLD = re.compile(r"/w/([a-z0-9][a-z0-9._-]{0,63})(?=/|$)")
_SWITCH = re.compile(r"/v1/worlds/([a-z0-9][a-z0-9._-]{0,63})/switch")
_TARGET = re.compile(r"/https?(?::|%3a)", re.IGNORECASE)


class Access(Enum):
    """Who may ask."""

    PUBLIC = "public"
    KEY = "key"
    CONTROL = "control"


@dataclass(frozen=True, slots=True)
class Route:
    """A handler with its name in the metrics, its methods and the shape of its errors."""

    name: str
    handler: Handler
    render: Renderer
    methods: tuple[str, ...]
    access: Access = Access.KEY
    key_in_query: bool = True


@dataclass(frozen=True, slots=True)
class Match:
    """Where a request goes: the route, the world of its path ("" for the first), what follows."""

    route: Route
    world: str = ""
    tail: str = ""


_ASK = ("GET", "POST")
SEARCH = Route("serper_search", serper.search, serper.render, _ASK)
SCRAPE = Route("serper_scrape", serper.scrape, serper.render, _ASK)
READER = Route("jina_reader", jina.read, jina.render, _ASK, key_in_query=False)
INDEX = Route("index", pages.index, native.render, ("GET",), Access.PUBLIC)
SLASH = Route("index", pages.add_slash, native.render, ("GET",), Access.PUBLIC)
SWITCH = Route("switch", control.switch, native.render, ("POST",), Access.CONTROL)


async def _nowhere(_service: Service, _request: Request) -> Reply:
    raise NoRouteError("Nothing is served at this path.", hint="See /openapi.json.")


NOWHERE = Route("none", _nowhere, native.render, (), Access.PUBLIC)

TABLE: Mapping[str, Route] = {
    "/search": SEARCH,
    "/scrape": SCRAPE,
    "/serper/search": SEARCH,
    "/serper/scrape": SCRAPE,
    "/v1/search": Route("search", native.search, native.render, ("POST",)),
    "/v1/search/batch": Route("search_batch", native.search_batch, native.render, ("POST",)),
    "/v1/fetch": Route("fetch", native.fetch, native.render, ("POST",)),
    "/health": Route("health", pages.health, native.render, ("GET",), Access.PUBLIC),
    "/ready": Route("ready", pages.ready, native.render, ("GET",), Access.PUBLIC),
    "/metrics": Route("metrics", pages.metrics, native.render, ("GET",)),
    "/info": Route("info", pages.info, native.render, ("GET",)),
    "/favicon.ico": Route("ui", pages.icon, native.render, ("GET",), Access.PUBLIC),
    "/ui/app.js": Route("ui", pages.script, native.render, ("GET",), Access.PUBLIC),
    "/ui/style.css": Route("ui", pages.style, native.render, ("GET",), Access.PUBLIC),
}
"""Fixed paths at the root."""

_HOSTS: Mapping[str, Mapping[str, Route]] = {
    "google.serper.dev": {"/search": SEARCH, "/scrape": SCRAPE},
    "scrape.serper.dev": {"/": SCRAPE, "/scrape": SCRAPE},
}


def resolve(scope: Scope) -> Match:
    """Return where an HTTP request goes; ``NOWHERE`` when nothing is served there."""
    path = _raw_path(scope)
    world = ""
    if path.startswith(WORLD_PREFIX):
        found = _WORLD.match(path)
        if found is None:
            return Match(NOWHERE)
        world = found[1]
        path = path[found.end() :]
        if not path and scope["method"] in ("GET", "HEAD"):
            return Match(SLASH, world)
        path = path or "/"
    host = _header(scope, b"host").partition(":")[0].lower()
    if host == READER_HOST:
        route, tail = _reader(scope, path[1:])
    elif host in _HOSTS:
        route, tail = _HOSTS[host].get(path, NOWHERE), ""
    else:
        route, tail = _by_path(scope, path)
    return Match(route, world, tail)


def check_method(route: Route, method: str) -> None:
    """Refuse a method that the route is not for; HEAD is let in where GET is.

    Raises:
        WrongMethodError: it is another.
    """
    if not route.methods or method in route.methods:
        return
    if method != "HEAD" or "GET" not in route.methods:
        raise WrongMethodError(f"{method[:20]} is not for this path.", allowed=route.methods)


def _root(scope: Scope) -> Route:
    """Return what is meant by ``/``, which four kinds of caller use."""
    if scope["method"] == "POST":
        return SCRAPE if _header(scope, b"x-api-key") else READER
    has_url = re.search(rb"(?:^|&)url=", scope.get("query_string", b""))
    return READER if has_url else INDEX


def _by_path(scope: Scope, path: str) -> tuple[Route, str]:
    """Return route and tail of a path on our own host."""
    switch = _SWITCH.fullmatch(path)
    if switch is not None:
        return SWITCH, switch[1]
    if path == "/":
        return _root(scope), ""
    if path.startswith(READER_PREFIX):
        return _reader(scope, path[len(READER_PREFIX) :])
    if _TARGET.match(path):
        return _reader(scope, path[1:])
    return TABLE.get(path) or TABLE.get(path.rstrip("/"), NOWHERE), ""


def _reader(scope: Scope, target: str) -> tuple[Route, str]:
    query: bytes = scope.get("query_string", b"")
    if not target:
        return (READER if scope["method"] == "POST" or query else INDEX), ""
    return READER, f"{target}?{query.decode('utf-8', 'replace')}" if query else target


def _raw_path(scope: Scope) -> str:
    raw: bytes | None = scope.get("raw_path")
    if raw is None:
        return quote(scope["path"], safe="/:@!$&'()*+,;=~")
    return raw.decode("utf-8", "replace") or "/"


def _header(scope: Scope, name: bytes) -> str:
    for key, value in scope["headers"]:
        if key == name:
            found: bytes = value
            return found.decode("latin-1")
    return ""
