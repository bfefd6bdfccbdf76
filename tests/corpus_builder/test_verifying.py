from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from corpus_builder import publish
from corpus_builder.build import build
from corpus_builder.verifying import check_content, content_id
from tests.corpus_builder.samples import options, small_recipe, write_dump
from world_core import manifest as manifests
from world_core.errors import ForeignWorldError


@pytest.fixture
def built(small_root: Path) -> Path:
    return publish.resolve(small_root / "worlds" / "small")


def test_the_id_comes_out_again(built: Path) -> None:
    manifest = manifests.read(built)
    assert content_id(built, manifest) == manifest.world_id
    check_content(built, manifest)


@pytest.mark.parametrize(
    ("old", "new"), [("target = 1000", "target = 900"), ("weight = 0.5", "weight = 0.6")]
)
def test_another_recipe_is_another_world(built: Path, tmp_path: Path, old: str, new: str) -> None:
    folder = shutil.copytree(built, tmp_path / "copy")
    recipe = folder / "recipe.toml"
    assert old in recipe.read_text()
    recipe.write_text(recipe.read_text().replace(old, new))
    with pytest.raises(ForeignWorldError, match="its content is"):
        check_content(folder, manifests.read(folder))


def test_another_page_store_is_another_world(
    built: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("other")
    build(small_recipe(write_dump(root / "pages.jsonl", 5)), options(root))
    other = publish.resolve(root / "worlds" / "small")
    folder = shutil.copytree(built, tmp_path / "copy")
    shutil.copy(other / "pages.sqlite", folder / "pages.sqlite")
    with pytest.raises(ForeignWorldError):
        check_content(folder, manifests.read(folder))
