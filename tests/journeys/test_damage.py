"""One flipped bit anywhere in a world: refused by the file's name, and nothing else suffers."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.journeys.processes import refused
from tests.support import RunningServer, command, free_port
from world_core import manifest as manifests
from world_core.manifest import MANIFEST_NAME


def files_of(world: Path) -> list[str]:
    """Return every file of a world, the manifest included."""
    found = [path.relative_to(world).as_posix() for path in world.rglob("*") if path.is_file()]
    assert set(found) == {MANIFEST_NAME, *manifests.read(world).files}
    return sorted(found)


def flip(world: Path, name: str, seed: str = "") -> None:
    """Flip one bit of a file, somewhere in it; other copies of the world keep theirs."""
    data = bytearray((world / name).read_bytes())
    source = random.Random(f"{name}{seed}")
    data[source.randrange(len(data))] ^= 1 << source.randrange(8)
    (world / name).unlink()
    (world / name).write_bytes(data)


def damaged_copies(world: Path, folder: Path) -> dict[str, Path]:
    """Return a copy of the world for each of its files, with one bit of that file flipped."""
    copies = {}
    for number, name in enumerate(files_of(world)):
        copy = folder / f"copy{number}"
        shutil.copytree(world, copy, copy_function=os.link)
        flip(copy, name)
        copies[name] = copy
    return copies


@contextlib.contextmanager
def unready_server(folder: Path, *worlds: Path) -> Iterator[RunningServer]:
    """Serve worlds, of which not all are good, from where the first request is answered."""
    port, log = free_port(), folder / "server.log"
    words = [command("world-server"), "serve", *map(str, worlds), "--port", str(port)]
    with (
        log.open("w", encoding="utf-8") as output,
        subprocess.Popen(words, cwd=ROOT, stdout=output, stderr=output, text=True) as process,
    ):
        try:
            server = RunningServer(process, f"http://127.0.0.1:{port}", log)
            deadline = time.monotonic() + 60
            while "Serving" not in log.read_text(encoding="utf-8"):
                assert process.poll() is None, log.read_text(encoding="utf-8")
                assert time.monotonic() < deadline
                time.sleep(0.1)
            yield server
        finally:
            process.terminate()


@pytest.fixture(
    scope="module",
    params=["plain_world", pytest.param("full_world", marks=[pytest.mark.java, pytest.mark.slow])],
)
def world(request: pytest.FixtureRequest) -> Path:
    """Return a world of each lexical engine."""
    found: Path = request.getfixturevalue(request.param)
    return found


def test_serve_refuses_each_and_names_the_file(world: Path, tmp_path: Path) -> None:
    copies = damaged_copies(world, tmp_path)
    # Many worlds on one command line: had a single one been accepted, it would be served.
    lines = refused("world-server", "serve", *map(str, copies.values()), "--port", "0")
    for name, copy in copies.items():
        (said,) = [line for line in lines[:-1] if f"world {copy} is not served" in line]
        assert f"{name!r} of world {copy} " in said
        assert f"world-server check {copy}" in said
    assert f"of world {next(iter(copies.values()))} " in lines[-1]


@pytest.mark.slow
def test_one_bad_world_alone_is_one_sentence(plain_world: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(plain_world, copy)
    flip(copy, "passages.bin")
    (said,) = refused("world-server", "serve", str(copy), "--port", "0")
    assert f"'passages.bin' of world {copy} differs from its digest" in said


def test_a_good_world_after_bad_ones_is_served_by_its_name(
    plain_world: Path, tmp_path: Path
) -> None:
    bad = damaged_copies(plain_world, tmp_path)
    first, *others = bad.values()
    name = manifests.read(plain_world).name
    with unready_server(tmp_path, first, plain_world, *others) as server:
        assert server.ask(f"/w/{name}/search", {"q": "harbour"}).json()["organic"]  # type: ignore[index]
        assert server.ask("/search", {"q": "harbour"}).status == 503
        (served,) = server.ask("/info").json()["worlds"]  # type: ignore[index]
        assert served["world_id"] == manifests.read(plain_world).world_id
        assert server.ask("/ready").status == 503
        log = server.log.read_text(encoding="utf-8")
    assert log.count("is not served") == len(bad)
    assert "Traceback" not in log


def test_a_good_world_before_a_bad_one_is_the_plain_one(plain_world: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(plain_world, copy)
    flip(copy, "passages.bin")
    with unready_server(tmp_path, plain_world, copy) as server:
        assert server.ask("/search", {"q": "harbour"}).json()["organic"]  # type: ignore[index]
        assert server.ask("/ready").status == 200


@pytest.mark.slow
def test_check_names_every_damaged_file(world: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(world, copy)
    names = [name for name in files_of(copy) if name != MANIFEST_NAME]
    for name in names:
        flip(copy, name)
    (copy / "extra").write_text("not listed")
    (copy / "columns" / "hosts.txt").unlink()
    lines = refused("world-server", "check", str(copy))
    for name in [*names, "extra"]:
        assert sum(line.startswith(f"{name!r} of world {copy} ") for line in lines) == 1, name
    assert f"{len(names) + 1} damaged files" in lines[-1]
    flip(copy, MANIFEST_NAME)
    (said,) = refused("world-server", "check", str(copy))
    assert f"'{MANIFEST_NAME}' of world {copy}" in said


@pytest.mark.slow
def test_check_says_that_a_good_world_is_good(plain_world: Path) -> None:
    ran = subprocess.run(
        [command("world-server"), "check", str(plain_world)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert ran.stdout.rstrip().endswith("good")
    assert ran.stderr == ""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_serve_refuses_flips_elsewhere(world: Path, tmp_path: Path, seed: int) -> None:
    copies = []
    for number, name in enumerate(files_of(world) * 25):
        copy = tmp_path / f"copy{number}"
        shutil.copytree(world, copy, copy_function=os.link)
        flip(copy, name, f"{seed} {number}")
        copies.append((name, copy))
    lines = refused("world-server", "serve", *(str(copy) for _, copy in copies), "--port", "0")
    assert len(lines) == len(copies) + 1
    for (name, copy), line in zip(copies, lines, strict=False):
        assert f"{name!r} of world {copy} " in line
