"""Exact search in torch over the codes themselves, on the CPU or a GPU; no other file is needed.

Codes are whole numbers up to 127, which half precision holds exactly, and a sum of their products
stays below 2**24 up to 1,040 components, which single precision holds exactly. So the products are
the same on every device, in any order and batch; only the scales are rounded.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any, Self

import numpy as np

from world_core.errors import DamagedFileError, IndexFailedError, MissingPartError
from world_core.indexes.codes import Coded
from world_core.indexes.row_flags import RowFlags
from world_core.indexes.tiers import TIE_MARGIN, Found

CHUNK = {"cpu": 1 << 12, "cuda": 1 << 18}
"""Rows multiplied at a time: on a CPU what its cache holds, on a GPU what keeps it busy."""

SPARE_BYTES = 1 << 30
"""Memory of a GPU that is left for scores, masks and the encoder."""

OVERFETCH = 32
"""Rows asked for beyond k, so that ties at its end rarely need a second pass."""


class TorchFlat:
    """All rows of a dense index as one tensor; safe to search from several threads at once.

    On a GPU rows are held in half precision, or, where that does not fit, as bytes that are widened
    a chunk at a time. On a CPU the bytes are the mapped file itself, shared by all processes, and
    torch is set to one thread for the whole process.
    """

    def __init__(self, torch: ModuleType, rows: Any, scales: Any) -> None:  # noqa: ANN401 - torch is optional and has no types here
        """Take the rows (n, dim), int8 or float16, and scales (n,) float32 on the same device."""
        self._torch = torch
        self._rows = rows
        self._scales = scales
        self._device = rows.device
        self._chunk = CHUNK.get(rows.device.type, CHUNK["cuda"])

    @classmethod
    def open(cls, codes: Path, scales: Path, device: str = "cpu", *, held: str = "auto") -> Self:
        """Bring the codes of a world to a device.

        Args:
            codes: the file of the codes, int8 of shape (n, dim).
            scales: the file of the scales, float32 of shape (n,).
            device: ``cpu``, ``cuda`` or ``cuda:N``.
            held: ``half``, ``byte``, or ``auto``: byte on a CPU, elsewhere half if it fits.

        Raises:
            MissingPartError: torch is not installed, or finds no such device.
            DamagedFileError: a file cannot be mapped.
            IndexFailedError: the rows do not fit the device.
        """
        torch = load_torch()
        place = _device(torch, device)
        table, factors = (_shared(path) for path in (codes, scales))
        room = _room(torch, place)
        if held == "auto":
            fits = room is None or 2 * table.size <= room
            held = "half" if place.type != "cpu" and fits else "byte"
        needed = table.size * (2 if held == "half" else 1)
        if room is not None and needed > room:
            raise IndexFailedError(
                f"{len(table)} rows of {table.shape[1]} components need {needed / 1e9:.1f} GB on "
                f"{device}, which has {room / 1e9:.1f} GB to spare.",
                hint="Serve with --dense-device cpu, or on a larger GPU.",
            )
        if place.type == "cpu":
            # The callers are the parallelism. On a busy machine the threads of one product wait
            # for each other, which makes it ten times as long.
            torch.set_num_threads(1)
        rows = _placed(torch, table, place, torch.float16 if held == "half" else torch.int8)
        return cls(torch, rows, torch.from_numpy(factors).to(place))

    @property
    def kind(self) -> str:
        """The word ``torch``."""
        return "torch"

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of components."""
        return int(self._rows.shape[0]), int(self._rows.shape[1])

    @property
    def margin(self) -> float:
        """What rounding does to a score."""
        return TIE_MARGIN

    def breadth(self, k: int) -> int:
        """Return how many rows to ask for so that ties at the end of k are among them."""
        return k + OVERFETCH

    def nearest(
        self, queries: Coded, wanted: int, flags: RowFlags | None, effort: int
    ) -> list[Found]:
        """Return the rows with the largest cosines for each query; see :class:`~.tiers.Tier`.

        All queries share one pass over the rows. ``effort`` changes nothing: every row is looked
        at.

        Raises:
            IndexFailedError: torch failed, for example for want of memory.
        """
        del effort
        torch = self._torch
        try:
            with torch.inference_mode():
                scores, rows = self._best(queries, wanted, flags)
                found_scores, found_rows = scores.cpu().numpy(), rows.cpu().numpy()
        except RuntimeError as error:
            raise IndexFailedError(
                f"torch failed on {self._device} in a search for {wanted} rows: {error}",
                hint="Free memory on the device, or serve with --dense-device cpu.",
            ) from error
        kept = np.isfinite(found_scores)  # rows that are not allowed have the score -inf
        return [
            Found(found_scores[place][kept[place]], found_rows[place][kept[place]])
            for place in range(len(found_rows))
        ]

    def close(self) -> None:
        """Release the memory of the device; a later search fails."""
        self._rows = self._rows[:0].clone()
        self._scales = self._scales[:0].clone()

    def _best(self, queries: Coded, wanted: int, flags: RowFlags | None) -> tuple[Any, Any]:
        """Return scores and rows of the best of all chunks, shape (b, at most wanted)."""
        torch = self._torch
        asked = torch.from_numpy(queries.codes).to(self._device)
        factors = torch.from_numpy(queries.scales).to(self._device)
        barred = None
        if flags is not None:
            barred = ~torch.from_numpy(np.array(flags.flags)).to(self._device)
        best = torch.empty((len(asked), 0), dtype=torch.float32, device=self._device)
        rows = torch.empty((len(asked), 0), dtype=torch.int64, device=self._device)
        for start in range(0, len(self._rows), self._chunk):
            part = slice(start, start + self._chunk)
            scores = products(torch, asked, self._rows[part])
            scores *= self._scales[part]
            scores *= factors[:, None]
            if barred is not None:
                scores.masked_fill_(barred[part], -torch.inf)
            top, places = torch.topk(scores, min(wanted, scores.shape[1]), dim=1)
            best = torch.cat((best, top), dim=1)
            rows = torch.cat((rows, places + start), dim=1)
            if best.shape[1] > wanted:
                best, order = torch.topk(best, wanted, dim=1)
                rows = rows.gather(1, order)
        best, order = torch.sort(best, dim=1, descending=True)
        return best, rows.gather(1, order)


