"""Whether this machine has room for a build, asked before its stages and again before its indexes.

How many pages come out of an archive is known only when it is read. So the first look takes the
fewest pages that inputs of their size would hold, and refuses what even those could not fit; the
second one, after the passages are cut, knows the numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from corpus_builder.recipe import Recipe, SourceRecipe
from world_core import machine, plan
from world_core.extent import Extent, of_pages
from world_core.machine import Machine
from world_core.plan import BuildingPlan
from world_core.unit_costs import PASSAGES_A_PAGE

OVERRIDE = "--no-plan-check"

BYTES_A_PAGE: Mapping[str, int] = MappingProxyType(
    {"warc": 100_000, "wacz": 100_000, "jsonl": 50_000, "html": 100_000}
)
"""Bytes of input for which a page is counted at least, five times the usual of packed files."""


def extent_of(recipe: Recipe, pages: int, passages_a_page: float | None = None) -> Extent:
    """Return what a world of so many pages by this recipe will hold.

    Raises:
        BadInputError: a negative number, or an encoder without stated costs.
    """
    dense = recipe.dense
    # Passages are cut at a target; a page of the usual length gives as many as it holds.
    usual = PASSAGES_A_PAGE * 1000 / max(1, recipe.passages.target)
    width = dense.arguments.get("dim", 0) if dense else 0
    return of_pages(
        pages,
        encoder=dense.encoder if dense else "",
        dim=int(width),
        passages_a_page=usual if passages_a_page is None else passages_a_page,
        rows=dense.rows if dense else "none",
        row_pages=dense.pages if dense else 0,
        tier=dense.tier if dense else "auto",
        engine=recipe.lexical.engine,
        unit=recipe.lexical.unit,
    )


def check_inputs(recipe: Recipe, out: Path, workers: int, here: Machine | None = None) -> None:
    """Refuse a build that could not fit even if its inputs held as few pages as they may.

    Raises:
        TooLargeError: there is too little memory or disk; says how much and what to change.
    """
    extent = extent_of(recipe, pages_at_least(recipe.sources))
    _require(recipe, plan.building(extent, here or machine.look(out), workers=workers))


def check_indexes(
    recipe: Recipe, work: Path, pages: int, passages: int, here: Machine | None = None
) -> None:
    """Refuse to go on where the indexes of so many passages would not fit.

    What lies in the work folder is there already, and counts as free.

    Raises:
        TooLargeError: there is too little memory or disk; what is done is kept.
    """
    extent = extent_of(recipe, pages, passages / pages if pages else 0.0)
    used = sum(path.stat().st_size for path in work.rglob("*") if path.is_file())
    found = here or machine.look(work)
    _require(recipe, plan.building(extent, found, workers=0, used=used))


def pages_at_least(sources: tuple[SourceRecipe, ...]) -> int:
    """Return how many pages files of this size hold at least; 0 for sources without a size."""
    return sum(_size(source) // BYTES_A_PAGE.get(source.kind, 1 << 60) for source in sources)


def _size(source: SourceRecipe) -> int:
    """Return the bytes of a source's file, or of the files it takes from its folder."""
    path = Path(source.path)
    if not source.path or not path.exists():
        return 0
    if path.is_file():
        return path.stat().st_size
    names = source.arguments.get("files")
    chosen = [path / name for name in str(names).split("/")] if names else path.rglob("*")
    return sum(file.stat().st_size for file in chosen if file.is_file())


def _require(recipe: Recipe, found: BuildingPlan) -> None:
    plan.require([found.memory, found.disk], f"building {recipe.name}", override=OVERRIDE)
