"""The demo world is built once, by the builder's own command, and only where it is missing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from world_core.errors import MissingPartError
from world_server import demo


def test_a_world_that_is_there_is_not_built_again(tmp_path: Path) -> None:
    (tmp_path / "current").write_text("v1")
    assert demo.ensure(tmp_path, build=lambda folder: pytest.fail("built")) is False


def test_a_missing_world_is_built_where_it_was_asked_for(tmp_path: Path) -> None:
    def build(folder: Path) -> None:
        folder.mkdir()
        (folder / "manifest.json").write_text("{}")

    folder = tmp_path / "worlds" / "demo"
    assert demo.ensure(folder, build=build) is True
    assert demo.ensure(folder, build=build) is False


def test_a_builder_that_makes_no_world_is_found_out(tmp_path: Path) -> None:
    with pytest.raises(MissingPartError, match="holds no world"):
        demo.ensure(tmp_path / "demo", build=lambda folder: None)


def test_a_failed_command_leaves_the_reason_to_the_builder() -> None:
    with pytest.raises(MissingPartError, match="ended with 3") as caught:
        demo.run([sys.executable, "-c", "raise SystemExit(3)"])
    assert caught.value.hint == "The lines above say why."


def test_a_command_that_cannot_start_names_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(MissingPartError, match=r"cannot be started") as caught:
        demo.run([str(tmp_path / "nothing")])
    assert "[builder]" in caught.value.hint


def test_the_command_finds_our_modules() -> None:
    demo.run([sys.executable, "-c", "import world_core.types"])


@pytest.mark.parametrize(
    ("environment", "start"),
    [({"XDG_DATA_HOME": "/data"}, Path("/data")), ({}, Path.home() / ".local" / "share")],
)
def test_the_default_folder_follows_the_users_data_folder(
    environment: dict[str, str], start: Path
) -> None:
    assert demo.default_folder(environment) == start / "searchworld" / "worlds" / "demo"
