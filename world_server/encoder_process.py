"""The process of an encoder: one model behind a socket that its parent holds the other end of.

The parent starts it as ``python -m world_server.encoder_process DESCRIPTOR SPEC``. It answers
frames (``frames.py``) of these kinds and ends when the parent's end of the socket is closed, in
whatever way the parent ended:

    from the parent             answer
    QUERY     text              VECTOR    float32 x dim, in the machine's byte order
    PASSAGES  list of texts     VECTOR    float32 x dim x texts
    PING                        PONG      Beat
                                READY     Beat, once, when the model is loaded
                                FAILED    ErrorTold, of a call or (call 0) of the loading

Texts are UTF-8 that may hold lone surrogates, all other bodies are MessagePack.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from enum import IntEnum
from functools import partial

import msgspec

from world_core.encoders.base import Encoder
from world_core.encoders.invariance import check_queries, repeatable
from world_core.encoders.loading import load
from world_core.errors import EncoderError, WorldError
from world_core.types import Vector
from world_server import logs
from world_server.batching import LIMIT, MicroBatcher
from world_server.engine_protocol import encoded, told
from world_server.frames import Frame, FrameSocket

EXIT_FAILED = 2


class Kind(IntEnum):
    """What the body of a frame is."""

    QUERY = 1
    PASSAGES = 2
    PING = 3
    VECTOR = 4
    PONG = 5
    READY = 6
    FAILED = 7


class Spec(msgspec.Struct, frozen=True, kw_only=True):
    """Which encoder the process loads, and how it batches."""

    kind: str
    arguments: tuple[tuple[str, str | int], ...] = ()
    threads: int = 1
    expected_id: str | None = None
    limit: int = LIMIT
    wait_s: float = 0.0


class Beat(msgspec.Struct, frozen=True):
    """What the process says of itself: its encoder, and what it did so far."""

    id: str
    dim: int
    batches: int
    texts: int


def text_bytes(text: str) -> bytes:
    """Return a text as a body; any string of Python can cross."""
    return text.encode("utf-8", "surrogatepass")


def bytes_text(body: bytes) -> str:
    """Return the text of a body."""
    return body.decode("utf-8", "surrogatepass")


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve one encoder until the parent has gone; return the exit code."""
    descriptor, spec = sys.argv[1:] if arguments is None else arguments
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Meant for the parent, who lets running calls finish and then closes the socket.
        signal.signal(number, signal.SIG_IGN)
    logs.configure("warning")
    connected = socket.socket(fileno=int(descriptor))
    threading.Thread(target=_end_with_parent, args=(connected.fileno(),), daemon=True).start()
    return _serve(FrameSocket(connected), msgspec.json.decode(spec, type=Spec))


def _end_with_parent(descriptor: int) -> None:
    """End the process when the other end of the socket is closed, whatever it is doing."""
    poll = select.poll()
    poll.register(descriptor, 0)  # of which a hang-up is always told
    poll.poll()
    os._exit(0)


def _serve(parent: FrameSocket, spec: Spec) -> int:
    try:
        encoder: Encoder = load(
            spec.kind, dict(spec.arguments), threads=spec.threads, expected_id=spec.expected_id
        )
        encoder = repeatable(encoder, check=check_queries)
        batcher = MicroBatcher(encoder, limit=spec.limit, wait_s=spec.wait_s)
    except WorldError as error:
        parent.send(_failed(0, error))
        return EXIT_FAILED
    parent.send(_beat(batcher, 0, Kind.READY))
    while (frame := parent.receive()) is not None:
        if frame.kind == Kind.PING:
            parent.send(_beat(batcher, frame.call, Kind.PONG))
        elif frame.kind == Kind.QUERY:
            future = batcher.submit(bytes_text(frame.body))
            future.add_done_callback(partial(_answer, parent, frame.call))
        elif frame.kind == Kind.PASSAGES:
            texts = [bytes_text(body) for body in msgspec.msgpack.decode(frame.body, type=_TEXTS)]
            rows = batcher.submit_passages(texts)
            rows.add_done_callback(partial(_answer, parent, frame.call))
    return 0


_TEXTS = list[bytes]


def _answer(parent: FrameSocket, call: int, done: Future[Vector]) -> None:
    error = done.exception()
    if error is None:
        parent.send(Frame(call, Kind.VECTOR, done.result().tobytes()))
    else:
        parent.send(_failed(call, error))


def _beat(batcher: MicroBatcher, call: int, kind: Kind) -> Frame:
    report = batcher.report()
    beat = Beat(batcher.id, batcher.dim, report.batches, report.texts)
    return Frame(call, kind, msgspec.msgpack.encode(beat))


def _failed(call: int, error: BaseException) -> Frame:
    if not isinstance(error, WorldError):
        error = EncoderError(f"The encoder failed: {type(error).__name__}: {error}.")
    return Frame(call, Kind.FAILED, encoded(told(error)))


if __name__ == "__main__":
    sys.exit(main())
