from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from world_server.errors import FrameError
from world_server.frames import HEADER, Frame, FrameDecoder, FrameProtocol, FrameSocket, packed

FRAMES = st.lists(
    st.builds(
        Frame,
        st.integers(0, 2**64 - 1),
        st.integers(0, 255),
        st.binary(max_size=300),
    ),
    max_size=8,
)


@given(FRAMES, st.lists(st.integers(1, 40), min_size=1))
def test_frames_come_out_as_they_went_in_however_the_stream_is_cut(
    frames: list[Frame], steps: list[int]
) -> None:
    stream = b"".join(packed(frame) for frame in frames)
    decoder = FrameDecoder()
    found: list[Frame] = []
    place = turn = 0
    while place < len(stream):
        step = steps[turn % len(steps)]
        found += decoder.feed(stream[place : place + step])
        place, turn = place + step, turn + 1
    assert found == frames
    assert decoder.is_between


def test_the_header_is_as_documented() -> None:
    assert packed(Frame(258, 7, b"abc")) == bytes.fromhex("00000003 0000000000000102 07") + b"abc"


def test_half_a_frame_is_kept_until_the_rest_is_there() -> None:
    data = packed(Frame(1, 2, b"body"))
    decoder = FrameDecoder()
    assert decoder.feed(data[:-1]) == []
    assert not decoder.is_between
    assert decoder.feed(data[-1:]) == [Frame(1, 2, b"body")]


def test_a_body_at_the_limit_passes_and_one_above_does_not() -> None:
    assert FrameDecoder(limit=4).feed(packed(Frame(1, 2, b"body"))) == [Frame(1, 2, b"body")]
    with pytest.raises(FrameError, match="holds 5 bytes, more than the limit of 4"):
        FrameDecoder(limit=4).feed(HEADER.pack(5, 1, 2))
    with pytest.raises(FrameError, match="kind 2 holds 5 bytes"):
        packed(Frame(1, 2, b"body!"), limit=4)


@pytest.fixture
def pair() -> Iterator[tuple[FrameSocket, socket.socket]]:
    """Return a frame socket and the plain other end."""
    one, other = socket.socketpair()
    framed = FrameSocket(one, limit=1 << 20)
    yield framed, other
    framed.close()
    other.close()


def test_a_socket_gives_the_frames_and_then_the_end(
    pair: tuple[FrameSocket, socket.socket],
) -> None:
    framed, other = pair
    other.sendall(packed(Frame(1, 1, b"a")) + packed(Frame(2, 1, b"b")))
    other.close()
    assert [framed.receive(), framed.receive(), framed.receive()] == [
        Frame(1, 1, b"a"),
        Frame(2, 1, b"b"),
        None,
    ]


def test_a_socket_that_ends_inside_a_frame_says_so(
    pair: tuple[FrameSocket, socket.socket],
) -> None:
    framed, other = pair
    other.sendall(packed(Frame(1, 1, b"abc"))[:-1])
    other.close()
    with pytest.raises(FrameError, match="ended inside a frame"):
        framed.receive()


def test_a_timeout_inside_a_frame_loses_nothing(pair: tuple[FrameSocket, socket.socket]) -> None:
    framed, other = pair
    framed._socket.settimeout(0.01)
    data = packed(Frame(3, 4, b"late"))
    other.sendall(data[:7])
    with pytest.raises(TimeoutError):
        framed.receive()
    other.sendall(data[7:])
    assert framed.receive() == Frame(3, 4, b"late")


def test_several_threads_may_send_large_frames(pair: tuple[FrameSocket, socket.socket]) -> None:
    framed, other = pair
    bodies = [bytes([number]) * 300_000 for number in range(8)]
    threads = [
        threading.Thread(target=framed.send, args=(Frame(number, 1, body),))
        for number, body in enumerate(bodies)
    ]
    for thread in threads:
        thread.start()
    reader = FrameSocket(other, limit=1 << 20)
    found = [reader.receive() for _ in bodies]
    for thread in threads:
        thread.join()
    assert sorted(found, key=lambda frame: frame.call if frame else -1) == [
        Frame(number, 1, body) for number, body in enumerate(bodies)
    ]


