"""Serving, clients and the shape of answers: RB-041 to RB-051, and addresses of RB-054."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import re
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cases.worlds import Built, Served, parsed
from tests.support import RunningServer, running_server
from world_client import WorldClient

pytestmark = pytest.mark.shared

HEAVY = {
    "searches": [
        {
            "query": " ".join(f"ferry{number} lamp{number * place}" for number in range(500)),
            "count": 100,
        }
        for place in range(30)
    ]
}
"""A batch that keeps the engine at work for a while."""


def test_bodies_of_every_kind_get_the_expected_status(inputs: Path, served: Served) -> None:
    rows = [json.loads(line) for line in (inputs / "http-bodies.jsonl").read_text().splitlines()]
    sent = {row["name"]: row for row in rows if row["body_b64"]}
    assert len(sent) == 22
    for name, row in sent.items():
        expected = {int(status) for status in re.findall(r"\b[245]\d\d\b", row["expect"])}
        expected |= {400} if "blank" in name else set()
        expected |= {200} if "documented" in row["expect"] else set()
        for path in ("/search", "/w/dumps/search", "/serper/search"):
            answer = served.ask(path, base64.b64decode(row["body_b64"]))
            assert answer.status in expected, (name, answer.status, answer.body[:200])
            if answer.status >= 400:
                assert served_message(answer.json())
    assert served.ask("/search", b"").status == 400
    nested = b'{"q":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    assert served.ask("/search", nested).status == 400


def served_message(body: object) -> str:
    assert isinstance(body, dict)
    assert body["statusCode"] >= 400
    return str(body["message"])


def test_a_body_of_64_mib_is_refused_early_and_stays_outside(served: Served) -> None:
    pid = served.server.process.pid
    before = _memory(pid)
    host, port = served.server.url.removeprefix("http://").split(":")
    head = (
        f"POST /search HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer key-of-the-cases\r\n"
        f"Content-Type: application/json\r\nContent-Length: {64 << 20}\r\n\r\n"
    )
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(head.encode() + b'{"q": "' + b"a" * 1000)
        said = connection.recv(65536)
    assert said.startswith(b"HTTP/1.1 413 ")
    assert _memory(pid) <= before + 8 * 1024


def _memory(pid: int) -> int:
    """Return the highest resident memory of a process in KiB."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", text)[1])  # type: ignore[index]


@pytest.mark.parametrize("size", [(1 << 20) + 1, 3 << 20])
def test_a_client_that_sends_it_all_still_hears_the_refusal(size: int, served: Served) -> None:
    answer = served.ask("/search", b"a" * size)
    assert answer.status == 413
    assert "larger" in served_message(answer.json())


def test_rb_044_every_flag_on_and_off(served: Served) -> None:
    fields: dict[str, tuple[object, ...]] = {
        "count": (None, 1, 100),
        "offset": (None, 0, 10_000),
        "mode": ("hybrid", "lexical", "dense"),
        "explain": (None, True, False),
        "published_from": (None, "2021-01-01"),
        "published_to": (None, "2021-01-01T00:00:00Z"),
    }
    for values in itertools.product(*fields.values()):
        given = dict(zip(fields, values, strict=True))
        body = {name: value for name, value in given.items() if value is not None}
        answer = parsed(served.ask("/w/two-docs/v1/search", {"query": "ferry", **body}))
        hits = answer["hits"]
        assert isinstance(hits, list)
        assert all(("parts" in hit) is bool(given["explain"]) for hit in hits)


def test_rb_044_every_serper_field_on_and_off(served: Served) -> None:
    fields: dict[str, tuple[object, ...]] = {
        "num": (None, 5, "5"),
        "page": (None, 2),
        "gl": (None, "cn"),
        "hl": (None, "zh-cn"),
        "location": (None, "United States"),
        "tbs": (None, "qdr:y2", "sbd:1"),
        "autocorrect": (None, False, "true"),
    }
    for values in itertools.product(*fields.values()):
        given = zip(fields, values, strict=True)
        body = {name: value for name, value in given if value is not None}
        answer = parsed(served.ask("/w/dumps/search", {"q": "ferry", **body}))
        check_organic(answer)


def check_organic(answer: dict[str, object]) -> int:
    organic = answer["organic"]
    assert isinstance(organic, list)
    for position, item in enumerate(organic, 1):
        assert item["position"] == position
        for name in ("title", "link", "snippet"):
            assert isinstance(item[name], str), item
        assert "date" not in item or isinstance(item["date"], str)
    return len(organic)


