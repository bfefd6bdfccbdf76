"""Every error of ours has a code, a status and a place in its package's tree."""

from __future__ import annotations

import inspect
import re
from types import ModuleType

import pytest

import corpus_builder.errors
import world_client.errors
import world_core.errors
import world_server.errors
from corpus_builder.errors import BuilderError
from tests.conftest import ROOT
from world_client.errors import ClientError
from world_core.errors import WorldError

TREES: list[tuple[ModuleType, type[Exception]]] = [
    (world_core.errors, WorldError),
    (corpus_builder.errors, BuilderError),
    (world_client.errors, ClientError),
    (world_server.errors, WorldError),
]


def _classes(module: ModuleType) -> list[type[Exception]]:
    return [
        kind
        for _, kind in inspect.getmembers(module, inspect.isclass)
        if issubclass(kind, Exception) and kind.__module__ == module.__name__
    ]


@pytest.mark.parametrize(("module", "base"), TREES)
def test_one_tree_a_package(module: ModuleType, base: type[Exception]) -> None:
    assert all(issubclass(kind, base) for kind in _classes(module))


@pytest.mark.parametrize(("module", "base"), TREES)
def test_the_drawing_names_every_error(module: ModuleType, base: type[Exception]) -> None:
    drawn = set(re.findall(r"\b\w+Error\b", module.__doc__ or ""))
    assert drawn == {kind.__name__ for kind in _classes(module)} | {base.__name__}


@pytest.mark.parametrize(("module", "base"), TREES)
def test_every_error_is_raised_somewhere(module: ModuleType, base: type[Exception]) -> None:
    text = "\n".join(
        path.read_text(encoding="utf-8")
        for package in ("world_core", "world_server", "world_client", "corpus_builder")
        for path in (ROOT / package).rglob("*.py")
        if path.name != "errors.py" or package == "world_client"
    )
    leaves = [kind for kind in _classes(module) if not kind.__subclasses__()]
    unused = [kind.__name__ for kind in leaves if kind.__name__ not in text]
    assert unused == []


def test_core_codes_and_statuses() -> None:
    for kind in _classes(world_core.errors):
        assert issubclass(kind, WorldError)
        assert re.fullmatch(r"[a-z_]+", kind.code)
        assert 400 <= kind.status <= 504


def test_an_error_reads_as_sentence_and_hint() -> None:
    error = world_core.errors.MissingPartError("Java is missing.", hint="Run: x")
    assert str(error) == "Java is missing. Run: x"
    assert str(world_core.errors.MissingPartError("Java is missing.")) == "Java is missing."
