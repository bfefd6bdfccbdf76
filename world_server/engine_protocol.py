"""What the engine process and the processes that answer HTTP say to each other.

Frames (``frames.py``) whose bodies are MessagePack of the types below. An asker opens with HELLO
and is sent WORLDS, then and whenever a world was switched. Every opened world has a number, its
``opening``, which is never used twice by one engine process; an opening stays open for a connection
that was told of it until the connection sends RELEASE or ends. So the manifest a plan was made from
and the engine that answers are always of one opening.

| kind | sent by | body |
|---|---|---|
| HELLO | asker | Hello |
| WORLDS | engine | WorldsTold; call 0 |
| SEARCH, FETCH | asker | SearchAsked, FetchAsked |
| REFRESH | asker | RefreshAsked |
| ENCODER | asker | EncoderAsked |
| COUNTS | asker | CountsTold: those of the asker |
| ANSWER | engine | SearchFound, FetchFound, RefreshDone, EncoderTold or CountsTold |
| ERROR | engine | ErrorTold; the call has failed |
| CANCEL | asker | empty; nobody waits for the call any more, no answer need come |
| RELEASE | asker | Released |
| READY | engine, to its parent only | empty |
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Any, TypeVar

import msgspec

from world_core.errors import BadInputError, WorldError
from world_core.manifest import Manifest
from world_core.types import FetchAnswer, FetchCall, SearchAnswer, SearchCall
from world_server.counts import Counts
from world_server.errors import FrameError
from world_server.query_encoder import EncoderReport

PROTOCOL = 1
"""Raised whenever a body changes: processes of two releases must not talk past each other."""

Body = TypeVar("Body", bound=msgspec.Struct)


class Kind(IntEnum):
    """What a frame's body is."""

    HELLO = 1
    WORLDS = 2
    SEARCH = 3
    FETCH = 4
    REFRESH = 5
    ENCODER = 6
    ANSWER = 7
    ERROR = 8
    CANCEL = 9
    RELEASE = 10
    READY = 11
    COUNTS = 12


class Hello(msgspec.Struct, frozen=True, array_like=True):
    """The protocol that the asker speaks."""

    protocol: int


class ErrorTold(msgspec.Struct, frozen=True, array_like=True):
    """An error of ours: the name of its class, its sentence and hint, and when to try again."""

    name: str
    code: str
    sentence: str
    hint: str
    retry_after: int | None = None


class WorldTold(msgspec.Struct, frozen=True, array_like=True):
    """A served world: its opening and manifest (JSON), or why it cannot be served."""

    name: str
    opening: int = 0
    manifest: bytes = b""
    fault: ErrorTold | None = None

    def read_manifest(self) -> Manifest:
        """Return the manifest."""
        return Manifest.model_validate_json(self.manifest)


class WorldsTold(msgspec.Struct, frozen=True, array_like=True):
    """All served worlds, that of plain requests first."""

    worlds: list[WorldTold]


class SearchAsked(msgspec.Struct, frozen=True, array_like=True):
    """Searches over an opening."""

    opening: int
    calls: list[SearchCall]


class SearchFound(msgspec.Struct, frozen=True, array_like=True):
    """The answers in the order of the calls, and the seconds spent by step."""

    answers: list[SearchAnswer]
    seconds: dict[str, float]


class FetchAsked(msgspec.Struct, frozen=True, array_like=True):
    """A fetch over an opening."""

    opening: int
    call: FetchCall


class FetchFound(msgspec.Struct, frozen=True, array_like=True):
    """The answer of a fetch."""

    answer: FetchAnswer


class RefreshAsked(msgspec.Struct, frozen=True, array_like=True):
    """A wish to switch a world to the version that its pointer names, even a refused one."""

    name: str


class RefreshDone(msgspec.Struct, frozen=True, array_like=True):
    """Whether the world was switched; WORLDS was sent before."""

    switched: bool


class EncoderAsked(msgspec.Struct, frozen=True, array_like=True):
    """A question how the encoder of an opening is; with a probe it has to encode something."""

    opening: int
    probe: bool


class EncoderTold(msgspec.Struct, frozen=True, array_like=True):
    """How it is; ``None`` for a world without an encoder."""

    report: EncoderReport | None


class CountsTold(msgspec.Struct, frozen=True, array_like=True):
    """What the asker has counted so far; in the answer what all processes have."""

    counts: Counts


class Released(msgspec.Struct, frozen=True, array_like=True):
    """An opening that the connection asks no more."""

    opening: int


def encoded(body: msgspec.Struct) -> bytes:
    """Return the bytes of a body.

    Raises:
        BadInputError: a text or a number of a call cannot be written.
    """
    try:
        return msgspec.msgpack.encode(body)
    except (UnicodeEncodeError, OverflowError) as error:
        raise BadInputError(
            f"The call cannot be passed on: {error}.", hint="Send Unicode text and smaller numbers."
        ) from error


def decoded(kind: type[Body], data: bytes) -> Body:
    """Return the body that the bytes hold.

    Raises:
        FrameError: they hold none of this type.
    """
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except msgspec.DecodeError as error:
        raise FrameError(
            f"{len(data)} bytes are no {kind.__name__}: {error}.",
            hint="Restart the server: its processes are of different releases.",
        ) from error


def told(error: WorldError) -> ErrorTold:
    """Return what is sent of an error."""
    retry_after = getattr(error, "retry_after", None)
    return ErrorTold(type(error).__name__, error.code, error.sentence, error.hint, retry_after)


def error_of(sent: ErrorTold) -> WorldError:
    """Return the error that was sent, of the class it had; a plain one if that is not known."""
    kind = next((one for one in _tree(WorldError) if one.__name__ == sent.name), WorldError)
    # Some classes make their hint themselves, from arguments that were not sent.
    error: Any = kind.__new__(kind)
    WorldError.__init__(error, sent.sentence, hint=sent.hint)
    if sent.retry_after is not None:
        error.retry_after = sent.retry_after
    made: WorldError = error
    return made


def _tree(kind: type[WorldError]) -> Iterator[type[WorldError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _tree(below)