def test_rb_049_an_empty_answer_is_an_empty_list(served: Served) -> None:
    answer = parsed(served.ask("/w/empty/search", {"q": "ferry"}))
    assert answer["organic"] == []
    by_date = {"q": "ferry", "tbs": "cdr:1,cd_min:1/1/1901,cd_max:1/2/1901"}
    assert parsed(served.ask("/w/crawl/search", by_date))["organic"] == []


def test_rb_049_a_wrong_key_is_refused_with_a_message(served: Served) -> None:
    for headers in ({}, {"X-API-KEY": "wrong"}, {"Authorization": "Bearer wrong"}):
        answer = served.server.ask("/search", {"q": "ferry"}, headers)
        assert answer.status == 403
        assert answer.json() == {"message": "Unauthorized.", "statusCode": 403}
        assert served.server.ask("/v1/search", {"query": "ferry"}, headers).status in (401, 403)
    for path in (
        "/search?q=ferry&api_key=key-of-the-cases",
        "/search?q=ferry&apiKey=key-of-the-cases",
    ):
        assert served.server.ask(path).status == 200


def test_rule_7_a_refusal_names_the_field(served: Served) -> None:
    bad: list[tuple[str, dict[str, object], str]] = [
        ("/search", {"q": ["ferry"]}, "q"),
        ("/search", {"q": "ferry", "num": "many"}, "num"),
        ("/search", {"q": "ferry", "page": 0}, "page"),
        ("/scrape", {"includeMarkdown": True}, "url"),
        ("/v1/search", {"count": 3}, "query"),
        ("/v1/search", {"query": "ferry", "count": 0}, "count"),
        ("/v1/search", {"query": "ferry", "mode": "magic"}, "mode"),
        ("/v1/search", {"query": "ferry", "published_from": "soon"}, "published_from"),
        ("/v1/fetch", {}, "url"),
    ]
    for path, body, name in bad:
        answer = served.ask(path, body)
        assert answer.status == 400, (path, body, answer.status)
        message = answer.json()
        assert isinstance(message, dict)
        assert re.search(rf"\b{name}\b", message["message"]), message


def test_rb_050_every_result_has_all_its_fields(served: Served) -> None:
    for world in ("crawl", "dumps", "ties", "two-docs"):
        for query in ("ferry", "the", "图书馆", "404 error", "栈", "zzz"):
            answer = parsed(served.ask(f"/w/{world}/search", {"q": query, "num": 100}))
            assert check_organic(answer)


def test_rb_054_no_address_is_ever_called(inputs: Path, served: Served) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.settimeout(0.05)
        port = str(listener.getsockname()[1])
        lines = (inputs / "ssrf-urls.txt").read_text().replace("PORT", port).splitlines()
        for line in lines:
            url = line.split("  ")[0].replace("/to-loopback", "/")
            native = served.ask("/w/crawl/v1/fetch", {"url": url})
            assert native.status in (200, 400)
            assert b'"ok"' not in native.body
            assert served.ask("/w/crawl/scrape", {"url": url}).status in (400, 404)
            assert served.reads("crawl", "/jina/", {"url": url}).status in (400, 422)
        with pytest.raises(TimeoutError):
            listener.accept()


@pytest.fixture(scope="module")
def loaded(
    builds: dict[str, Built], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningServer]:
    """Serve one world with a short queue, for tests that fill it."""
    folder = tmp_path_factory.mktemp("loaded")
    small = ("--engine-threads", "1", "--max-running", "2", "--queue-limit", "400")
    with running_server(folder, "serve", str(builds["dumps"].folder), *small) as server:
        yield server


