"""A server whose encoder has a process of its own, and what becomes of searches when it dies."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support import Answer, RunningServer, build, running_server

CONTROL = "control-of-the-test"
QUERY = "when was the lighthouse built"
PATIENCE = 60.0


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("worlds")
    rows = folder / "rows.jsonl"
    rows.write_text(
        '{"url": "https://a.example/1", "title": "Lighthouse", "text": "The lighthouse of Norrvik '
        'was built in 1874 and lit by oil."}\n'
        '{"url": "https://a.example/2", "title": "Ferry", "text": "A ferry crosses the sound '
        'twice a day in summer and once in winter."}\n',
        encoding="utf-8",
    )
    shown = build(
        str(rows),
        "--name",
        "small",
        "--out",
        str(folder),
        "--lexical",
        "tantivy",
        "--encoder",
        "tiny",
    )
    assert shown.returncode == 0, shown.stdout + shown.stderr
    return folder / "small"


@pytest.fixture(scope="module", params=[("--workers", "1"), ("--workers", "2")], ids=["1", "2"])
def server(
    request: pytest.FixtureRequest, world: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningServer]:
    options = (
        "--encoder-process",
        "always",
        "--query-cache-mb",
        "0",
        "--ready-s",
        "0.05",
        *request.param,
    )
    with running_server(
        tmp_path_factory.mktemp("log"),
        *("serve", str(world), *options),
        environment={"WORLD_CONTROL_KEY": CONTROL},
    ) as running:
        yield running


def encoder_of(server: RunningServer) -> int:
    """Return the number of the encoder's process that stems from this server."""
    parents, encoders = {}, []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            stat = (folder / "stat").read_text("ascii", "replace").rpartition(")")[2].split()
            line = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        parents[int(folder.name)] = int(stat[1])
        if b"world_server.encoder_process" in line and stat[0] != "Z":
            encoders.append(int(folder.name))
    for encoder in encoders:
        above = encoder
        while above in parents:
            above = parents[above]
            if above == server.process.pid:
                return encoder
    return 0


def search(server: RunningServer, **fields: object) -> Answer:
    return server.ask("/v1/search", {"query": QUERY, **fields}, {"X-API-KEY": CONTROL})


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.02)


def test_a_search_whose_encoder_died_fails_as_ours_and_the_others_go_on(
    server: RunningServer,
) -> None:
    good = search(server)
    lexical = search(server, mode="lexical")
    first = encoder_of(server)
    assert first
    os.kill(first, signal.SIGKILL)
    until(lambda: encoder_of(server) not in (0, first))
    # Stopped while it loads, so that this while lasts as long as the test wants it to.
    second = encoder_of(server)
    os.kill(second, signal.SIGSTOP)

    failed = search(server)
    assert failed.status == 503
    body = failed.json()
    assert isinstance(body, dict)
    assert (body["outcome"], body["code"]) == ("internal", "encoder")
    assert (body["retryable"], body["trainable"]) == (True, False)
    assert failed.headers["x-world-outcome"] == "internal"

    degraded = search(server, allow_lexical=True)
    shown = degraded.json()
    wanted = lexical.json()
    assert isinstance(wanted, dict)
    assert shown == {**wanted, "degraded": "lexical"}
    assert degraded.headers["x-world-degraded"] == "lexical"
    assert search(server, mode="lexical").body == lexical.body

    ready = server.ask("/ready")
    assert ready.status == 503
    assert b"starting" in ready.body

    os.kill(second, signal.SIGCONT)
    until(lambda: search(server).status == 200)
    assert search(server).body == good.body
    metrics = server.ask("/metrics", headers={"X-API-KEY": CONTROL}).body.decode()
    assert 'world_encoder_ready{world="small"} 1' in metrics
    restarts = metrics.partition('world_encoder_restarts_total{world="small"} ')[2].split()[0]
    assert int(restarts) == 1


def test_nothing_of_it_outlives_the_server(world: Path, tmp_path: Path) -> None:
    with running_server(
        tmp_path, "serve", str(world), "--encoder-process", "always", "--port", "0"
    ) as running:
        encoder = encoder_of(running)
        assert encoder
    until(lambda: not Path(f"/proc/{encoder}").exists())
