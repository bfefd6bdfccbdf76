"""Micro-batches in front of an encoder: who comes while one batch runs is in the next.

Batches are continuous. A query that finds the encoder idle is encoded at once, so a single caller
waits for nobody; the busier the encoder, the larger its batches. The encoder must give a text the
same bits alone and in any batch (``world_core.encoders.invariance.repeatable``).
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from world_core.encoders.base import Encoder
from world_core.errors import EncoderError
from world_core.types import Vector, Vectors
from world_server.query_encoder import EncoderReport, encode_all

LIMIT = 32
"""Texts of one batch at most, unless said otherwise."""


@dataclass(frozen=True, slots=True, eq=False)
class _Wanted:
    """A text somebody waits for, and since when."""

    text: str
    future: Future[Vector]
    arrived: float


class MicroBatcher:
    """Encodes the queries of many callers together, on one thread of its own.

    Args:
        encoder: gives equal bits in any batch; from now on only this object may call it.
        limit: texts of one batch at most.
        wait_s: seconds that a batch waits for more texts, counted from its oldest one.
    """

    def __init__(self, encoder: Encoder, *, limit: int = LIMIT, wait_s: float = 0.0) -> None:
        self._encoder = encoder
        self._limit = limit
        self._wait_s = wait_s
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="encoder")
        self._changed = threading.Condition()
        self._pending: deque[_Wanted] = deque()
        self._suspects: deque[_Wanted] = deque()
        self._busy = False
        self._closed = False
        self._batches = 0
        self._texts = 0

    @property
    def id(self) -> str:
        """The encoder's id."""
        return self._encoder.id

    @property
    def dim(self) -> int:
        """Number of components."""
        return self._encoder.dim

    def submit(self, text: str) -> Future[Vector]:
        """Let a query into the next batch; see :class:`~world_server.query_encoder.QueryEncoder`.

        Raises:
            EncoderError: the batcher was closed.
        """
        future: Future[Vector] = Future()
        with self._changed:
            if self._closed:
                raise EncoderError("The encoder was closed.")
            self._pending.append(_Wanted(text, future, time.monotonic()))
            if not self._busy:
                self._busy = True
                self._pool.submit(self._turn)
            elif len(self._pending) >= self._limit:
                self._changed.notify_all()
        return future

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """Return (n, dim) float32, one row a query; blocks until all are there.

        Raises:
            EncoderError: the model failed, or the batcher was closed.
        """
        return encode_all(self, texts)

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        """Return (n, dim) float32, one row a passage; the texts given are one batch.

        Raises:
            EncoderError: the model failed, or the batcher was closed.
        """
        return self.submit_passages(texts).result()

    def submit_passages(self, texts: Sequence[str]) -> Future[Vectors]:
        """Begin to encode passages, as one batch after the one that runs.

        Raises:
            EncoderError: the batcher was closed.
        """
        with self._changed:
            if self._closed:
                raise EncoderError("The encoder was closed.")
            return self._pool.submit(self._encoder.encode_passages, texts)

    def report(self) -> EncoderReport:
        """Return the batches and texts so far."""
        return EncoderReport(batches=self._batches, texts=self._texts)

    def close(self) -> None:
        """Encode what was let in, then end the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._busy)
        self._pool.shutdown(wait=True)

    def _turn(self) -> None:
        """Take a batch and run it; the pool carries what it raises to :meth:`_deliver`."""
        batch = self._take()
        if batch:
            run = self._pool.submit(self._run, [wanted.text for wanted in batch])
            run.add_done_callback(partial(self._deliver, batch))
        else:
            self._go_on()

    def _take(self) -> list[_Wanted]:
        with self._changed:
            if self._suspects:
                return [self._suspects.popleft()]
            if self._wait_s and self._pending:
                left = self._pending[0].arrived + self._wait_s - time.monotonic()
                self._changed.wait_for(self._is_due, left)
            batch: list[_Wanted] = []
            while self._pending and len(batch) < self._limit:
                wanted = self._pending.popleft()
                # False for a caller who gave up; from here on nobody can.
                if wanted.future.set_running_or_notify_cancel():
                    batch.append(wanted)
        return batch

    def _is_due(self) -> bool:
        return self._closed or len(self._pending) >= self._limit

    def _run(self, texts: list[str]) -> Vectors:
        rows = self._encoder.encode_queries(texts)
        if rows.shape != (len(texts), self.dim):
            raise EncoderError(
                f"The encoder {self.id} gave a table of {rows.shape} for {len(texts)} texts and "
                f"{self.dim} components."
            )
        self._batches += 1
        self._texts += len(texts)
        return rows

    def _deliver(self, batch: list[_Wanted], run: Future[Vectors]) -> None:
        """Give each caller its vector; the texts of a batch that failed run again, each alone.

        So the text that made the batch fail fails by itself. Its neighbours lose nothing but time:
        alone they get the bits they would have had.
        """
        error = run.exception()
        if error is None:
            for wanted, row in zip(batch, run.result(), strict=True):
                vector = row.copy()  # a view would keep the whole table
                vector.flags.writeable = False
                wanted.future.set_result(vector)
        elif len(batch) == 1:
            batch[0].future.set_exception(error)
        else:
            self._suspects.extend(batch)
        self._go_on()

    def _go_on(self) -> None:
        with self._changed:
            if self._suspects or self._pending:
                self._pool.submit(self._turn)
                return
            self._busy = False
            self._changed.notify_all()
