from __future__ import annotations

import ctypes
import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch

from world_core.errors import BadInputError, DamagedFileError, MissingPartError
from world_core.indexes import devices
from world_core.indexes.codes import Coded, quantised
from world_core.indexes.dense import DenseIndex, write_dense
from world_core.indexes.devices import DEVICES, DenseFiles, check_device, open_tier, resolved

NO_GPU = pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")


@pytest.fixture
def files(tmp_path: Path) -> DenseFiles:
    return DenseFiles(tmp_path / "index.faiss", tmp_path / "codes.npy", tmp_path / "scales.npy")


def fill(folder: Path, tier: str) -> Coded:
    rows = np.random.default_rng(1).standard_normal((20, 8)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    write_dense(folder, rows, np.arange(20, dtype=np.int64), tier=tier)
    return quantised(rows)


@pytest.mark.parametrize("device", DEVICES)
def test_known_devices_are_taken(device: str) -> None:
    assert check_device(device) == device


def test_another_device_is_refused_with_the_choice() -> None:
    with pytest.raises(BadInputError, match="'tpu'") as caught:
        resolved("tpu")
    assert "faiss-gpu" in caught.value.hint


def test_auto_is_the_cpu_where_there_is_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_DRIVER", "libno-such-driver.so.1")

    assert resolved("auto") == "cpu"


@pytest.mark.parametrize(("gpus", "place"), [(0, "cpu"), (2, "cuda")])
def test_auto_goes_by_the_gpus_of_torch_where_there_is_a_driver(
    monkeypatch: pytest.MonkeyPatch, gpus: int, place: str
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(ctypes, "CDLL", asked.append)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)

    assert resolved("auto") == place
    assert asked == ["libcuda.so.1"]


def test_auto_is_the_cpu_where_torch_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    assert resolved("auto") == "cpu"


@pytest.mark.parametrize("device", ["cpu", "cuda", "faiss-gpu"])
def test_a_named_device_is_not_guessed(device: str) -> None:
    assert resolved(device) == device


def test_the_cpu_opens_the_tier_of_the_recipe(files: DenseFiles) -> None:
    table = fill(files.index.parent, "ivf")

    assert open_tier(files, table, "ivf", "cpu").kind == "ivf"
    assert open_tier(files, table, "", "cpu").kind == "ivf"


def test_the_tier_torch_needs_no_index_file(files: DenseFiles) -> None:
    table = fill(files.index.parent, "torch")

    assert not files.index.exists()
    assert open_tier(files, table, "torch", "cpu").kind == "torch"
    with pytest.raises(DamagedFileError, match=r"index\.faiss is missing"):
        open_tier(files, table, "", "cpu")


@NO_GPU
@pytest.mark.parametrize("kind", ["flat", "torch"])
@pytest.mark.parametrize("device", ["cuda", "faiss-gpu"])
def test_a_gpu_that_is_not_there_is_a_missing_part(
    files: DenseFiles, kind: str, device: str
) -> None:
    table = fill(files.index.parent, kind)

    with pytest.raises(MissingPartError, match="GPU"):
        open_tier(files, table, kind, device)
    with pytest.raises(MissingPartError, match="GPU"):
        DenseIndex.open(files.index.parent, kind=kind, device=device)
