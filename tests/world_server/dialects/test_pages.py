from __future__ import annotations

import re

import pytest

from tests.world_server.conftest import Running, Starter
from tests.world_server.stub import manifest
from world_server.dialects.pages import ASSETS, load_assets

HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


async def test_a_browser_gets_the_page_and_others_the_index(running: Running) -> None:
    page = await running.client.get("/", headers=HTML)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "<title>SearchWorld</title>" in page.text
    text = await running.client.get("/")
    assert text.headers["content-type"] == "text/plain; charset=utf-8"
    assert "POST /search" in text.text
    assert "stub" in text.text


async def test_the_page_allows_no_script_but_ours(running: Running) -> None:
    for path in ("/", "/ui/app.js", "/ui/style.css", "/w/stub/", "/w/stub/ui/app.js"):
        reply = await running.client.get(path, headers=HTML)
        assert reply.status_code == 200
        policy = reply.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["referrer-policy"] == "no-referrer"


def test_the_page_needs_nothing_from_elsewhere_and_nothing_inline() -> None:
    assets = {name: body.decode() for name, body in load_assets().items()}
    assert set(assets) == set(ASSETS)
    for text in assets.values():
        assert not re.search(r"(src|href|import|url\()\s*=?\s*[\"']?(https?:)?//", text)
    html = assets["index.html"]
    assert not re.search(r"<script(?![^>]*src=)", html)
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=", html)
    script = assets["app.js"]
    for way in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "Function(",
    ):
        assert way not in script


async def test_the_icon_is_empty(running: Running) -> None:
    reply = await running.client.get("/favicon.ico")
    assert (reply.status_code, reply.content) == (204, b"")


async def test_info_describes_every_world(start: Starter) -> None:
    reply = await start(names=("b", "a")).client.get("/info")
    body = reply.json()
    assert [world["name"] for world in body["worlds"]] == ["b", "a"]
    first = body["worlds"][0]
    assert first["world_id"] == manifest("b").world_id
    assert first["clock"] == "2024-06-01T00:00:00Z"
    assert first["counts"]["pages"] == 250
    assert first["canaries"] == ["canary 0"]
    assert (first["lexical"], first["dense"], first["encoder"]) == ("stub 1", None, None)
    assert body["version"]


async def test_health_needs_nothing(running: Running) -> None:
    assert (await running.client.get("/health")).json() == {"status": "ok"}
    assert running.engine.begun == 0


async def test_metrics_tell_routes_outcomes_and_steps(running: Running) -> None:
    await running.client.post("/search", json={"q": "x"})
    await running.client.post("/search", json={})
    await running.client.post("/v1/fetch", json={"url": "https://nowhere.example/"})
    reply = await running.client.get("/metrics")
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = reply.text.splitlines()
    assert 'world_requests_total{route="serper_search",outcome="ok"} 1' in lines
    assert 'world_requests_total{route="serper_search",outcome="bad_request"} 1' in lines
    assert 'world_requests_total{route="fetch",outcome="not_in_world"} 1' in lines
    for step in ("wait", "stub", "fetch"):
        assert any(line.startswith(f'world_step_calls_total{{step="{step}"}}') for line in lines)


@pytest.mark.parametrize(
    ("path", "open_to_all"),
    [
        ("/health", True),
        ("/ready", True),
        ("/", True),
        ("/ui/app.js", True),
        ("/metrics", False),
        ("/info", False),
    ],
)
async def test_what_a_key_closes(start: Starter, path: str, open_to_all: bool) -> None:
    client = start(keys=("good",)).client
    assert (await client.get(path)).status_code == (200 if open_to_all else 401)
    assert (await client.get(path, headers={"X-API-KEY": "good"})).status_code == 200


async def test_a_world_without_its_slash_is_sent_to_it(running: Running) -> None:
    for query in ("", "?q=a%20b"):
        sent = await running.client.get(f"/w/stub{query}", follow_redirects=False)
        assert (sent.status_code, sent.headers["location"]) == (307, f"stub/{query}")
        page = await running.client.get(f"/w/stub{query}", follow_redirects=True)
        assert (page.status_code, page.url.path) == (200, "/w/stub/")
