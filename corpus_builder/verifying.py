"""Recomputing the world id of a folder from what its files say."""

from __future__ import annotations

from pathlib import Path

from corpus_builder.recipe_file import parse
from world_core.content import ContentDigest
from world_core.errors import ForeignWorldError
from world_core.manifest import Manifest
from world_core.pages import PageStore
from world_core.passages import PassageFile


def content_id(folder: Path, manifest: Manifest) -> str:
    """Return the world id over recipe, pages, dead links and passages as they lie in the folder.

    Raises:
        WorldError: a file cannot be read.
        BadRecipeError: the world's recipe is not one.
    """
    text = (folder / "recipe.toml").read_text("utf-8")
    recipe = parse(text, base=folder, origin=str(folder / "recipe.toml"), inputs=False)
    digest = ContentDigest()
    digest.header(
        recipe=recipe.content_part(
            sparse_id=manifest.sparse.encoder_id if manifest.sparse else "",
            reranker_id=manifest.reranker.reranker_id if manifest.reranker else "",
        ),
        encoder_id=manifest.encoder_id,
        analyzer_id=manifest.analyzer_id,
    )
    store = PageStore.open(folder / "pages.sqlite")
    try:
        for page in store.pages():
            digest.page(page)
        for link in store.dead_links():
            digest.dead(link)
    finally:
        store.close()
    passages = PassageFile.open(folder / "passages.bin")
    try:
        for number in range(passages.count):
            digest.passage(passages.version(number), passages.span(number))
    finally:
        passages.close()
    return digest.hexdigest()


def check_content(folder: Path, manifest: Manifest) -> None:
    """Refuse a folder whose content has another world id than its manifest says.

    Raises:
        ForeignWorldError: the ids differ.
        WorldError: a file cannot be read.
    """
    found = content_id(folder, manifest)
    if found != manifest.world_id:
        raise ForeignWorldError(
            f"{folder} says it is world {manifest.world_id[:12]}, but its content is {found[:12]}.",
            hint="Unpack it again, or build the world again.",
        )
