"""The strange bodies of the case set, on every route that takes JSON: never a 500."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import pytest

from tests.world_server.conftest import Running, Starter

SERPER = {
    "plain": 200,
    "half surrogate": 200,
    "NUL": 200,
    "NaN number": 400,
    "Infinity by exponent": 400,
    "num as text": 200,
    "num 0": 400,
    "num -1": 400,
    "num 10^9": 200,
    "page 10^9": 200,
    "not UTF-8": 400,
    "BOM in front": 200,
    "key twice": 200,
    "empty body": 400,
    "list of queries": 200,
    "q null": 400,
    "q list": 400,
    "q number": 400,
    "q blank": 400,
    "unknown field": 200,
    "cut off": 400,
    "form body": 400,
    "right-to-left marks": 200,
    "generated: 100,000 nested arrays": 400,
    "generated: q of 64 MiB": 413,
}
NATIVE = {**SERPER, "num 10^9": 400, "list of queries": 400}


def bodies(shared_dir: Path) -> dict[str, bytes]:
    """Return every body of the set by name, the two large ones made here."""
    found = {}
    path = shared_dir / "cases" / "inputs" / "http-bodies.jsonl"
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        if row["body_b64"] is not None:
            found[row["name"]] = base64.b64decode(row["body_b64"])
        elif "nested" in row["name"]:
            found[row["name"]] = b"[" * 100_000 + b"]" * 100_000
        else:
            found[row["name"]] = b'{"q": "' + b"x" * (64 << 20) + b'"}'
    return found


def allowed(shared_dir: Path) -> dict[str, set[int]]:
    """Return the statuses that the set allows for each body."""
    path = shared_dir / "cases" / "inputs" / "http-bodies.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return {
        row["name"]: {
            status
            for status in (200, 400, 413, 415, 422)
            if str(status) in row["expect"]
            or (status == 200 and re.search("capped|last one wins", row["expect"]))
        }
        or {200, 400}
        for row in rows
    }


@pytest.mark.shared
async def test_serper_answers_as_the_set_expects(running: Running, shared_dir: Path) -> None:
    expected = allowed(shared_dir)
    seen = {}
    for name, body in bodies(shared_dir).items():
        reply = await running.client.post(
            "/search", content=body, headers={"Content-Type": "application/json"}
        )
        seen[name] = reply.status_code
        if reply.status_code != 200:
            assert set(reply.json()) == {"message", "statusCode"}, name
            assert reply.json()["statusCode"] == reply.status_code
            assert len(reply.content) < 500
        elif name == "list of queries":
            assert len(reply.json()) == 2
        else:
            assert "organic" in reply.json()
        assert reply.status_code in expected[name], name
    assert seen == SERPER


@pytest.mark.shared
@pytest.mark.parametrize(
    ("path", "field", "statuses"),
    [
        ("/v1/search", "query", NATIVE),
        ("/v1/search/batch", "", dict.fromkeys(SERPER, 400) | {"generated: q of 64 MiB": 413}),
    ],
)
async def test_native_routes(
    running: Running, shared_dir: Path, path: str, field: str, statuses: dict[str, int]
) -> None:
    seen = {}
    for name, body in bodies(shared_dir).items():
        sent = body.replace(b'"q"', f'"{field}"'.encode()).replace(b'"num"', b'"count"')
        reply = await running.client.post(path, content=sent)
        seen[name] = reply.status_code
        if reply.status_code != 200:
            assert reply.json()["outcome"] == "bad_request", name
            assert len(reply.content) < 1000
    assert seen == statuses


@pytest.mark.shared
@pytest.mark.parametrize("path", ["/v1/fetch", "/scrape", "/"])
async def test_routes_that_take_an_address(running: Running, shared_dir: Path, path: str) -> None:
    """The words of the set are no addresses of the stub: a miss is as good as a refusal here."""
    for name, body in bodies(shared_dir).items():
        sent = body.replace(b'"q"', b'"url"')
        reply = await running.client.post(path, content=sent)
        good = SERPER[name] == 200 and name != "list of queries"
        wanted = {200, 404, 422, 400} if good or name.startswith("num") else {400, 413}
        assert reply.status_code in wanted, (name, reply.status_code)
        if name.startswith("generated: q"):
            assert reply.status_code == 413


async def test_a_large_body_is_refused_before_it_is_read(start: Starter) -> None:
    running = start(body_limit=1000)
    taken = 0

    async def parts() -> object:
        nonlocal taken
        for _ in range(1000):
            taken += 100
            yield b"x" * 100

    for path in ("/search", "/v1/search", "/v1/fetch", "/scrape", "/"):
        stated = await running.client.post(path, content=b"x" * 1001)
        assert stated.status_code == 413
        assert stated.headers["connection"] == "close"
    unstated = await running.client.post("/search", content=parts())  # type: ignore[arg-type]
    assert unstated.status_code == 413
    assert unstated.json() == {"message": "The body is larger than 1000 bytes.", "statusCode": 413}
    assert running.engine.begun == 0


@pytest.mark.parametrize("content_type", ["text/plain", "application/json", "", "application/x"])
async def test_json_is_json_whatever_it_is_called(running: Running, content_type: str) -> None:
    reply = await running.client.post(
        "/search", content=b'{"q": "ferry"}', headers={"Content-Type": content_type}
    )
    assert reply.status_code == 200
