"""What people and operators look at: the first page, health, readiness, metrics, the worlds."""

from __future__ import annotations

from contextlib import suppress
from importlib import metadata, resources

from world_core.errors import WorldError
from world_core.manifest import Manifest
from world_server.dialects import times
from world_server.dialects.jsonbytes import json_reply
from world_server.errors import EngineLostError
from world_server.exchange import HTML, TEXT, Reply, Request
from world_server.metrics import render as render_metrics
from world_server.query_encoder import EncoderReport
from world_server.service import Service

ASSETS = {
    "index.html": HTML,
    "app.js": "text/javascript; charset=utf-8",
    "style.css": "text/css; charset=utf-8",
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


def load_assets() -> dict[str, bytes]:
    """Return the files of the first page by name."""
    folder = resources.files("world_server.ui")
    return {name: folder.joinpath(name).read_bytes() for name in ASSETS}


async def index(service: Service, request: Request) -> Reply:
    """Return the first page to a browser, and a short text about the routes to everybody else."""
    if "text/html" in request.header(b"accept").lower():
        return _asset(service, "index.html")
    names = ", ".join(world.manifest.name for world in service.worlds.opened)
    text = (
        f"SearchWorld serves: {names}\n\n"
        'Search (Serper):  POST /search   {"q": "..."}\n'
        "Read (Jina):      GET  /https://address\n"
        "Native:           POST /v1/search, /v1/search/batch, /v1/fetch\n"
        "Schema:           GET  /openapi.json\n"
    )
    return Reply(text.encode(), media_type=TEXT)


async def add_slash(_service: Service, request: Request) -> Reply:
    """Send a caller of ``/w/NAME`` to ``/w/NAME/``, where the page finds its files."""
    query = b"?" + request.query_string if request.query_string else b""
    # Relative, so that it holds behind a proxy that adds a prefix.
    location = f"{request.world}/{query.decode('latin-1')}"
    return Reply(b"", 307, TEXT, {"Location": location})


async def script(service: Service, _request: Request) -> Reply:
    """Return the script of the first page."""
    return _asset(service, "app.js")


async def style(service: Service, _request: Request) -> Reply:
    """Return the style sheet of the first page."""
    return _asset(service, "style.css")


async def icon(_service: Service, _request: Request) -> Reply:
    """Tell a browser that there is no icon, so that it does not report a missing one."""
    return Reply(b"", status=204)


async def health(_service: Service, _request: Request) -> Reply:
    """Say that the process lives and its event loop turns."""
    return json_reply({"status": "ok"})


async def ready(service: Service, _request: Request) -> Reply:
    """Say whether calls would be answered truly: 200, or 503 with the failing part of a world."""
    if service.stopping:
        return json_reply({"ready": False, "reason": "stopping"}, status=503, outcome="internal")
    report = await service.readiness.report()
    status, outcome = (200, "ok") if report.is_ready else (503, "internal")
    body = {"ready": report.is_ready, "worlds": report.worlds}
    return json_reply(body, status=status, outcome=outcome)


async def metrics(service: Service, _request: Request) -> Reply:
    """Return the metrics of all processes, of this one alone while the engine process is lost."""
    counts = service.counts()
    with suppress(EngineLostError):  # world_counted_processes says so
        counts = await service.worlds.totals(counts)
    text = render_metrics(counts, await _encoders(service))
    return Reply(text, media_type="text/plain; version=0.0.4; charset=utf-8")


async def _encoders(service: Service) -> dict[str, EncoderReport]:
    """Return how the encoder of each open world with vectors is."""
    reports = {}
    for world in service.worlds.opened:
        if world.manifest.encoder is None:
            continue
        try:
            report = await world.engine.encoder_report()
        except WorldError as error:  # the engine itself cannot be asked
            report = EncoderReport(state=error.code)
        if report is not None:
            reports[world.manifest.name] = report
    return reports


async def info(service: Service, _request: Request) -> Reply:
    """Return what is served: names, ids, counts, clocks, encoders and engines."""
    worlds = [_described(world.manifest) for world in service.worlds.opened]
    return json_reply({"version": metadata.version("searchworld"), "worlds": worlds})


def _described(manifest: Manifest) -> dict[str, object]:
    dense, sparse, reranker = manifest.dense, manifest.sparse, manifest.reranker
    return {
        "name": manifest.name,
        "version": manifest.version,
        "world_id": manifest.world_id,
        "clock": times.iso(manifest.clock),
        "capture_from": times.iso(manifest.capture_from),
        "capture_to": times.iso(manifest.capture_to),
        "languages": list(manifest.languages),
        "counts": manifest.counts.model_dump(),
        "analyzer": manifest.analyzer_id,
        "encoder": manifest.encoder_id or None,
        "lexical": f"{manifest.lexical.engine} {manifest.lexical.engine_version}",
        "canaries": [canary.query for canary in manifest.canaries],
        "dense": None if dense is None else {"kind": dense.kind, "rows": dense.rows},
        "sparse": None if sparse is None else {"encoder": sparse.encoder_id, "bits": sparse.bits},
        "reranker": None if reranker is None else reranker.reranker_id,
    }


def _asset(service: Service, name: str) -> Reply:
    return Reply(service.assets[name], media_type=ASSETS[name], headers=_HEADERS)
