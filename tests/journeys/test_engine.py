"""One engine process behind several workers: killed, stopped and impossible to start."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.journeys import test_swap
from tests.journeys.processes import children, engine_of, eventually, rows
from tests.journeys.test_stop import is_there
from tests.journeys.test_swap import Asked, Reply, ask, connection_to, requests
from tests.support import RunningServer, command, free_port, running_server

PAUSE = 0.01


@dataclass
class Load(test_swap.Load):
    """Clients that connect anew when a connection ended.

    ``broken`` counts the requests for which no answer had begun when their connection ended;
    ``errors`` holds what else went wrong, such as an answer that was cut off.
    """

    broken: int = 0

    def run(self, number: int) -> None:
        asked = requests()
        while not self._stop.is_set():
            try:
                with connection_to(self.server) as connection:
                    while not self._stop.is_set():
                        number = (number + 1) % len(asked)
                        self.replies.append((number, ask(connection, asked[number])))
                        time.sleep(self.pause)
            except (http.client.RemoteDisconnected, ConnectionError):
                self.broken += 1
                time.sleep(self.pause)
            except (OSError, http.client.HTTPException) as error:
                self.errors.append(repr(error))


def expected(server: RunningServer) -> list[Reply]:
    """Return status and body of each request, asked alone."""

    def answer(asked: Asked) -> Reply:
        with connection_to(server) as connection:
            return ask(connection, asked)

    return [answer(asked) for asked in requests()]


def searches(server: RunningServer) -> int:
    """Return how many native searches the metrics of the server count."""
    text = server.ask("/metrics").body.decode()
    rows = re.findall(r'^world_requests_total\{route="search",.*\} (\d+)$', text, re.MULTILINE)
    return sum(map(int, rows))


def code(server: RunningServer) -> object:
    """Return the code of a native search, "ok" when it was answered."""
    answer: Any = server.ask("/v1/search", {"query": "lighthouse"}).json()
    return answer.get("code", answer["outcome"])


@pytest.mark.parametrize("kills", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_a_killed_engine_is_a_typed_outage_and_then_all_is_well(
    plain_world: Path, tmp_path: Path, kills: int
) -> None:
    with running_server(tmp_path, "serve", str(plain_world), "--workers", "2") as server:
        right = expected(server)
        assert {status for status, _ in right} == {200}
        assert {code(server) for _ in range(20)} == {"ok"}
        eventually(lambda: searches(server) == 21, "the counts of both workers are added up")
        load = Load(server, PAUSE)
        with load.on():
            for _ in range(kills):
                engine = engine_of(server.process.pid)
                assert engine is not None
                eventually(lambda: server.ask("/ready").status == 200, "it is ready")
                os.kill(engine, signal.SIGKILL)
                eventually(lambda: server.ask("/ready").status == 503, "it is not ready")
                report: Any = server.ask("/ready").json()
                assert report["ready"] or "engine_lost" in str(report), report
                eventually(lambda: server.ask("/ready").status == 200, "it is ready again")
                assert engine_of(server.process.pid) not in (None, engine)
            before = len(load.replies)
            eventually(lambda: len(load.replies) > before + 100, "more answers")
        eventually(lambda: expected(server) == right, "each worker has found the new engine")
        log = server.log.read_text("utf-8")
    assert load.errors == []
    assert load.broken == 0, "the workers themselves are well"
    lost = 0
    for place, reply in load.replies:
        if reply != right[place]:
            assert reply[0] == 503, (requests()[place], reply)
            lost += 1
    assert 0 < lost < len(load.replies)
    assert log.count("ended with -9") == kills
    assert "Traceback" not in log


def test_stopping_under_load_loses_no_answer(plain_world: Path, tmp_path: Path) -> None:
    with running_server(tmp_path, "serve", str(plain_world), "--workers", "2") as server:
        right = expected(server)
        engine, workers = engine_of(server.process.pid), children(server.process.pid)
        assert engine is not None
        load = Load(server, PAUSE)
        with load.on():
            eventually(lambda: len(load.replies) > 50, "answers")
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(timeout=40) == 0
        log = server.log.read_text("utf-8")
    assert load.errors == []
    assert [reply for place, reply in load.replies if reply != right[place]] == []
    assert not any(is_there(pid) for pid in (engine, *workers))
    assert "Traceback" not in log
    assert "ERROR" not in log


def test_nothing_outlives_a_parent_that_is_killed(plain_world: Path, tmp_path: Path) -> None:
    with running_server(tmp_path, "serve", str(plain_world), "--workers", "2") as server:
        engine, workers = engine_of(server.process.pid), children(server.process.pid)
        assert engine is not None
        server.process.kill()
        server.process.wait()
        eventually(lambda: not is_there(engine), "the engine process ends")
        eventually(lambda: not any(map(is_there, workers)), "the workers end")
        log = server.log.read_text("utf-8")
    assert "Traceback" not in log


@pytest.mark.slow
def test_an_engine_that_ends_again_and_again_ends_the_server(
    plain_world: Path, tmp_path: Path
) -> None:
    with running_server(tmp_path, "serve", str(plain_world), "--workers", "2") as server:
        killed: set[int] = set()
        deadline = time.monotonic() + 120
        while server.process.poll() is None:
            assert time.monotonic() < deadline
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                engine = engine_of(server.process.pid)
                if engine is not None and engine not in killed:
                    os.kill(engine, signal.SIGKILL)
                    killed.add(engine)
            time.sleep(0.02)
        log = server.log.read_text("utf-8")
    assert server.process.returncode == 2
    assert len(killed) == 6
    last = log.rstrip().rsplit("\n", 1)[-1]
    assert last.startswith("world-server: The engine process ended 6 times in a row, last with -9.")
    assert "Traceback" not in log


def test_worlds_that_cannot_be_served_are_one_sentence(tmp_path: Path) -> None:
    words = [command("world-server"), "serve", str(tmp_path), "--workers", "3"]
    ran = subprocess.run(
        [*words, "--port", str(free_port())],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert ran.returncode == 2
    (said,) = ran.stderr.splitlines()
    assert said.startswith(f"world-server: {tmp_path} is not a world")


@pytest.mark.slow
def test_one_worker_may_have_an_engine_process_too(plain_world: Path, tmp_path: Path) -> None:
    with running_server(tmp_path, "serve", str(plain_world), "--engine", "process") as server:
        assert engine_of(server.process.pid) is not None
        assert len(children(server.process.pid)) == 1
        assert code(server) == "ok"
        page: Any = server.ask("/v1/fetch", {"url": rows()[0]["url"]}).json()
        assert page["outcome"] == "ok"
    assert server.process.returncode == 0