def products(torch: ModuleType, queries: Any, rows: Any) -> Any:  # noqa: ANN401 - torch has no types here
    """Return the dot products (b, n), float32, of queries (b, dim) int8 with rows (n, dim).

    On a GPU halves are multiplied and summed in 32 bits, where torch can give such sums (from 2.8
    on); elsewhere both are widened first.
    """
    if rows.is_cuda and torch.__version__ >= (2, 8):
        return torch.mm(queries.half(), rows.half().T, out_dtype=torch.float32)
    return torch.mm(queries.float(), rows.float().T)


def load_torch() -> ModuleType:
    """Import torch.

    Raises:
        MissingPartError: it is not installed.
    """
    try:
        import torch
    except ModuleNotFoundError as error:
        raise MissingPartError(
            "The package torch is not installed, and this dense index needs it.",
            hint="pip install 'searchworld[dense]'",
        ) from error
    module: ModuleType = torch
    return module


def _device(torch: ModuleType, name: str) -> Any:  # noqa: ANN401 - torch has no types here
    device = torch.device(name)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise MissingPartError(
            f"torch {torch.__version__} sees {torch.cuda.device_count()} GPUs, so there is no "
            f"{name!r}.",
            hint="Serve with --dense-device cpu, or install torch for your GPU and its driver.",
        )
    return device


def _room(torch: ModuleType, device: Any) -> int | None:  # noqa: ANN401 - torch has no types here
    """Return the bytes a GPU can take, None for a CPU, whose rows stay in the mapped file."""
    if device.type != "cuda":
        return None
    return max(0, int(torch.cuda.mem_get_info(device)[0]) - SPARE_BYTES)


def _shared(path: Path) -> np.ndarray[Any, np.dtype[Any]]:
    """Map a table; torch warns of arrays that cannot be written, hence copy on write."""
    try:
        return np.lib.format.open_memmap(path, mode="c")
    except (OSError, ValueError, EOFError) as error:
        raise DamagedFileError(
            f"{path} cannot be read ({error}).", hint="Restore the file or build the world again."
        ) from error


def _placed(torch: ModuleType, table: Any, device: Any, kind: Any) -> Any:  # noqa: ANN401 - torch has no types here
    """Return the table as a tensor of a kind on a device, brought over a chunk at a time."""
    if device.type == "cpu" and kind is torch.int8:
        return torch.from_numpy(table)
    rows = torch.empty(table.shape, dtype=kind, device=device)
    for start in range(0, len(table), CHUNK["cuda"]):
        part = slice(start, start + CHUNK["cuda"])
        rows[part] = torch.from_numpy(table[part]).to(device)
    return rows
