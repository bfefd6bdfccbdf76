from __future__ import annotations

import shutil
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from world_core.errors import IndexFailedError
from world_core.indexes import linked_folder
from world_core.indexes.linked_folder import linked, remove


@pytest.fixture
def index(tmp_path: Path) -> Path:
    folder = tmp_path / "index"
    folder.mkdir()
    for name in ("meta.json", "a.store"):
        (folder / name).write_text(name)
    return folder


def test_links_lead_to_the_files_and_are_gone_afterwards(index: Path) -> None:
    with linked(index) as place:
        assert {file.name: file.read_text() for file in place.iterdir()} == {
            "meta.json": "meta.json",
            "a.store": "a.store",
        }
        (place / ".lock").touch()
    assert not place.exists()
    assert sorted(file.name for file in index.iterdir()) == ["a.store", "meta.json"]


def test_a_failure_inside_passes_and_leaves_nothing(index: Path) -> None:
    with pytest.raises(ValueError, match="mine"), linked(index) as place:
        raise ValueError("mine")
    assert not place.exists()


def test_an_absent_index_is_named(tmp_path: Path) -> None:
    with pytest.raises(IndexFailedError, match="nowhere"), linked(tmp_path / "nowhere"):
        pass


def test_a_lock_file_that_comes_and_goes_does_not_matter(tmp_path: Path) -> None:
    for number in range(20):
        place = tmp_path / f"place{number}"
        place.mkdir()
        for name in range(50):
            (place / str(name)).touch()
        started = threading.Event()

        def lock(at: Path = place, begun: threading.Event = started) -> None:
            """Do as a thread of tantivy does, for a while."""
            end = time.monotonic() + 0.03
            while time.monotonic() < end:
                with suppress(OSError):
                    (at / ".lock").touch()
                begun.set()
                with suppress(OSError):
                    (at / ".lock").unlink()

        thread = threading.Thread(target=lock)
        thread.start()
        started.wait()
        remove(place)
        thread.join()
        assert not place.exists()


def test_a_folder_that_always_fills_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    real = shutil.rmtree
    tries = []

    def rmtree(path: Path) -> None:
        tries.append(path)
        (path / "again").touch()
        path.rmdir()

    monkeypatch.setattr(shutil, "rmtree", rmtree)
    monkeypatch.setattr(linked_folder, "REMOVALS", 3)
    with pytest.raises(OSError, match="not empty"):
        remove(place)
    assert len(tries) == 3
    real(place)
