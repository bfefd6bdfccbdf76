"""A real encoder behind a gate, so that a test decides when a batch runs."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from world_core.encoders.tiny import TinyEncoder
from world_core.errors import EncoderError
from world_core.types import Vectors

POISON = "poison"
CRASH = "crash"
PATIENCE = 30.0


class GatedEncoder(TinyEncoder):
    """The tiny encoder; each batch of queries waits for a permit, and is written down.

    A batch that holds ``POISON`` fails with an error of ours, one that holds ``CRASH`` with one
    that no encoder should raise.
    """

    def __init__(self, *, is_open: bool = False) -> None:
        super().__init__(32)
        self.batches: list[list[str]] = []
        self.threads: set[int] = set()
        self.is_open = is_open
        self._permits = threading.Semaphore(0)
        self._entered = threading.Semaphore(0)

    def permit(self, batches: int = 1) -> None:
        """Let batches run, those to come included."""
        self._permits.release(batches)

    def wait_for_batch(self) -> list[str]:
        """Wait until the next batch stands before the gate, and return it."""
        assert self._entered.acquire(timeout=PATIENCE), "no batch came"
        return self.batches[-1]

    def open(self) -> None:
        """Let everything run from now on."""
        self.is_open = True
        self._permits.release(1_000)

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        self.batches.append(list(texts))
        self.threads.add(threading.get_ident())
        self._entered.release()
        if not self.is_open:
            assert self._permits.acquire(timeout=PATIENCE), "no permit came"
        if POISON in texts:
            raise EncoderError(f"The model failed on {len(texts)} texts.")
        if CRASH in texts:
            raise ZeroDivisionError("nobody foresaw this")
        return super().encode_queries(texts)
