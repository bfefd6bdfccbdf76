from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from corpus_builder import publish
from corpus_builder.errors import PublishError
from corpus_builder.workspace import KILL_VARIABLE
from world_core import manifest as manifests
from world_core.errors import DamagedFileError, ForeignWorldError
from world_core.manifest import MANIFEST_NAME

STATES = ["files_written", "files_synced", "manifest_written", "verified", "renamed", "pointed"]
PROGRAM = """
import sys
import time
from pathlib import Path
from corpus_builder import publish
from world_core import manifest as manifests
folder, home = Path(sys.argv[1]), Path(sys.argv[2])
publish.check_place(home)
manifest = publish.seal(folder, manifests.read(folder))
publish.point(home, publish.place(folder, manifest, home))
"""


@pytest.fixture
def built(small_root: Path) -> Path:
    return publish.resolve(small_root / "worlds" / "small")


@pytest.fixture
def copy(built: Path, tmp_path: Path) -> Path:
    """A sealed folder that is not published."""
    return shutil.copytree(built, tmp_path / "work" / "world")


def other(folder: Path) -> Path:
    """Turn a sealed folder into one of another world id."""
    manifest = manifests.read(folder)
    manifests.write(folder, manifest.model_copy(update={"world_id": "0" * 64}))
    return folder


def served(home: Path) -> Path:
    """Return what a reader finds, whole."""
    folder = publish.resolve(home)
    manifests.verify(folder, manifests.read(folder))
    return folder


def test_publish_gives_a_folder_a_pointer_and_no_leftovers(copy: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    manifest = publish.seal(copy, manifests.read(copy))
    target = publish.place(copy, manifest, home)
    publish.point(home, target)
    assert target == home / manifest.world_id[:12]
    assert served(home) == target
    assert not copy.exists()
    assert {path.name for path in home.iterdir()} == {target.name, "current"}
    publish.check_place(home)


def test_the_pointer_moves_to_a_new_world_and_the_old_stays(built: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    for number in range(2):
        folder = shutil.copytree(built, tmp_path / f"w{number}")
        if number:
            other(folder)
        manifest = publish.seal(folder, manifests.read(folder))
        publish.point(home, publish.place(folder, manifest, home))
    assert served(home).name == "0" * 12
    assert len([path for path in home.iterdir() if path.is_dir()]) == 2


def test_a_world_that_answers_alike_is_kept(built: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    targets = []
    for number in range(2):
        folder = shutil.copytree(built, tmp_path / f"w{number}")
        targets.append(publish.place(folder, manifests.read(folder), home))
        assert not folder.exists()
    assert targets[0] == targets[1]


def test_another_engine_of_one_id_gets_a_folder_of_its_own(built: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    targets = []
    for number in range(2):
        folder = shutil.copytree(built, tmp_path / f"w{number}")
        manifest = manifests.read(folder)
        lexical = manifest.lexical.model_copy(update={"engine_version": f"e{number}"})
        changed = manifest.model_copy(update={"lexical": lexical})
        manifests.write(folder, changed)
        targets.append(publish.place(folder, changed, home))
    assert targets[1].name == f"{targets[0].name}-2"


def test_a_damaged_world_in_the_place_is_refused(copy: Path, built: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    manifest = manifests.read(copy)
    place = shutil.copytree(built, home / manifest.world_id[:12])
    (place / "passages.bin").write_bytes(b"x")
    with pytest.raises(DamagedFileError, match=r"passages\.bin"):
        publish.place(copy, manifest, home)
    assert copy.exists()


def test_a_damaged_file_is_found_before_publishing(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = manifests.write

    def damage(folder: Path, manifest: manifests.Manifest) -> None:
        real(folder, manifest)
        data = bytearray((folder / "pages.sqlite").read_bytes())
        data[len(data) // 2] ^= 1
        (folder / "pages.sqlite").write_bytes(data)

    monkeypatch.setattr(manifests, "write", damage)
    with pytest.raises(DamagedFileError, match=r"pages\.sqlite"):
        publish.seal(copy, manifests.read(copy))


@pytest.mark.parametrize("state", STATES)
def test_a_kill_leaves_the_old_world_or_the_new_one_whole(
    state: str, built: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    old = shutil.copytree(built, tmp_path / "old")
    publish.point(home, publish.place(old, manifests.read(old), home))
    before = served(home)
    new = other(shutil.copytree(built, tmp_path / "new"))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(new), str(home)],
        env={**os.environ, KILL_VARIABLE: state},
        check=False,
        timeout=60,
    )
    assert done.returncode == -9
    after = served(home)
    assert after == (home / ("0" * 12) if state == "pointed" else before)
    publish.check_place(home)
    new = other(shutil.copytree(built, tmp_path / "again"))  # a build links its files anew
    subprocess.run([sys.executable, "-c", PROGRAM, str(new), str(home)], check=True, timeout=60)
    assert served(home) == home / ("0" * 12)
    assert not list(home.rglob("*.part"))


@pytest.mark.slow
def test_a_reader_meets_whole_worlds_through_twenty_random_kills(
    built: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    old = shutil.copytree(built, tmp_path / "old")
    publish.point(home, publish.place(old, manifests.read(old), home))
    draw = random.Random(5)
    killed = 0
    for number in range(20):
        world = f"{number:064x}"[::-1]
        new = shutil.copytree(built, tmp_path / f"new{number}")
        manifest = manifests.read(new).model_copy(update={"world_id": world})
        manifests.write(new, manifest)
        known = {served(home).name, world[:12]}
        process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(new), str(home)])
        end = time.monotonic() + draw.uniform(0.3, 2.0)
        while process.poll() is None:
            assert served(home).name in known
            if time.monotonic() > end:
                process.kill()
                process.wait()
                killed += 1
        assert served(home).name in known
        publish.check_place(home)
        assert not list(home.glob("*.part"))
    assert killed


def test_leftovers_are_removed_at_the_next_start(tmp_path: Path) -> None:
    (tmp_path / "current.part").write_text("x")
    (tmp_path / "abc.report.json.part").write_text("x")
    (tmp_path / "abc.report.json").write_text("{}")
    publish.check_place(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["abc.report.json"]


def test_a_place_with_other_things_is_refused(tmp_path: Path) -> None:
    publish.check_place(tmp_path / "none")
    (tmp_path / "thesis.txt").write_text("x")
    with pytest.raises(PublishError, match=r"'thesis\.txt'"):
        publish.check_place(tmp_path)
    with pytest.raises(PublishError, match="not a folder"):
        publish.check_place(tmp_path / "thesis.txt")


def test_resolve_takes_a_world_or_its_home(built: Path, tmp_path: Path) -> None:
    assert publish.resolve(built) == built
    assert publish.resolve(built.parent) == built
    assert publish.resolve(tmp_path) == tmp_path
    for text in ("../x", "", "a\nb", "x" * 70):
        (tmp_path / "current").write_text(text)
        with pytest.raises(ForeignWorldError, match="names no version folder"):
            publish.resolve(tmp_path)


def test_the_report_lies_beside_the_folder(built: Path) -> None:
    path = publish.report_path(built)
    assert path.parent == built.parent
    assert json.loads(path.read_text())["world_id"].startswith(built.name)
    assert not (built / path.name).exists()
    assert MANIFEST_NAME not in manifests.read(built).files
