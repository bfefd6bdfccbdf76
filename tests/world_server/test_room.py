from __future__ import annotations

import asyncio
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.world_core.machines import machine
from world_core import machine as machines
from world_core import plan
from world_core.errors import ForeignWorldError, TooLargeError
from world_core.machine import Machine
from world_server import cli, planning, room
from world_server.errors import SettingsError
from world_server.settings import Settings, table
from world_server.worlds import opener_for

SMALL = machine(memory=0.1)


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for row in table():
        monkeypatch.delenv(row.environment, raising=False)


@pytest.fixture
def small_machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Let the process believe that it has 102 MiB."""
    monkeypatch.setattr(machines, "look", lambda folder: SMALL)
    return SMALL


def version_of(world: Path) -> Path:
    return world / (world / "current").read_text("utf-8").strip()


def test_a_world_that_fits_is_let_through(tiny_world: Path) -> None:
    settings = Settings(worlds=(str(tiny_world),))
    room.check(settings)
    room.check(settings, machine())
    room.check_one(version_of(tiny_world), machine())


def test_a_world_that_does_not_fit_is_refused_with_figures_and_a_way_out(tiny_world: Path) -> None:
    with pytest.raises(TooLargeError) as caught:
        room.check(Settings(worlds=(str(tiny_world),)), SMALL)
    said = str(caught.value)
    assert said.startswith("Serving tiny@1 needs ")
    assert "of the 102 MiB free here 10% is left to others, so 92 MiB can be used" in said
    assert "Use a machine with " in said
    assert "--no-plan-check" in said
    with pytest.raises(TooLargeError, match="Serving tiny@1"):
        room.check_one(version_of(tiny_world), SMALL)


def test_the_setting_goes_on_all_the_same(tiny_world: Path) -> None:
    room.check(Settings(worlds=(str(tiny_world),), plan_check=False), SMALL)


def test_every_process_that_opens_the_worlds_counts(tiny_world: Path) -> None:
    settings = Settings(worlds=(str(tiny_world),), engine="local")
    one, four = (
        room.plan_for(replace(settings, workers=workers), machine())[0][1].memory.bytes
        for workers in (1, 4)
    )
    shared = room.plan_for(replace(settings, workers=4, engine="process"), machine())[0][1]
    assert one < shared.memory.bytes < four


def test_worlds_share_processes_and_java(tiny_world: Path) -> None:
    plans = room.plan_worlds([str(tiny_world)] * 2, machine(), processes=1)
    (_, one), _ = plans
    both = room.together([found for _, found in plans])
    assert both.parts["processes"] == one.memory.parts["processes"]
    assert both.parts["java"] == one.memory.parts["java"]
    assert both.parts["lexical index"] == 2 * one.memory.parts["lexical index"]
    assert both.free == one.memory.free


def test_worlds_that_fit_alone_may_not_fit_together(tiny_world: Path) -> None:
    names = [str(tiny_world)] * 3
    ((_, one),) = room.plan_worlds(names[:1], machine(), processes=1)
    just = replace(machine(), memory_free=int(one.memory.bytes / 0.9) + 10)
    room.check(Settings(worlds=(names[0],)), just)
    with pytest.raises(TooLargeError, match="Serve fewer worlds"):
        room.check(Settings(worlds=tuple(names)), just)


def test_a_folder_that_is_no_world_is_left_to_its_opening(tmp_path: Path, tiny_world: Path) -> None:
    room.check(Settings(worlds=(str(tmp_path / "none"),)), SMALL)
    with pytest.raises(TooLargeError):
        room.check(Settings(worlds=(str(tmp_path / "none"), str(tiny_world))), SMALL)
    with pytest.raises(ForeignWorldError):
        room.check_one(tmp_path / "none", SMALL)


def test_nothing_is_loaded_before_the_refusal(
    tiny_world: Path, tmp_path: Path, small_machine: Machine
) -> None:
    """The files are gone but for the manifest, so whoever opened one would fail otherwise."""
    bare = tmp_path / "bare"
    bare.mkdir()
    shutil.copy(version_of(tiny_world) / "manifest.json", bare)
    settings = Settings(worlds=(str(bare),))
    with pytest.raises(TooLargeError):
        opener_for(settings, verify=True)(bare)
    with pytest.raises(TooLargeError):
        room.check(settings)


def test_the_opener_does_not_ask_where_it_was_told_so(
    tiny_world: Path, small_machine: Machine
) -> None:
    settings = Settings(worlds=(str(tiny_world),), plan_check=False)
    world = opener_for(settings, verify=False)(version_of(tiny_world))
    assert world.manifest.name == "tiny"
    asyncio.run(world.close())


def test_serve_refuses_by_one_sentence(
    tiny_world: Path, small_machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["serve", str(tiny_world), "--port", "0"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("world-server: Serving tiny@1 needs ")
    assert len(said.err.splitlines()) == 1


def test_get_refuses_and_goes_on_when_told(
    tiny_world: Path, small_machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["get", str(tiny_world), "/search?q=ferry"]) == 2
    assert "--no-plan-check" in capsys.readouterr().err
    assert cli.main(["get", str(tiny_world), "/search?q=ferry", "--no-plan-check"]) == 0


def test_plan_prints_what_a_world_takes(
    tiny_world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["plan", str(tiny_world)]) == 0
    said = capsys.readouterr().out
    for start in ("machine ", "tiny@1:", "holds  ", "dense  ", "serve memory ", "rates  "):
        assert f"\n{start}" in f"\n{said}"
    assert "3 pages, 3 versions, 3 passages" in said


def test_plan_as_json_and_its_exit_code(
    tiny_world: Path, small_machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["plan", str(tiny_world), "--json"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert found["fits"] is False
    assert found["machine"]["memory"] == SMALL.memory
    assert found["worlds"]["tiny@1"]["holds"]["pages"] == 3
    assert found["memory"]["needed"] > found["memory"]["usable"]
    assert found["memory"]["changes"]


def test_a_plan_of_nothing_names_the_builders_command() -> None:
    with pytest.raises(SettingsError, match="corpus-builder plan"):
        planning.describe(Settings(), as_json=False)


def test_the_text_of_a_plan_that_does_not_fit_ends_with_what_to_change(tiny_world: Path) -> None:
    fits, text = planning.describe(Settings(worlds=(str(tiny_world),)), as_json=False, here=SMALL)
    assert not fits
    assert "DOES NOT FIT" in text
    assert text.splitlines()[-1].startswith("Use a machine with ")
    assert plan.shown(SMALL.memory_free) in text
