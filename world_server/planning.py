"""What ``world-server plan`` prints."""

from __future__ import annotations

import json
from pathlib import Path

from world_core import machine, plan_report
from world_core.machine import Machine
from world_server import room
from world_server.errors import SettingsError
from world_server.settings import Settings


def describe(settings: Settings, *, as_json: bool, here: Machine | None = None) -> tuple[bool, str]:
    """Return whether the worlds fit this machine together, and the plan as text or JSON.

    Raises:
        SettingsError: no world is named.
        BadWorldError: a folder is no world, or its manifest cannot be read.
    """
    if not settings.worlds:
        raise SettingsError(
            "No world to plan for.",
            hint="Name a world folder; for one that is not built: corpus-builder plan --pages N.",
        )
    found = here or machine.look(Path(settings.worlds[0]))
    plans = room.plan_for(settings, found)
    whole = room.together([one for _, one in plans])
    if as_json:
        worlds = {
            name: {
                "holds": plan_report.extent_json(one.extent),
                "serve": plan_report.serving_json(one),
            }
            for name, one in plans
        }
        value = {
            "machine": plan_report.machine_json(found),
            "worlds": worlds,
            "memory": plan_report.need_json(whole),
            "fits": whole.fits,
        }
        return whole.fits, json.dumps(value)
    lines = plan_report.machine_lines(found)
    for name, one in plans:
        lines += [
            f"{name}:",
            *plan_report.extent_lines(one.extent),
            *plan_report.serving_lines(one),
        ]
    lines.append(f"together     {plan_report.need_line(whole)}")
    return whole.fits, "\n".join([*lines, *whole.changes])
