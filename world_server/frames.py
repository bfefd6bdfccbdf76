"""Frames: how the processes of one server speak to each other over a local stream socket.

A frame is a header of 13 bytes, big-endian, and a body:

    length  uint32   bytes of the body
    call    uint64   number of the call it belongs to, chosen by the asking side
    kind    uint8    what the body is; each protocol has a table of its own

Any number of calls may be under way on one connection; answers come in any order.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from world_server.errors import FrameError

HEADER = struct.Struct("!IQB")
LIMIT = 1 << 28
"""Largest body in bytes unless a reader is given another limit."""

_READ = 1 << 16


@dataclass(frozen=True, slots=True)
class Frame:
    """One message: the call it belongs to, its kind (0 to 255) and its body."""

    call: int
    kind: int
    body: bytes = b""


def packed(frame: Frame, *, limit: int = LIMIT) -> bytes:
    """Return the bytes of a frame.

    Raises:
        FrameError: the body is larger than the limit.
    """
    if len(frame.body) > limit:
        raise _too_large(frame.kind, len(frame.body), limit)
    return HEADER.pack(len(frame.body), frame.call, frame.kind) + frame.body


class FrameDecoder:
    """Cuts a stream of bytes into frames; good for one stream, and for no more after an error."""

    def __init__(self, *, limit: int = LIMIT) -> None:
        self._limit = limit
        self._rest = bytearray()

    @property
    def is_between(self) -> bool:
        """True when the stream may end here: no frame is half read."""
        return not self._rest

    def feed(self, data: bytes) -> list[Frame]:
        """Take the next bytes and return the frames they complete, in order.

        Raises:
            FrameError: a frame announces a body larger than the limit.
        """
        self._rest += data
        frames = []
        place = 0
        with memoryview(self._rest) as view:
            while len(view) - place >= HEADER.size:
                length, call, kind = HEADER.unpack_from(view, place)
                if length > self._limit:
                    raise _too_large(kind, length, self._limit)
                start, end = place + HEADER.size, place + HEADER.size + length
                if end > len(view):
                    break
                frames.append(Frame(call, kind, bytes(view[start:end])))
                place = end
        del self._rest[:place]
        return frames


class FrameSocket:
    """Frames over a connected blocking socket, which it owns.

    Several threads may send; one at a time may receive. The socket's timeout holds for each wait;
    a wait that ran into it loses nothing and may be taken up again.
    """

    def __init__(self, connected: socket.socket, *, limit: int = LIMIT) -> None:
        self._socket = connected
        self._limit = limit
        self._decoder = FrameDecoder(limit=limit)
        self._ready: deque[Frame] = deque()
        self._sending = threading.Lock()

    def fileno(self) -> int:
        """Return the descriptor of the socket, -1 once it is closed."""
        return self._socket.fileno()

    def send(self, frame: Frame) -> None:
        """Send a frame as a whole.

        Raises:
            FrameError: its body is larger than the limit; nothing was sent.
            OSError: the other side is gone.
        """
        data = packed(frame, limit=self._limit)
        with self._sending:
            self._socket.sendall(data)

    def receive(self) -> Frame | None:
        """Wait for the next frame and return it; ``None`` when the other side has ended.

        Raises:
            FrameError: the stream ended inside a frame, or a body is larger than the limit.
            TimeoutError: nothing came within the socket's timeout.
            OSError: the connection broke.
        """
        while not self._ready:
            data = self._socket.recv(_READ)
            if not data:
                if not self._decoder.is_between:
                    raise _cut_off()
                return None
            self._ready.extend(self._decoder.feed(data))
        return self._ready.popleft()

    def close(self) -> None:
        """Close the socket, and let a receiver in another thread notice."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the other side has closed it already
        finally:
            self._socket.close()


class FrameProtocol(asyncio.Protocol):
    """Frames over a stream of an event loop; whatever comes is handed on at once.

    Give it to ``loop.create_unix_connection`` or ``create_unix_server``.

    Args:
        on_frame: called with every frame, in order.
        on_lost: called once when the connection has ended, with the reason: ``None`` when the other
            side closed it between two frames, or when it was closed here.
        limit: largest body in bytes that is taken or sent.
    """

    def __init__(
        self,
        on_frame: Callable[[Frame], None],
        on_lost: Callable[[Exception | None], None],
        *,
        limit: int = LIMIT,
    ) -> None:
        self._on_frame = on_frame
        self._on_lost = on_lost
        self._limit = limit
        self._decoder = FrameDecoder(limit=limit)
        self._transport: asyncio.Transport | None = None
        self._fault: FrameError | None = None

    @property
    def is_open(self) -> bool:
        """True while frames can be sent."""
        return self._transport is not None and not self._transport.is_closing()

    def send(self, frame: Frame) -> None:
        """Send a frame; dropped silently when the connection has ended, as ``on_lost`` says.

        Raises:
            FrameError: its body is larger than the limit; nothing was sent.
        """
        data = packed(frame, limit=self._limit)
        if self._transport is not None and self.is_open:
            self._transport.write(data)

    def close(self) -> None:
        """End the connection after what was sent has gone out."""
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Hand on the frames that are whole; end the connection when the stream is damaged."""
        if self._fault is not None:
            return
        try:
            frames = self._decoder.feed(data)
        except FrameError as error:
            self._fault = error
            self.close()
            return
        for frame in frames:
            self._on_frame(frame)

    def connection_lost(self, exc: Exception | None) -> None:
        """Say that the connection has ended."""
        reason: Exception | None = self._fault or exc
        if reason is None and not self._decoder.is_between:
            reason = _cut_off()
        self._on_lost(reason)


def _too_large(kind: int, length: int, limit: int) -> FrameError:
    return FrameError(
        f"A frame of kind {kind} holds {length} bytes, more than the limit of {limit}.",
        hint="The other process is not of this program, or the answer is too large to pass on.",
    )


def _cut_off() -> FrameError:
    return FrameError("The stream ended inside a frame.", hint="The other process has died.")
