from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from corpus_builder import inspection, publish
from world_core import manifest as manifests
from world_core.errors import DamagedFileError, ForeignWorldError
from world_core.near import write_near
from world_core.types import FOREVER


@pytest.fixture
def home(small_root: Path) -> Path:
    return small_root / "worlds" / "small"


def test_the_facts_are_those_of_the_world(home: Path) -> None:
    facts = inspection.inspect(home)
    folder = publish.resolve(home)
    manifest = manifests.read(folder)
    assert json.loads(json.dumps(facts)) == facts
    assert facts["world_id"] == manifest.world_id
    assert facts["clock"] == "2026-05-28T20:26:40Z"
    assert facts["lost"] == {"invalid JSON": 1}
    assert facts["hosts"] == {"toy.example": 12, "dump.example": 6}
    assert facts["host_count"] == 2
    assert facts["languages"] == {"en": 18}
    assert facts["published"] == {
        "versions": 18,
        "from": "2015-02-28T00:00:00Z",
        "to": "2020-01-06T00:00:00Z",
    }
    assert facts["near"] == {"pairs": 0, "held": 0, "in_groups": 0}
    counts = facts["counts"]
    assert isinstance(counts, dict)
    assert counts["pages"] == 18
    files = facts["files"]
    assert isinstance(files, dict)
    assert files.keys() == manifest.files.keys()
    assert facts["bytes"] == sum(files.values())


def test_near_duplicates_are_counted(home: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(publish.resolve(home), tmp_path / "w")
    group = np.load(folder / "columns" / "group.npy")
    group[[3, 7]] = 3
    np.save(folder / "columns" / "group.npy", group)
    starts = np.repeat([0, 1, 2], [4, 4, 11])
    write_near(folder, {"starts": starts, "others": np.array([7, 3]), "shares": np.ones(2)})
    _sealed(folder)
    assert inspection.inspect(folder)["near"] == {"pairs": 2, "held": 2, "in_groups": 2}
    shutil.rmtree(folder / "near")
    _sealed(folder)
    facts = inspection.inspect(folder)
    assert facts["near"] is None
    assert "near: none" in inspection.lines(facts)


def _sealed(folder: Path) -> None:
    files = manifests.digest_files(folder)
    manifests.write(folder, manifests.read(folder).model_copy(update={"files": files}))


def test_lines_show_every_fact(home: Path) -> None:
    facts = inspection.inspect(home)
    lines = inspection.lines(facts)
    for key in facts:
        assert any(line.startswith(f"{key}:") for line in lines)
    assert "  toy.example: 12" in lines


def test_a_damaged_world_is_refused(home: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(publish.resolve(home), tmp_path / "w")
    (folder / "columns" / "host.npy").write_bytes(b"x")
    with pytest.raises(DamagedFileError, match="host"):
        inspection.inspect(folder)
    with pytest.raises(ForeignWorldError):
        inspection.inspect(tmp_path)


@pytest.mark.parametrize(
    ("instant", "text"),
    [(None, None), (0, "1970-01-01T00:00:00Z"), (FOREVER, None), (-(2**63), None)],
)
def test_instants(instant: int | None, text: str | None) -> None:
    assert inspection.iso(instant) == text


def test_nothing_is_shown_as_none() -> None:
    facts: dict[str, object] = {"a": None, "b": {}, "c": [], "d": 0}
    assert inspection.lines(facts) == ["a: none", "b: none", "c: none", "d: 0"]
