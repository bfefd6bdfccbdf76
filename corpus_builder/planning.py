"""What ``corpus-builder plan`` prints: a world that is not built yet, on this machine."""

from __future__ import annotations

import json
from pathlib import Path

from corpus_builder.recipe import Recipe
from corpus_builder.room import extent_of
from world_core import machine, plan, plan_report
from world_core.machine import Machine


def describe(
    recipe: Recipe,
    pages: int,
    *,
    passages_a_page: float | None,
    out: Path,
    workers: int,
    as_json: bool,
    here: Machine | None = None,
) -> tuple[bool, str]:
    """Return whether the world could be built and served here, and the plan as text or JSON.

    Raises:
        BadInputError: a negative number, or an encoder without stated costs.
    """
    found = here or machine.look(out)
    extent = extent_of(recipe, pages, passages_a_page)
    serving = plan.serving(extent, found)
    building = plan.building(extent, found, workers=workers)
    needs = (serving.memory, building.memory, building.disk)
    fits = all(need.fits for need in needs)
    if as_json:
        value = {
            "machine": plan_report.machine_json(found),
            "holds": plan_report.extent_json(extent),
            "serve": plan_report.serving_json(serving),
            "build": plan_report.building_json(building),
            "fits": fits,
        }
        return fits, json.dumps(value)
    changes = dict.fromkeys(change for need in needs for change in need.changes)
    lines = [
        *plan_report.machine_lines(found),
        *plan_report.extent_lines(extent),
        *plan_report.serving_lines(serving),
        *plan_report.building_lines(building),
        *changes,
    ]
    return fits, "\n".join(lines)
