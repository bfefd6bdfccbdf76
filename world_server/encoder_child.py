"""One process of an encoder as its parent sees it, from its start to its end."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import msgspec

from world_server.encoder_process import Beat, Kind, Spec
from world_server.engine_protocol import ErrorTold, decoded, error_of
from world_server.errors import EncoderDownError
from world_server.frames import Frame, FrameProtocol


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds after which a process is taken for stuck, or a call for lost.

    Attributes:
        load_s: from its start to the loaded model.
        beat_s: between two signs of life that it is asked for.
        beats: signs of life that it may owe.
        answer_s: from a call to its answer, however many are before it.
        retry_s: that a call waits for the process that follows the one that ended, beyond what
            the loading of the model took before.
    """

    load_s: float = 300.0
    beat_s: float = 1.0
    beats: int = 5
    answer_s: float = 30.0
    retry_s: float = 5.0


class EncoderChild:
    """A process that loads, answers and ends; belongs to one event loop.

    Attributes:
        beat: what it said of itself last.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        on_frame: Callable[[Frame], None],
        patience: Patience,
    ) -> None:
        self._process = process
        self._on_frame = on_frame
        self._patience = patience
        self._wire = FrameProtocol(self._take, self._end)
        self._ended = asyncio.Event()
        self._loaded: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._owed = 0
        self.beat = Beat("", 0, 0, 0)

    @classmethod
    async def start(cls, spec: Spec, on_frame: Callable[[Frame], None], patience: Patience) -> Self:
        """Start a process; ``on_frame`` is called with each answer to a call.

        Raises:
            EncoderDownError: the system lets no process start.
        """
        try:
            here, there = socket.socketpair()
            with there:
                process = _started(there.fileno(), spec)
        except OSError as error:
            raise EncoderDownError(f"The encoder's process cannot be started: {error}.") from error
        child = cls(process, on_frame, patience)
        await asyncio.get_running_loop().create_unix_connection(lambda: child._wire, sock=here)
        return child

    @property
    def process_id(self) -> int:
        """Number of the process."""
        return self._process.pid

    async def load(self) -> None:
        """Wait until the model is loaded.

        Raises:
            MissingPartError, BadInputError, EncoderError: why it cannot be.
        """
        seconds = self._patience.load_s
        try:
            await asyncio.wait_for(self._loaded, seconds)
        except TimeoutError:
            raise EncoderDownError(f"The model was not loaded within {seconds:g} s.") from None

    async def watch(self, is_late: Callable[[], bool]) -> EncoderDownError:
        """Return why the process ended, or why it must be, as soon as that is so.

        Signs of life are counted, not timed: when the parent itself had stood still, the process
        owes one more, and its answers are read first.
        """
        patience = self._patience
        while self._owed < patience.beats:
            if is_late():
                return EncoderDownError(
                    f"The encoder's process did not answer a call within {patience.answer_s:g} s."
                )
            self._owed += 1
            self._wire.send(Frame(0, Kind.PING))
            try:
                await asyncio.wait_for(self._ended.wait(), patience.beat_s)
            except TimeoutError:
                continue
            return EncoderDownError("The encoder's process ended.")
        seconds = patience.beats * patience.beat_s
        return EncoderDownError(f"The encoder's process stood still for {seconds:g} s.")

    def send(self, frame: Frame) -> None:
        """Send a call."""
        self._wire.send(frame)

    def close(self) -> None:
        """Let go of the process, which then ends by itself."""
        self._wire.close()

    async def kill(self) -> int:
        """End the process if it has not ended, and return its exit code."""
        self._wire.close()
        self._process.kill()
        return await asyncio.to_thread(self._process.wait)

    def _take(self, frame: Frame) -> None:
        self._owed = 0
        if frame.kind in (Kind.READY, Kind.PONG):
            self.beat = msgspec.msgpack.decode(frame.body, type=Beat)
        if frame.call:
            self._on_frame(frame)
        elif frame.kind == Kind.READY and not self._loaded.done():
            self._loaded.set_result(None)
        elif frame.kind == Kind.FAILED and not self._loaded.done():
            self._loaded.set_exception(error_of(decoded(ErrorTold, frame.body)))

    def _end(self, _reason: Exception | None) -> None:
        self._ended.set()
        if not self._loaded.done():
            self._loaded.set_exception(
                EncoderDownError("The encoder's process ended before its model was loaded.")
            )


def _started(descriptor: int, spec: Spec) -> subprocess.Popen[bytes]:
    """Start the process, which finds the packages where this one found them."""
    module = [sys.executable, "-P", "-m", "world_server.encoder_process"]
    return subprocess.Popen(  # noqa: S603 - our own command
        [*module, str(descriptor), msgspec.json.encode(spec).decode()],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        stdin=subprocess.DEVNULL,
        pass_fds=[descriptor],
        process_group=0,  # the signals of a terminal are for the parent
    )
