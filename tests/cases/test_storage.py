"""Storage and publish: RB-052, RB-053."""

from __future__ import annotations

import json
import random
import subprocess
import time
from pathlib import Path

import pytest

from tests.cases.worlds import CLOCK, Built, Served, built
from tests.support import command, running_server

pytestmark = pytest.mark.shared


def _rows(name: str, count: int) -> str:
    return "".join(
        json.dumps(
            {
                "url": f"https://{name}.example/{number}",
                "title": f"Entry {number}",
                "text": f"Entry {number} of the book {name} names a ship and its load of salt.",
            }
        )
        + "\n"
        for number in range(count)
    )


@pytest.mark.slow
def test_rb_052_many_writers_lose_nothing(tmp_path: Path) -> None:
    files = []
    for number in range(8):
        files.append(tmp_path / f"book{number}.jsonl")
        files[-1].write_text(_rows(f"book{number}", 500))
    done = built(tmp_path, "books", files, "--workers", "8")
    assert done.code == 0, done.errors
    assert done.count("pages") == 4000
    assert done.losses == []


@pytest.mark.slow
def test_rb_053_a_kill_leaves_the_old_world_or_the_new_one(tmp_path: Path) -> None:
    dump = tmp_path / "book.jsonl"
    dump.write_text(_rows("book", 5))
    first = built(tmp_path, "book", [dump])
    assert first.code == 0
    started = time.monotonic()
    known = {first.world_id, built(tmp_path, "book", [dump]).world_id}
    whole = time.monotonic() - started
    draw = random.Random(11)
    for number in range(4):
        dump.write_text(_rows("book", 6 + number))
        _build_and_kill(tmp_path, dump, draw.uniform(whole / 3, whole))
        with running_server(tmp_path, "serve", str(first.folder)) as server:
            info = server.ask("/info").json()
            assert isinstance(info, dict)
            served = info["worlds"][0]["world_id"]
        after = built(tmp_path, "book", [dump])
        assert after.code == 0, after.errors
        known.add(after.world_id)
        assert served in known
    assert not list(tmp_path.rglob("*.part"))
    assert not list(tmp_path.glob(".build-*"))


def _build_and_kill(folder: Path, dump: Path, seconds: float) -> None:
    """Run a build and kill its process, which ends its workers, after some seconds."""
    arguments = [str(dump), "--name", "book", "--out", str(folder), "--clock", CLOCK]
    arguments += ["--lexical", "tantivy", "--encoder", "tiny", "--workers", "1"]
    process = subprocess.Popen(
        [command("corpus-builder"), "build", *arguments, "--cache", str(folder / "cache")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def test_a_build_leaves_only_the_world_and_its_report(builds: dict[str, Built]) -> None:
    for name, build in builds.items():
        names = sorted(path.name for path in build.folder.iterdir())
        version = build.world_id[:12]
        assert names == sorted([version, f"{version}.report.json", "current"]), name
        assert not list(build.folder.parent.glob(".build-*"))


def test_the_server_writes_nothing_into_a_world(served: Served) -> None:
    folder = served.builds["two-docs"].folder
    before = sorted((path, path.stat().st_mtime_ns) for path in folder.rglob("*"))
    assert served.links("two-docs", "ferry")
    assert served.text("two-docs", "https://pages.example/one")
    assert sorted((path, path.stat().st_mtime_ns) for path in folder.rglob("*")) == before
