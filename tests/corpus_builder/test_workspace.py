from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from corpus_builder.errors import EmptyWorldError, StageFailedError
from corpus_builder.workspace import (
    KILL_VARIABLE,
    Workspace,
    digest_of,
    kill_point,
    sync_tree,
    write_durably,
)


class Producer:
    """Writes one file and counts how often it was asked."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.runs = 0

    def __call__(self, folder: Path) -> Mapping[str, object]:
        self.runs += 1
        (folder / "inner").mkdir()
        (folder / "inner" / "file").write_text(self.text)
        return {"length": len(self.text)}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return tmp_path / ".build-x"


def test_a_stage_runs_once_for_equal_input(work: Path) -> None:
    produce = Producer("one")
    for _ in range(2):
        with Workspace.locked(work) as workspace:
            assert workspace.stage("s", "d", produce) == {"length": 3}
            assert (work / "s" / "inner" / "file").read_text() == "one"
    assert produce.runs == 1


def test_other_input_runs_the_stage_again(work: Path) -> None:
    with Workspace.locked(work) as workspace:
        workspace.stage("s", "d", Producer("one"))
        assert workspace.outcome("s", "other") is None
        assert workspace.stage("s", "other", Producer("four")) == {"length": 4}
        assert (work / "s" / "inner" / "file").read_text() == "four"


def test_a_lost_output_runs_the_stage_again(work: Path) -> None:
    with Workspace.locked(work) as workspace:
        workspace.stage("s", "d", Producer("one"))
        (work / "s" / "inner" / "file").unlink()
        (work / "s" / "inner").rmdir()
        (work / "s").rmdir()
        produce = Producer("one")
        workspace.stage("s", "d", produce)
        assert produce.runs == 1


def test_an_error_leaves_no_stage_behind(work: Path) -> None:
    def fail(folder: Path) -> Mapping[str, object]:
        (folder / "file").write_text("half")
        raise OSError(28, "No space left on device")

    with Workspace.locked(work) as workspace:
        with pytest.raises(OSError, match="No space"):
            workspace.stage("s", "d", fail)
        assert not (work / "s").exists()
        assert workspace.outcome("s", "d") is None
    with Workspace.locked(work) as workspace:
        assert [path.name for path in work.iterdir()] == ["lock"]
        workspace.stage("s", "d", Producer("one"))


def test_a_marker_without_its_rename_does_not_count(work: Path) -> None:
    work.mkdir(parents=True)
    (work / "s.part").mkdir()
    (work / "s.done.json.part").write_text("{")
    with Workspace.locked(work) as workspace:
        assert not list(work.rglob("*.part"))
        assert workspace.outcome("s", "d") is None


def test_two_builds_of_one_name_refuse_each_other(work: Path) -> None:
    with (
        Workspace.locked(work),
        pytest.raises(StageFailedError, match="Another build") as caught,
        Workspace.locked(work),
    ):
        pass
    assert str(work) in caught.value.sentence
    with Workspace.locked(work):
        pass


def test_an_unused_work_folder_goes_and_a_used_one_stays(work: Path) -> None:
    with Workspace.locked(work):
        pass
    assert not work.exists()
    with Workspace.locked(work) as workspace:
        workspace.stage("s", "d", Producer("one"))
    assert work.exists()
    with Workspace.locked(work) as workspace:
        workspace.remove()
    assert not work.exists()


def test_a_refusal_before_the_first_file_leaves_no_folder(work: Path) -> None:
    def refused() -> None:
        with Workspace.locked(work) as workspace:
            (workspace.folder / "drafts").mkdir()
            raise StageFailedError("cannot be read")

    with pytest.raises(StageFailedError, match="cannot be read"):
        refused()
    assert not work.exists()


def test_nothing_is_kept_of_an_empty_world(work: Path) -> None:
    def refused() -> None:
        with Workspace.locked(work) as workspace:
            workspace.stage("s", "d", Producer("one"))
            raise EmptyWorldError("nothing is left")

    with pytest.raises(EmptyWorldError, match="nothing is left"):
        refused()
    assert not work.exists()


def test_the_lock_of_a_killed_build_is_free(work: Path) -> None:
    program = (
        "import sys, os, signal, pathlib\n"
        "from corpus_builder.workspace import Workspace\n"
        "with Workspace.locked(pathlib.Path(sys.argv[1])) as w:\n"
        "    (w.folder / 'left.part').write_text('x')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(work)], check=False, timeout=60)
    assert done.returncode == -9
    assert (work / "left.part").exists()
    with Workspace.locked(work):
        assert not (work / "left.part").exists()


def test_write_durably_replaces_in_one_step(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_durably(path, b"one")
    write_durably(path, b"two")
    assert path.read_bytes() == b"two"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_write_durably_keeps_the_old_file_when_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    write_durably(path, b"one")

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_durably(path, b"two")
    assert path.read_bytes() == b"one"


def test_sync_tree_takes_every_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_text("x")
    (tmp_path / "c").write_text("y")
    synced: list[int] = []
    real = os.fsync

    def count(handle: int) -> None:
        synced.append(os.fstat(handle).st_ino)
        real(handle)

    monkeypatch.setattr(os, "fsync", count)
    sync_tree(tmp_path)
    wanted = {path.stat().st_ino for path in (tmp_path, *tmp_path.rglob("*"))}
    assert set(synced) == wanted


def test_stages_are_put_into_one_folder(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    for name in ("one/columns/a", "two/files/columns/b", "two/files/near/c", "two/other"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    for _ in range(2):
        folder = workspace.assembled(["one", "two/files", "absent"])
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        names = [str(path.relative_to(folder)) for path in files]
        assert names == ["columns/a", "columns/b", "near/c"]
        assert files[0].samefile(tmp_path / "one/columns/a")
        (folder / "leftover").touch()


def test_digests_depend_on_values_and_order() -> None:
    assert digest_of(1, "a") != digest_of("a", 1)
    assert digest_of({"a": 1, "b": 2}) == digest_of({"b": 2, "a": 1})


def test_kill_points_are_off_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: killed.append((pid, number)))
    monkeypatch.delenv(KILL_VARIABLE, raising=False)
    kill_point("pointed")
    monkeypatch.setenv(KILL_VARIABLE, "renamed")
    kill_point("pointed")
    assert killed == []
    kill_point("renamed")
    assert killed == [(os.getpid(), 9)]
