"""Which rows of a dense index a view allows, worked out once for a view that is asked again."""

from __future__ import annotations

from collections import OrderedDict
from functools import cached_property
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from world_core.errors import BadInputError
from world_core.types import Bitmap, Numbers

FLAG_LIMIT = 200_000_000
"""Flags kept by all remembered bitmaps of one index together, a byte each."""


class RowFlags:
    """The allowed rows of an index: one flag a row, and what engines make of them.

    Attributes:
        flags: (rows,) one flag a row.
        count: how many are set.
    """

    def __init__(self, flags: Bitmap) -> None:
        self.flags = flags
        self.count = int(np.count_nonzero(flags))

    @cached_property
    def bits(self) -> NDArray[np.uint8]:
        """The flags as bits, the first of a byte lowest, as FAISS reads them."""
        return np.packbits(self.flags, bitorder="little")


class FlagMemory:
    """Turns flags of passages into flags of rows; remembers those of bitmaps that cannot change.

    A read-only bitmap, such as a view's, is kept together with its result and known by identity:
    comparing content would cost as much as working it out again. Safe under threads.
    """

    def __init__(self, rows: Numbers, limit: int = FLAG_LIMIT) -> None:
        """Take the passage number of each row, ascending, shape (n,)."""
        self._rows = rows
        # Nearly every world has a row for each passage, and then no lookup is needed.
        self._all = bool(len(rows)) and int(rows[-1]) == len(rows) - 1
        self._limit = limit
        self._lock = Lock()
        self._known: OrderedDict[int, tuple[Bitmap, RowFlags | None]] = OrderedDict()
        self._held = 0

    def of(self, allowed: Bitmap | None) -> RowFlags | None:
        """Return the flags of the rows, ``None`` when every row is allowed.

        Raises:
            BadInputError: there are fewer flags than passages.
        """
        if allowed is None or not len(self._rows):
            return None
        if len(allowed) <= self._rows[-1]:
            raise BadInputError(
                f"{len(allowed)} flags do not cover passage {self._rows[-1]} of the dense index."
            )
        if allowed.flags.writeable:
            return self._made(allowed)
        key = id(allowed)
        with self._lock:
            entry = self._known.get(key)
            if entry is not None:  # it holds the bitmap, so no other one can have its identity
                self._known.move_to_end(key)
                return entry[1]
        made = self._made(allowed)
        with self._lock:
            if key not in self._known:
                self._known[key] = (allowed, made)
                self._held += len(allowed)
            while self._held > self._limit and len(self._known) > 1:
                _, (dropped, _) = self._known.popitem(last=False)
                self._held -= len(dropped)
        return made

    def _made(self, allowed: Bitmap) -> RowFlags | None:
        flags = allowed[: len(self._rows)] if self._all else allowed[self._rows]
        made = RowFlags(flags)
        return None if made.count == len(flags) else made
