"""Micro-batches in front of an encoder: who comes while one batch runs is in the next.

Batches are continuous. A query that finds the encoder idle is encoded at once, so a single caller
waits for nobody; the busier the encoder, the larger its batches. Where the encoder can tell the
length of a query, a batch is the oldest query with those of its length: more together would cost as
much, and all would wait for the last. The encoder must give a text the same bits alone and in any
batch (``world_core.encoders.invariance.repeatable``).
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from world_core.encoders.base import Encoder, LengthAware, Wrapping
from world_core.errors import EncoderError
from world_core.types import Vector, Vectors
from world_server.query_encoder import PROBE, EncoderReport, encode_all

_LOG = logging.getLogger(__name__)

LIMIT = 32
"""Texts of one batch at most, unless said otherwise."""


@dataclass(slots=True, eq=False)
class _Wanted:
    """A text somebody waits for, since when, and its length, ``None`` while nobody knows it."""

    text: str
    future: Future[Vector]
    arrived: float
    length: int | None = None


class MicroBatcher(Wrapping[Encoder]):
    """Encodes the queries of many callers together, on one thread of its own.

    Args:
        encoder: gives equal bits in any batch; from now on only this object may call it.
        limit: texts of one batch at most.
        wait_s: seconds that a batch waits for more texts, counted from its oldest one.
    """

    def __init__(self, encoder: Encoder, *, limit: int = LIMIT, wait_s: float = 0.0) -> None:
        super().__init__(encoder)
        self._limit = limit
        self._wait_s = wait_s
        self._ruler = encoder if isinstance(encoder, LengthAware) else None
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="encoder")
        self._changed = threading.Condition()
        self._pending: deque[_Wanted] = deque()
        self._suspects: deque[_Wanted] = deque()
        self._busy = False
        self._closed = False
        self._batches = 0
        self._texts = 0

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
                self._begin_turn()
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

    def probe(self) -> Future[Vector]:
        """Encode a fixed text; see :class:`~world_server.query_encoder.QueryEncoder`."""
        return self.submit(PROBE)

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

    def _begin_turn(self) -> None:
        self._pool.submit(self._turn).add_done_callback(self._check_turn)

    def _turn(self) -> None:
        """Take a batch and run it; the pool carries what it raises to :meth:`_deliver`."""
        self._collect()
        batch = self._take()
        if batch:
            run = self._pool.submit(self._run, [wanted.text for wanted in batch])
            run.add_done_callback(partial(self._deliver, batch))
        else:
            self._go_on()

    def _check_turn(self, turn: Future[None]) -> None:
        """Go on without lengths when one could not be told: the model will say whose fault it is.

        Nothing is lost by then, for lengths are told before anything is taken.
        """
        error = turn.exception()
        if error is not None:
            _LOG.error("queries are batched without regard to their length: %r", error)
            self._ruler = None
            self._go_on()

    def _collect(self) -> None:
        """Wait for more texts if that is wanted, then learn the length of those that came."""
        with self._changed:
            if self._wait_s and self._pending and not self._suspects:
                left = self._pending[0].arrived + self._wait_s - time.monotonic()
                self._changed.wait_for(self._is_due, left)
            unknown = [wanted for wanted in self._pending if wanted.length is None]
        if self._ruler is not None:
            for wanted in unknown:
                wanted.length = self._ruler.query_length(wanted.text)

    def _take(self) -> list[_Wanted]:
        """Return the texts of the next batch: the oldest, and younger ones of the same length."""
        batch: list[_Wanted] = []
        with self._changed:
            if self._suspects:
                return [self._suspects.popleft()]
            others: deque[_Wanted] = deque()
            while self._pending and len(batch) < self._limit:
                wanted = self._pending.popleft()
                if batch and wanted.length != batch[0].length:
                    others.append(wanted)
                # False for a caller who gave up; from here on nobody can.
                elif wanted.future.set_running_or_notify_cancel():
                    batch.append(wanted)
            others.extend(self._pending)
            self._pending = others
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
                self._begin_turn()
                return
            self._busy = False
            self._changed.notify_all()
