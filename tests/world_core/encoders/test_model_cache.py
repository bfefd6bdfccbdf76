from __future__ import annotations

import hashlib
import logging
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from world_core.encoders.model_cache import cached, default_folder
from world_core.errors import EncoderError, MissingPartError


def never() -> bytes:
    pytest.fail("the file was made again")


def test_the_file_is_made_once(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"

    path = cached(folder, "x.onnx", lambda: b"content")

    assert path == folder / "x.onnx"
    assert path.read_bytes() == b"content"
    assert cached(folder, "x.onnx", never) == path
    assert sorted(file.name for file in folder.iterdir()) == ["x.onnx", "x.onnx.sha256"]


def test_the_digest_lies_beside_the_file(tmp_path: Path) -> None:
    cached(tmp_path, "x", lambda: b"content")

    note = (tmp_path / "x.sha256").read_text(encoding="utf-8").strip()
    assert note == hashlib.sha256(b"content").hexdigest()


@pytest.mark.parametrize("damage", [b"", b"conten", b"contenT", b"content and more"])
def test_a_damaged_file_is_made_again_with_a_warning(
    tmp_path: Path, damage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path = cached(tmp_path, "x", lambda: b"content")
    path.write_bytes(damage)

    with caplog.at_level(logging.WARNING):
        cached(tmp_path, "x", lambda: b"content")

    assert path.read_bytes() == b"content"
    assert "damaged" in caplog.text
    cached(tmp_path, "x", never)


@pytest.mark.parametrize("lost", ["x", "x.sha256"])
def test_half_a_pair_is_made_again(tmp_path: Path, lost: str) -> None:
    cached(tmp_path, "x", lambda: b"content")
    (tmp_path / lost).unlink()

    cached(tmp_path, "x", lambda: b"content")

    cached(tmp_path, "x", never)


def test_names_do_not_share_a_file(tmp_path: Path) -> None:
    one = cached(tmp_path, "one", lambda: b"1")
    other = cached(tmp_path, "other", lambda: b"2")

    assert (one.read_bytes(), other.read_bytes()) == (b"1", b"2")


def test_a_failure_to_make_leaves_nothing(tmp_path: Path) -> None:
    def failing() -> bytes:
        raise EncoderError("no such tensor")

    with pytest.raises(EncoderError):
        cached(tmp_path, "x", failing)

    assert list(tmp_path.iterdir()) == []


def test_threads_that_make_it_at_once_all_succeed(tmp_path: Path) -> None:
    content = b"word " * 200_000

    with ThreadPoolExecutor(8) as pool:
        paths = list(pool.map(lambda _: cached(tmp_path, "x", lambda: content), range(24)))

    assert {path.read_bytes() for path in paths} == {content}
    assert sorted(file.name for file in tmp_path.iterdir()) == ["x", "x.sha256"]


def test_processes_that_make_it_at_once_all_succeed(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from world_core.encoders.model_cache import cached;"
        "print(cached(pathlib.Path(sys.argv[1]), 'x', lambda: b'y' * 20_000_000).stat().st_size)"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]

    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    outputs = [process.communicate()[0].strip() for process in started]

    assert outputs == ["20000000"] * 3
    assert [process.returncode for process in started] == [0, 0, 0]
    cached(tmp_path, "x", never)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")

    with pytest.raises(MissingPartError, match="file") as caught:
        cached(tmp_path / "file" / "models", "x", lambda: b"content")

    assert "XDG_CACHE_HOME" in caught.value.hint


def test_a_write_that_fails_leaves_nothing_beside(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "full").touch()

    with pytest.raises(MissingPartError):
        cached(tmp_path, "x", lambda: b"content")

    assert [file.name for file in tmp_path.iterdir()] == ["x"]


def test_the_folder_is_in_the_cache_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere/cache")
    assert default_folder() == Path("/somewhere/cache/searchworld/models")

    for value in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", value)
        assert default_folder() == Path.home() / ".cache" / "searchworld" / "models"
