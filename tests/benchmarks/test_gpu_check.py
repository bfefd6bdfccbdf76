from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from benchmarks import gpu_check
from benchmarks.gpu_check import Device, agreement, check, copy_rate, fitting, passed
from tests.conftest import ROOT
from world_core.indexes.flat import products

SMALL = [
    *("--device", "cpu", "--rows", "3000", "--dim", "64", "--layers", "1"),
    *("--copy-bytes", "1048576", "--shape", "minilm", "--least", "0"),
]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(ROOT / "benchmarks" / "gpu_check.sh"), *arguments],
        env={**os.environ, "PYTHON": sys.executable},
        cwd=Path("/"),
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )


def test_the_script_prints_one_json_object_without_a_gpu() -> None:
    shown = run(*SMALL)

    assert shown.returncode == 0, shown.stderr
    found = json.loads(shown.stdout)
    part = found["flat 64"]
    assert part["rows"] == 3000
    assert part["bytes"] == 3000 * 64 * 2
    assert part["products_exact"] is part["ids_agree"] is True
    assert part["largest_error"] == 0.0
    assert set(part["batches"]) == {"1", "32"}
    assert math.isclose(
        part["batches"]["1"]["of_copy"],
        part["batches"]["1"]["bytes_per_s"] / found["copy"]["bytes_per_s"],
    )
    assert found["encoder minilm"]["tokens_per_s"].keys() == {"1", "4"}
    assert "encoder bge-m3" not in found
    assert "skipped" in found["faiss"]
    assert found["passed"]["flat 64 ids"] is True


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_without_a_gpu_it_says_so_and_fails() -> None:
    shown = run()

    assert shown.returncode == 2
    assert "--device cpu" in json.loads(shown.stdout)["error"]


def test_parts_are_skipped_when_the_time_is_over_and_failures_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options = argparse.Namespace(
        device="cpu", seconds=-1.0, share=0.5, rows=100, dim=[16], layers=1, copy_bytes=1024,
        faiss_rows=10, shape=["minilm"], least=0.0,
    )  # fmt: skip
    assert all("skipped" in part for name, part in check(options).items() if " " in name)

    def fail(*_: object) -> None:
        raise RuntimeError("no memory")

    options.seconds = 100.0
    monkeypatch.setattr(gpu_check, "flat", fail)
    monkeypatch.setattr(gpu_check, "encoder", fail)
    found = check(options)
    assert found["flat 16"]["error"] == "RuntimeError: no memory"
    assert found["passed"] == {"flat 16 at 0.8 of copy": None, "flat 16 ids": None}


def test_a_wrong_product_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert agreement(Device("cpu"), 32, rows=500)["products_exact"]

    monkeypatch.setattr(gpu_check, "products", lambda *given: products(*given) + 1)

    assert not agreement(Device("cpu"), 32, rows=500)["products_exact"]


def test_a_copy_counts_what_is_read_and_written() -> None:
    found = copy_rate(Device("cpu"), 4096)

    assert math.isclose(found["bytes_per_s"], 2 * 4096 / found["seconds"])


def test_as_many_rows_are_taken_as_fit() -> None:
    device = Device("cpu")

    rows = fitting(device, 1024, 0.5)

    assert 0.49 * device.free() < rows * (2 * 1024 + 4) <= 0.5 * device.free()
    assert fitting(device, 10**9, 0.5) == 1000


def test_the_bars_are_those_of_batch_one_and_equal_ids() -> None:
    part = {"batches": {1: {"of_copy": 0.81}}, "ids_agree": False}

    assert passed({"flat 8": part}, [8]) == {"flat 8 at 0.8 of copy": True, "flat 8 ids": False}
