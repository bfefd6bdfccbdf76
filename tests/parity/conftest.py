"""Worlds for all parity tests: the same pages and vectors, indexed by each lexical engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from corpus_builder.recipe_file import shipped_text
from tests.support import RunningServer, build, running_server

RECIPE = "atlas-demo"
SIZE = 80


def atlas(folder: Path, name: str, engine: str) -> Path:
    """Build the demo world, smaller, with this lexical engine; return its named folder."""
    text = shipped_text(RECIPE)
    for old, new in (("size = 240", f"size = {SIZE}"), ('"tantivy"', f'"{engine}"')):
        assert text.count(old) == 1
        text = text.replace(old, new)
    (folder / "recipe.toml").write_text(text, encoding="utf-8")
    out = folder / "worlds"
    shown = build("--recipe", str(folder / "recipe.toml"), "--name", name, "--out", str(out))
    assert shown.returncode == 0, shown.stdout + shown.stderr
    return out / name


@pytest.fixture(scope="session")
def atlas_world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the named folder of a published atlas world with real vectors."""
    return atlas(tmp_path_factory.mktemp("atlas"), "tantivy", "tantivy")


@pytest.fixture(scope="session")
def lucene_world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the named folder of the same world with an index of Lucene."""
    return atlas(tmp_path_factory.mktemp("atlas"), "lucene", "lucene")


@pytest.fixture(scope="session")
def atlas_server(
    atlas_world: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningServer]:
    """Return a server of the atlas world."""
    with running_server(tmp_path_factory.mktemp("log"), "serve", str(atlas_world)) as running:
        yield running
    assert "Traceback" not in running.log.read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def lucene_server(
    lucene_world: Path, atlas_world: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningServer]:
    """Return a server of both worlds, that of Lucene first."""
    folders = (str(lucene_world), str(atlas_world))
    with running_server(tmp_path_factory.mktemp("log"), "serve", *folders) as running:
        yield running
    assert "Traceback" not in running.log.read_text(encoding="utf-8")
