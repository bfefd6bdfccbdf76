from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from benchmarks import speed_wrk
from benchmarks.speed_wrk import Request, post

GOOD = """Running 2s test @ http://127.0.0.1:8000
  2 threads and 8 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   713.10us    1.13ms  30.90ms   97.42%
    Req/Sec     6.73k     1.03k    8.18k    72.50%
  Latency Distribution
     50%  550.00us
     75%  744.00us
     90%    1.05ms
     99%    1.20s
  26804 requests in 2.01s, 3.30MB read
Requests/sec:  13341.87
"""
BAD = GOOD.replace(
    "Requests/sec",
    "  Socket errors: connect 1, read 2, write 3, timeout 4\n"
    "  Non-2xx or 3xx responses: 17\nRequests/sec",
)


def test_what_wrk_prints_is_read() -> None:
    load = speed_wrk.parse(GOOD)
    assert (load.answers, load.not_2xx, load.socket_errors) == (26804, 0, 0)
    assert load.seconds == 2.01
    assert load.p50 == pytest.approx(550e-6)
    assert load.p99 == pytest.approx(1.2)
    assert load.rate == pytest.approx(26804 / 2.01)


def test_errors_are_read() -> None:
    load = speed_wrk.parse(BAD)
    assert (load.not_2xx, load.socket_errors) == (17, 10)


def test_a_request_is_the_bytes_of_a_keep_alive_client() -> None:
    assert Request("GET", "/health").raw() == b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
    head, _, body = post("/v1/search", {"query": "größe\n"}).raw().partition(b"\r\n\r\n")
    assert f"Content-Length: {len(body)}".encode() in head
    assert b"\n" not in body
    assert json.loads(body) == {"query": "größe\n"}


def test_a_missing_wrk_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(SystemExit, match="apt-get install wrk"):
        speed_wrk.run("http://127.0.0.1:1", [Request("GET", "/")], connections=1, seconds=1)


def test_wrk_is_given_every_request(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, str] = {}

    def ran(words: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        script = Path(words[words.index("-s") + 1])
        given["script"] = script.read_text("utf-8")
        given["requests"] = (script.parent / "requests.txt").read_text("utf-8")
        given["words"] = " ".join(words)
        return subprocess.CompletedProcess(words, 0, stdout=GOOD)

    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(subprocess, "run", ran)
    asked = [Request("GET", "/health"), post("/v1/search", {"query": "a b"})]
    speed_wrk.run("http://127.0.0.1:9", asked, connections=64, seconds=3)
    assert given["requests"] == 'GET /health\nPOST /v1/search {"query": "a b"}\n'
    assert "-t 2 -c 64 -d 3s" in given["words"]
    assert given["words"].endswith("http://127.0.0.1:9")
    assert "requests.txt" in given["script"]
    assert "%%" not in given["script"]
