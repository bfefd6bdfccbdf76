"""What was made of the last object, for callers that ask twice in a row."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Source = TypeVar("Source")
Made = TypeVar("Made")


class LastMade(Generic[Source, Made]):
    """A function of an immutable object that each thread remembers for its last one.

    A search asks an index for candidates and then for the scores of some units, with one query: the
    same object, so that nothing has to be compared.
    """

    def __init__(self, make: Callable[[Source], Made]) -> None:
        self._make = make
        self._own = threading.local()

    def __call__(self, source: Source) -> Made:
        """Return what is made of the object; errors of the function are raised and not kept."""
        if getattr(self._own, "source", None) is not source:
            made = self._make(source)
            self._own.source, self._own.made = source, made
        found: Made = self._own.made
        return found
