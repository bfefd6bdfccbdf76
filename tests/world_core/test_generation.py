"""A generation gives its files back, and refuses folders whose parts disagree."""

from __future__ import annotations

import gc
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.world_core.worlds import make_world
from world_core.engine import Engine
from world_core.errors import BadWorldError, ForeignWorldError, IndexFailedError
from world_core.generation import Generation
from world_core.near import write_near
from world_core.types import SearchCall

DAY = 86_400


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_world(
        tmp_path_factory.mktemp("generation"),
        '[lexical]\nengine = "tantivy"\n[dense]\nencoder = "tiny"\n',
    )


def mapped(folder: Path) -> set[str]:
    """Return the files of a folder that this process maps."""
    lines = Path("/proc/self/maps").read_text("utf-8").splitlines()
    return {Path(line.split()[-1]).name for line in lines if str(folder.resolve()) in line}


def searched(world: Path) -> Engine:
    """Return an engine that has answered searches in several views."""
    engine = Engine(Generation.open(world))
    view = engine.generation.plain_view
    for number in range(3):
        call = SearchCall("lighthouse", published_from=number * DAY, sitelinks=True)
        engine.search(call, view.published_between(None, 10**9 + number))
    return engine


def test_a_closed_generation_lets_its_files_go_without_the_collector(world: Path) -> None:
    gc.collect()
    gc.disable()  # a server's collector looks at old objects once in hours
    try:
        engine = searched(world)
        assert mapped(world) >= {"valid_from.npy", "codes.npy"}
        engine.close()
        del engine
        assert mapped(world) == set()
    finally:
        gc.enable()


def test_a_closed_generation_answers_no_search(world: Path) -> None:
    engine = searched(world)
    engine.close()
    with pytest.raises(IndexFailedError):
        engine.search(SearchCall("lighthouse"))


def test_parts_of_two_worlds_are_refused(world: Path, tmp_path: Path) -> None:
    other = make_world(
        tmp_path, '[lexical]\nengine = "tantivy"\n[dense]\nencoder = "tiny"\nrows = "lead"\n'
    )
    mixed = tmp_path / "mixed"
    shutil.copytree(world, mixed)
    shutil.copy(other / "manifest.json", mixed / "manifest.json")
    with pytest.raises(BadWorldError):
        Generation.open(mixed)


def test_near_duplicates_of_another_world_are_refused(world: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(world, tmp_path / "w")
    generation = Generation.open(folder)
    versions = generation.columns.version_count
    assert generation.near.version_count == versions
    generation.close()
    nothing = {"others": np.zeros(0), "shares": np.zeros(0)}
    write_near(folder, {"starts": np.zeros(versions), **nothing})
    with pytest.raises(ForeignWorldError, match=f"near.*{versions - 1} where.*{versions}"):
        Generation.open(folder, verify=False)
    shutil.rmtree(folder / "near")
    generation = Generation.open(folder, verify=False)
    assert generation.near.holders(0)[0].size == 0
    generation.close()