def test_closing_ends_the_wait_of_another_thread(pair: tuple[FrameSocket, socket.socket]) -> None:
    framed, _ = pair

    def wait() -> None:
        with contextlib.suppress(OSError):  # when the wait begins after the end
            assert framed.receive() is None

    thread = threading.Thread(target=wait)
    thread.start()
    framed.close()
    thread.join(10)
    assert framed.fileno() == -1
    assert not thread.is_alive()


def test_a_socket_sends_nothing_of_a_frame_above_the_limit(
    pair: tuple[FrameSocket, socket.socket],
) -> None:
    framed, other = pair
    with pytest.raises(FrameError):
        framed.send(Frame(1, 1, bytes((1 << 20) + 1)))
    framed.send(Frame(2, 1, b"next"))
    assert FrameSocket(other).receive() == Frame(2, 1, b"next")


class Peer:
    """One end of a connection of the event loop, and what came over it."""

    def __init__(self, limit: int = 1 << 20) -> None:
        self.frames: list[Frame] = []
        self.reasons: list[Exception | None] = []
        self.changed = asyncio.Event()
        self.protocol = FrameProtocol(self._take, self._end, limit=limit)

    def _take(self, frame: Frame) -> None:
        self.frames.append(frame)
        self.changed.set()

    def _end(self, reason: Exception | None) -> None:
        self.reasons.append(reason)
        self.changed.set()

    async def until(self, *, frames: int = 0, ends: int = 0) -> None:
        async with asyncio.timeout(10):
            while len(self.frames) < frames or len(self.reasons) < ends:
                self.changed.clear()
                await self.changed.wait()


async def connected(tmp_path: Path, *peers: Peer) -> tuple[asyncio.Server, Sequence[Peer]]:
    """Connect two peers over a Unix socket."""
    loop = asyncio.get_running_loop()
    path = str(tmp_path / "s")
    server = await loop.create_unix_server(lambda: peers[0].protocol, path)
    await loop.create_unix_connection(lambda: peers[1].protocol, path)
    return server, peers


async def test_a_protocol_carries_frames_both_ways(tmp_path: Path) -> None:
    server, (one, other) = await connected(tmp_path, Peer(), Peer())
    frames = [Frame(number, 3, bytes([number]) * number * 40_000) for number in range(6)]
    for frame in frames:
        other.protocol.send(frame)
    await one.until(frames=6)
    assert one.frames == frames
    one.protocol.send(Frame(9, 9))
    await other.until(frames=1)
    assert other.frames == [Frame(9, 9)]
    other.protocol.close()
    await one.until(ends=1)
    await other.until(ends=1)
    assert one.reasons == other.reasons == [None]
    assert not one.protocol.is_open
    one.protocol.send(Frame(1, 1))
    server.close()


async def test_a_damaged_stream_ends_the_connection_and_says_why(tmp_path: Path) -> None:
    server, (one, other) = await connected(tmp_path, Peer(limit=10), Peer())
    other.protocol.send(Frame(1, 1, b"fits"))
    other.protocol.send(Frame(2, 1, b"does not fit"))
    other.protocol.send(Frame(3, 1, b"too late"))
    await one.until(ends=1)
    assert one.frames in ([Frame(1, 1, b"fits")], [])
    (reason,) = one.reasons
    assert isinstance(reason, FrameError)
    assert "12 bytes" in reason.sentence
    await other.until(ends=1)
    server.close()


async def test_an_end_inside_a_frame_is_told(tmp_path: Path) -> None:
    server, (one, other) = await connected(tmp_path, Peer(), Peer())
    assert other.protocol._transport is not None
    other.protocol._transport.write(packed(Frame(1, 1, b"abc"))[:-2])
    other.protocol.close()
    await one.until(ends=1)
    (reason,) = one.reasons
    assert isinstance(reason, FrameError)
    server.close()
