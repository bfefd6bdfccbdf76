"""Query vectors that were computed before: the least recently used are forgotten first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial

from world_core.encoders.base import Wrapping
from world_core.types import Vector, Vectors
from world_server.query_encoder import EncoderReport, QueryEncoder, encode_all

OVERHEAD = 250
"""Bytes counted for each entry beside text and vector: table, links, array header."""


class QueryCache(Wrapping[QueryEncoder]):
    """Remembers the vectors of queries, and lets callers of one query share one computation.

    The key is the query as it was asked, character by character: the encoder would get no other
    text. A vector from here has the bits that the encoder would give. Errors are not remembered.

    Args:
        encoder: computes what is missing; closed together with this object.
        capacity: bytes the vectors and texts may take; 0 keeps nothing, and then only queries that
            are asked at the same moment share a computation.
    """

    def __init__(self, encoder: QueryEncoder, *, capacity: int) -> None:
        super().__init__(encoder)
        self._capacity = capacity
        self._lock = threading.Lock()
        self._vectors: OrderedDict[str, Vector] = OrderedDict()
        self._begun: dict[str, Future[Vector]] = {}
        self._bytes = 0
        self._hits = 0
        self._misses = 0

    @property
    def bytes(self) -> int:
        """Bytes counted for what is remembered."""
        return self._bytes

    def submit(self, text: str) -> Future[Vector]:
        """Return the future of a query's vector; see :class:`QueryEncoder`.

        It cannot be cancelled, for another caller may wait for the same one.

        Raises:
            EncoderError: the encoder was closed.
        """
        with self._lock:
            found = self._vectors.get(text)
            begun = self._begun.get(text)
            if found is not None:
                self._vectors.move_to_end(text)
                self._hits += 1
                return _held(found)
            if begun is not None:
                self._hits += 1
                return begun
            shared: Future[Vector] = Future()
            shared.set_running_or_notify_cancel()
            self._begun[text] = shared
            self._misses += 1
        try:
            work = self._encoder.submit(text)
        except BaseException as error:
            with self._lock:
                del self._begun[text]
            shared.set_exception(error)
            raise
        work.add_done_callback(partial(self._take, text, shared))
        return shared

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """Return (n, dim) float32, one row a query; blocks until all are there.

        Raises:
            EncoderError: the model failed.
        """
        return encode_all(self, texts)

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        """Return (n, dim) float32, one row a passage; nothing of it is remembered.

        Raises:
            EncoderError: the model failed.
        """
        return self._encoder.encode_passages(texts)

    def probe(self) -> Future[Vector]:
        """Let the encoder inside prove itself; nothing is remembered of it."""
        return self._encoder.probe()

    def report(self) -> EncoderReport:
        """Return the encoder's report with the hits and misses so far."""
        return replace(self._encoder.report(), hits=self._hits, misses=self._misses)

    def close(self) -> None:
        """Close the encoder and forget everything."""
        self._encoder.close()
        with self._lock:
            self._vectors.clear()
            self._bytes = 0

    def _take(self, text: str, shared: Future[Vector], work: Future[Vector]) -> None:
        """Remember a vector that was computed and hand it to all who wait for it."""
        error = work.exception()
        with self._lock:
            del self._begun[text]
            if error is None:
                self._keep(text, work.result())
        if error is None:
            shared.set_result(work.result())
        else:
            shared.set_exception(error)

    def _keep(self, text: str, vector: Vector) -> None:
        size = _size(text, vector)
        if size > self._capacity:
            return
        self._vectors[text] = vector
        self._bytes += size
        while self._bytes > self._capacity:
            old, forgotten = self._vectors.popitem(last=False)
            self._bytes -= _size(old, forgotten)


def _held(vector: Vector) -> Future[Vector]:
    future: Future[Vector] = Future()
    future.set_result(vector)
    return future


def _size(text: str, vector: Vector) -> int:
    return 4 * len(text) + vector.nbytes + OVERHEAD