@pytest.mark.slow
def test_rb_041_health_answers_while_searches_are_at_work(loaded: RunningServer) -> None:
    done = []
    threads = [
        threading.Thread(target=lambda: done.append(loaded.ask("/v1/search/batch", HEAVY).status))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    between = 0
    while len(done) < 8:
        before = len(done)
        assert loaded.ask("/health").status == 200
        between += before == len(done)
    for thread in threads:
        thread.join()
    assert set(done) <= {200, 503}  # a slow machine may let some wait too long
    assert between > 8


@pytest.mark.slow
def test_rb_042_and_043_a_crowd_meets_no_500_and_leaves_nothing(loaded: RunningServer) -> None:
    pid = loaded.process.pid
    asyncio.run(_crowd(loaded, 100))
    memory, files = _memory_now(pid), len(list(Path(f"/proc/{pid}/fd").iterdir()))
    seen = asyncio.run(_crowd(loaded, 2000))
    assert set(seen) <= {200, 429, 503}
    assert seen[200] == 4000
    assert seen[503]
    assert _memory_now(pid) < memory + 64 * 1024
    _until(lambda: len(list(Path(f"/proc/{pid}/fd").iterdir())) <= files + 5)


async def _crowd(server: RunningServer, clients: int) -> Counter[int]:
    """Let clients make two calls each at once; each asks again until it is answered."""
    seen: Counter[int] = Counter()
    gate = asyncio.Semaphore(500)  # this process, too, may open so many files only

    async def one(number: int) -> None:
        for call in range(2):
            status = 0
            while status != 200:
                async with gate:
                    status, wait = await _post(server, f"ferry {number} {call}")
                seen[status] += 1
                if status != 200:
                    await asyncio.sleep(int(wait))  # a refusal says when to come again

    await asyncio.gather(*(one(number) for number in range(clients)))
    return seen


async def _post(server: RunningServer, query: str) -> tuple[int, str]:
    """Return the status and the Retry-After of one search over a connection of its own."""
    host, port = server.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    body = json.dumps({"query": query}).encode()
    head = (
        f"POST /v1/search HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}"
    )
    writer.write(head.encode() + b"\r\n\r\n" + body)
    answer = (await reader.read()).decode()
    writer.close()
    await writer.wait_closed()
    found = re.search(r"(?i)retry-after: (\d+)", answer)
    return int(answer.split(" ", 2)[1]), found[1] if found else ""


def _memory_now(pid: int) -> int:
    """Return the resident memory of a process in KiB."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", text)[1])  # type: ignore[index]


def _until(condition: object) -> None:
    """Wait for a condition; the test's own time limit ends a vain wait."""
    assert callable(condition)
    while not condition():
        time.sleep(0.05)


@pytest.mark.slow
def test_rb_045_work_stops_when_the_client_leaves(loaded: RunningServer) -> None:
    host, port = loaded.url.removeprefix("http://").split(":")
    before = _metric(loaded, "world_client_left_total")
    body = json.dumps(HEAVY).encode()
    head = f"POST /v1/search/batch HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    connections = [socket.create_connection((host, int(port))) for _ in range(50)]
    for connection in connections:
        connection.sendall(head.encode() + body)
    _until(lambda: _metric(loaded, "world_waiting_calls") > 40)
    for connection in connections:
        connection.close()
    _until(lambda: _metric(loaded, "world_running_calls") == 0)
    assert _metric(loaded, "world_waiting_calls") == 0
    assert _metric(loaded, "world_client_left_total") - before > 40
    assert loaded.ask("/v1/search", {"query": "ferry"}).status == 200


def _metric(server: RunningServer, name: str) -> float:
    text = server.ask("/metrics").body.decode()
    return float(re.search(rf"(?m)^{name} (\S+)$", text)[1])  # type: ignore[index]


@pytest.mark.slow
def test_rb_046_cancelled_calls_leave_no_dead_slots(loaded: RunningServer) -> None:
    async def run() -> None:
        async with WorldClient(loaded.url, pools=1) as client:
            for turn in range(20):
                calls = [asyncio.create_task(client.search(f"ferry {turn}")) for _ in range(20)]
                await asyncio.sleep(0.001 * turn)
                for call in calls:
                    call.cancel()
                await asyncio.gather(*calls, return_exceptions=True)
            for _ in range(5):
                assert (await client.search("ferry")).hits

    asyncio.run(run())


@pytest.mark.slow
def test_rb_047_a_connection_closed_while_idle_is_no_error(
    builds: dict[str, Built], tmp_path: Path
) -> None:
    async def one(url: str, number: int) -> None:
        async with WorldClient(url, pools=1) as client:
            for turn in range(10):
                assert (await client.search("ferry")).hits
                # Around the second after which the server lets go of the connection.
                await asyncio.sleep(0.95 + 0.1 * ((number * 7 + turn) % 50) / 50)

    async def run(url: str) -> None:
        await asyncio.gather(*(one(url, number) for number in range(50)))

    folder = str(builds["dumps"].folder)
    with running_server(tmp_path, "serve", folder, "--keep-alive-s", "1") as server:
        asyncio.run(run(server.url))


@pytest.mark.slow
def test_rb_051_a_stop_lets_the_running_call_end(builds: dict[str, Built], tmp_path: Path) -> None:
    with running_server(tmp_path, "serve", str(builds["dumps"].folder)) as server:
        host, port = server.url.removeprefix("http://").split(":")
        idle = [socket.create_connection((host, int(port))) for _ in range(50)]
        answers: list[int] = []
        running = threading.Thread(
            target=lambda: answers.append(server.ask("/v1/search/batch", HEAVY).status)
        )
        running.start()
        _until(lambda: _metric(server, "world_running_calls") == 1)
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(timeout=40)
        running.join()
        assert answers == [200]
        with pytest.raises(ConnectionError):
            socket.create_connection((host, int(port)))
        for connection in idle:
            connection.close()
    assert server.process.returncode == 0
