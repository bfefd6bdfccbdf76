"""Where a dense index is searched: the CPU, or a GPU by torch or by FAISS."""

from __future__ import annotations

import ctypes
import importlib.util
import logging
from dataclasses import dataclass
from pathlib import Path

from world_core.errors import BadInputError
from world_core.indexes.codes import Coded
from world_core.indexes.faiss_gpu import FaissGpuTier
from world_core.indexes.faiss_tiers import read_tier
from world_core.indexes.flat import TorchFlat, load_torch
from world_core.indexes.tiers import Tier

DEVICES = ("auto", "cpu", "cuda", "faiss-gpu")
"""Where to search.

``cpu``: the tier of the recipe. ``cuda``: all rows on a GPU by torch, whatever the tier.
``faiss-gpu``: the tier of the recipe on a GPU by FAISS. ``auto``: cuda where torch sees a GPU, else
cpu.
"""

_LOG = logging.getLogger(__name__)
_DRIVER = "libcuda.so.1"


@dataclass(frozen=True, slots=True)
class DenseFiles:
    """The files that a tier may be read from."""

    index: Path
    codes: Path
    scales: Path


def check_device(device: str) -> str:
    """Return the name of a device if there is such a one.

    Raises:
        BadInputError: there is not.
    """
    if device not in DEVICES:
        raise BadInputError(
            f"There is no dense device {device!r}.", hint=f"Use one of: {', '.join(DEVICES)}."
        )
    return device


def resolved(device: str) -> str:
    """Return the device that ``auto`` stands for on this machine, any other as it is.

    torch is asked only where there is a driver: loading it takes seconds that machines without a
    GPU need not spend.
    """
    if check_device(device) != "auto":
        return device
    try:
        ctypes.CDLL(_DRIVER)
    except OSError:
        return "cpu"
    if importlib.util.find_spec("torch") is None:
        return "cpu"
    return "cuda" if load_torch().cuda.device_count() else "cpu"


def open_tier(files: DenseFiles, table: Coded, kind: str, device: str) -> Tier:
    """Open what proposes rows: of a kind, on a device.

    Args:
        files: the files of the dense index.
        table: the codes, mapped.
        kind: the tier that the manifest states; "" for any that has a file of its own.
        device: one of ``DEVICES``.

    Raises:
        BadInputError: no such device.
        DamagedFileError: a file is missing, cut, or not one of ours.
        MissingPartError: what the tier or the device needs is not there.
        IndexFailedError: the rows do not fit the device.
    """
    place = resolved(device)
    if place == "cuda" or kind == "torch":
        name = "cuda" if place in ("cuda", "faiss-gpu") else "cpu"
        tier: Tier = TorchFlat.open(files.codes, files.scales, name)
    elif place == "faiss-gpu":
        tier = FaissGpuTier.of(read_tier(files.index), table)
    else:
        tier = read_tier(files.index)
    _LOG.info("dense index of %d rows: tier %s on %s", tier.shape[0], tier.kind, place)
    return tier
