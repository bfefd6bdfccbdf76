"""A small memory of filters that an engine has already built from bitmaps."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

import numpy as np

from world_core.types import Bitmap

Filter = TypeVar("Filter")

UNIT_LIMIT = 2_000_000
"""Units held by all remembered filters together, which bounds their memory."""


class FilterMemory(Generic[Filter]):
    """Remembers the filter built for each bitmap, least recently used dropped first.

    Bitmaps are told apart by content, not identity, so changing an array in place cannot bring
    back a filter of its former content. Safe under threads; two may build the same filter at once.
    """

    def __init__(
        self, build: Callable[[Bitmap], tuple[Filter, int]], limit: int = UNIT_LIMIT
    ) -> None:
        """Remember what ``build`` makes of a bitmap: the filter and the units it holds."""
        self._build = build
        self._limit = limit
        self._lock = Lock()
        self._known: OrderedDict[bytes, tuple[Filter, int]] = OrderedDict()
        self._held = 0

    def get(self, bitmap: Bitmap) -> Filter:
        """Return the filter of this bitmap, building it when it is not remembered."""
        key = hashlib.blake2b(np.packbits(bitmap).tobytes(), digest_size=20).digest()
        with self._lock:
            entry = self._known.get(key)
            if entry is not None:
                self._known.move_to_end(key)
                return entry[0]
        built, size = self._build(bitmap)
        with self._lock:
            if key not in self._known:
                self._known[key] = (built, size)
                self._held += size
            while self._held > self._limit and len(self._known) > 1:
                _, (_, dropped) = self._known.popitem(last=False)
                self._held -= dropped
        return built

    def clear(self) -> None:
        """Forget every filter."""
        with self._lock:
            self._known.clear()
            self._held = 0
