"""An encoder in a process of its own, which is started again when it ends or stands still.

A thread with an event loop keeps the process: it alone touches the connection and the calls under
way, so there are no locks. What becomes of calls:

- While the process works, any number of calls are under way.
- When it ends, the calls under way wait for the next process and are sent once more. A call whose
  second process ends too, or that waited for it in vain, fails with EncoderDownError.
- A call that comes while there is no working process fails with EncoderDownError at once, so that
  searches that do without vectors are not kept waiting behind it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass

import msgspec
import numpy as np

from world_core.errors import WorldError
from world_core.types import Vector, Vectors
from world_server.encoder_child import EncoderChild, Patience
from world_server.encoder_process import Kind, Spec, text_bytes
from world_server.engine_protocol import ErrorTold, decoded, error_of
from world_server.errors import EncoderDownError
from world_server.frames import Frame
from world_server.query_encoder import PROBE, READY, EncoderReport, encode_all
from world_server.restarts import Restarts

_LOG = logging.getLogger(__name__)
_STARTING = "starting"
_CLOSED = "closed"
_HINT = "Ask again in some seconds; the lexical index alone is not affected."
_TRIES = 2


@dataclass(slots=True, eq=False)
class _Call:
    """A call under way: what is sent, who waits, how often it was sent and when last."""

    frame: Frame
    future: Future[Vector]
    tries: int = 0
    sent: float = 0.0


class RemoteEncoder:
    """The encoder of another process; safe for any number of threads.

    Opening blocks until the model is loaded.

    Args:
        spec: which encoder, and how it batches.
        patience: the bounds of waiting.
        restarts: how often the process may be started.

    Raises:
        MissingPartError, BadInputError, EncoderError: the model cannot be loaded there.
    """

    def __init__(
        self, spec: Spec, *, patience: Patience | None = None, restarts: Restarts | None = None
    ) -> None:
        self._spec = spec
        self._patience = patience or Patience()
        self._restarts = restarts or Restarts()
        self._id, self._dim = "", 0
        self._load_s = 0.0
        self._batches, self._texts = 0, 0  # of the processes that have ended
        self._state = _STARTING
        self._child: EncoderChild | None = None
        self._number = 0
        self._calls: dict[int, _Call] = {}
        self._waiting: list[_Call] = []
        self._closing = asyncio.Event()
        self._opened: Future[None] = Future()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="encoder-client", daemon=True)
        self._thread.start()
        try:
            self._opened.result()
        except BaseException:
            self.close()
            raise

    @property
    def id(self) -> str:
        """The encoder's id."""
        return self._id

    @property
    def dim(self) -> int:
        """Number of components."""
        return self._dim

    @property
    def process_id(self) -> int | None:
        """Number of the process, ``None`` while there is none."""
        child = self._child
        return None if child is None else child.process_id

    def submit(self, text: str) -> Future[Vector]:
        """Send a query; see :class:`~world_server.query_encoder.QueryEncoder`.

        Raises:
            EncoderDownError: the encoder was closed.
        """
        return self._send(Kind.QUERY, text_bytes(text))

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """Return (n, dim) float32, one row a query; blocks until all are there.

        Raises:
            EncoderDownError: there is no working process.
            EncoderError: the model failed.
        """
        return encode_all(self, texts)

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        """Return (n, dim) float32, one row a passage; raises as :meth:`encode_queries` does."""
        body = msgspec.msgpack.encode([text_bytes(text) for text in texts])
        return self._send(Kind.PASSAGES, body).result().reshape(len(texts), self.dim)

    def probe(self) -> Future[Vector]:
        """Encode a fixed text; see :class:`~world_server.query_encoder.QueryEncoder`."""
        return self.submit(PROBE)

    def report(self) -> EncoderReport:
        """Return the state of the process, and the counts as it told them last."""
        child = self._child
        return EncoderReport(
            state=self._state,
            batches=self._batches + (child.beat.batches if child is not None else 0),
            texts=self._texts + (child.beat.texts if child is not None else 0),
            restarts=max(0, self._restarts.total - 1),
        )

    def close(self) -> None:
        """Wait for the calls under way, then end the process."""
        with suppress(RuntimeError):  # the loop has ended already
            self._loop.call_soon_threadsafe(self._close)
        self._thread.join()

    def _send(self, kind: Kind, body: bytes) -> Future[Vector]:
        future: Future[Vector] = Future()
        try:
            self._loop.call_soon_threadsafe(self._begin, kind, body, future)
        except RuntimeError:  # the loop has ended
            raise EncoderDownError("The encoder was closed.") from None
        return future

    # From here on everything runs on the thread of the loop.

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._keep())
        finally:
            self._state = _CLOSED
            self._loop.run_until_complete(asyncio.sleep(0))  # takes in what was sent meanwhile
            self._fail([*self._calls.values(), *self._waiting], "The encoder was closed.")
            if not self._opened.done():
                self._opened.set_exception(EncoderDownError("The encoder could not be opened."))
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()

    async def _keep(self) -> None:
        """Keep a process, until the encoder is closed or its first process cannot load."""
        while True:
            await self._pause()
            if self._closing.is_set():
                return
            fault = await self._live()
            if not self._opened.done():
                self._opened.set_exception(fault)
                return
            if not self._closing.is_set():
                _LOG.error("%s", fault)
            self._set_aside()

    async def _pause(self) -> None:
        """Wait until the next process may be started."""
        seconds = self._restarts.delay(time.monotonic())
        if seconds <= 0.0:
            return
        self._state = f"ended; starts again in {seconds:.0f} s"
        if seconds > self._patience.retry_s:
            self._give_up(self._waiting)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), seconds)

    async def _live(self) -> WorldError:
        """Run one process to its end, and return why it ended."""
        self._state = _STARTING
        self._restarts.begin(time.monotonic())
        try:
            child = await EncoderChild.start(self._spec, self._answer, self._patience)
        except EncoderDownError as fault:
            return fault
        self._child = child
        self._end_if_done()
        try:
            started = self._loop.time()
            await child.load()
            self._load_s = self._loop.time() - started
            self._let_in(child)
            return await child.watch(self._is_late)
        except WorldError as fault:
            return fault
        finally:
            self._state = _STARTING
            self._child = None
            self._batches += child.beat.batches
            self._texts += child.beat.texts
            await child.kill()

    def _let_in(self, child: EncoderChild) -> None:
        """Begin to send calls to a process that has loaded, those that waited first."""
        self._id, self._dim = child.beat.id, child.beat.dim
        self._spec = msgspec.structs.replace(self._spec, expected_id=self._id)
        self._state = READY
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            self._pass_on(call, child)
        if not self._opened.done():
            self._opened.set_result(None)

    def _begin(self, kind: Kind, body: bytes, future: Future[Vector]) -> None:
        if not future.set_running_or_notify_cancel():
            return
        self._number += 1
        call = _Call(Frame(self._number, kind, body), future)
        if self._state == READY and self._child is not None and not self._closing.is_set():
            self._pass_on(call, self._child)
        else:
            self._fail([call], f"The encoder's process does not work: {self._state}.")

    def _pass_on(self, call: _Call, child: EncoderChild) -> None:
        call.tries += 1
        call.sent = self._loop.time()
        self._calls[call.frame.call] = call
        child.send(call.frame)

    def _answer(self, frame: Frame) -> None:
        call = self._calls.pop(frame.call, None)
        if call is None:
            return
        if frame.kind == Kind.VECTOR:
            call.future.set_result(np.frombuffer(frame.body, dtype=np.float32))
        else:
            call.future.set_exception(error_of(decoded(ErrorTold, frame.body)))
        self._end_if_done()

    def _is_late(self) -> bool:
        """True when the oldest call waits too long: its process lives, but is stuck in it."""
        oldest = next(iter(self._calls.values()), None)
        return oldest is not None and self._loop.time() - oldest.sent > self._patience.answer_s

    def _set_aside(self) -> None:
        """Keep the calls of a process that ended for the next one, if it was their first."""
        calls, self._calls = list(self._calls.values()), {}
        again = [call for call in calls if call.tries < _TRIES and not self._closing.is_set()]
        self._fail(
            [call for call in calls if call not in again], "The encoder's process ended twice."
        )
        self._waiting.extend(again)
        if again:
            seconds = self._patience.retry_s + self._load_s
            self._loop.call_later(seconds, self._give_up, again)

    def _give_up(self, calls: Sequence[_Call]) -> None:
        """Fail those of the calls that still wait for a process."""
        late = [call for call in calls if call in self._waiting]
        self._waiting = [call for call in self._waiting if call not in late]
        self._fail(late, f"The encoder's process does not work: {self._state}.")

    def _fail(self, calls: Sequence[_Call], sentence: str) -> None:
        for call in calls:
            call.future.set_exception(EncoderDownError(sentence, hint=_HINT))

    def _close(self) -> None:
        self._closing.set()
        self._give_up(self._waiting)
        self._end_if_done()

    def _end_if_done(self) -> None:
        if self._closing.is_set() and not self._calls and self._child is not None:
            self._child.close()
