from __future__ import annotations

from pathlib import Path

import pytest

from world_core.errors import ForeignWorldError
from world_server.pointer import WorldFolder


def test_a_folder_without_a_pointer_is_meant_itself(tmp_path: Path) -> None:
    assert WorldFolder(tmp_path).target() == tmp_path
    assert WorldFolder(tmp_path / "gone").target() == tmp_path / "gone"


def test_the_pointer_names_the_version(tmp_path: Path) -> None:
    (tmp_path / "current").write_text("v2\n")
    assert WorldFolder(tmp_path).target() == tmp_path / "v2"


def test_a_world_is_never_pointed_away_from(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    (tmp_path / "current").write_text("v2")
    assert WorldFolder(tmp_path).target() == tmp_path


@pytest.mark.parametrize(
    "content",
    [
        b"../x", b"/etc", b"", b"a/b", b"..", b".", b"%2e%2e", b"v2\x00", b"\xff\xfe", b"V2",
        b"v" * 300, "v\u2024\u2024".encode(), b"v2 v3", b"-v",
    ],
)  # fmt: skip
def test_a_pointer_that_is_no_name_leads_nowhere(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "current").write_bytes(content)
    with pytest.raises(ForeignWorldError, match="names no version folder"):
        WorldFolder(tmp_path).target()


def test_a_pointer_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "current").mkdir()
    with pytest.raises(ForeignWorldError, match="names no version folder"):
        WorldFolder(tmp_path).target()


def test_a_folder_that_may_not_be_looked_into_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> bool:
        raise PermissionError(13, "denied", str(path))

    monkeypatch.setattr(Path, "exists", refuse)
    with pytest.raises(ForeignWorldError, match="names no version folder"):
        WorldFolder(tmp_path).target()
