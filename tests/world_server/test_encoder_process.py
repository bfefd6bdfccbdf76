from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import msgspec
import numpy as np
import pytest

from world_core.encoders.tiny import TinyEncoder
from world_server.encoder_process import Beat, Kind, Spec, bytes_text, text_bytes
from world_server.engine_protocol import ErrorTold
from world_server.frames import Frame, FrameSocket

PATIENCE = 60.0
TINY = TinyEncoder(64)
SPEC = Spec(kind="tiny", arguments=(("dim", 64),))
PARENT = """
import time
from world_server.encoder_client import RemoteEncoder, Spec
print(RemoteEncoder(Spec(kind="tiny")).process_id, flush=True)
time.sleep(600)
"""


class Child:
    """A process of an encoder, spoken to frame by frame."""

    def __init__(self, spec: Spec) -> None:
        here, there = socket.socketpair()
        here.settimeout(PATIENCE)
        with there:
            command = [sys.executable, "-m", "world_server.encoder_process", str(there.fileno())]
            self.process = subprocess.Popen(
                [*command, msgspec.json.encode(spec).decode()],
                pass_fds=[there.fileno()],
                stderr=subprocess.PIPE,
            )
        self.wire = FrameSocket(here)

    def receive(self) -> Frame:
        frame = self.wire.receive()
        assert frame is not None, "the process has ended"
        return frame

    def end(self) -> int:
        self.wire.close()
        code = self.process.wait(PATIENCE)
        assert self.process.stderr is not None
        self.process.stderr.close()
        return code


@pytest.fixture
def child() -> Iterator[Child]:
    made = Child(SPEC)
    yield made
    made.process.kill()
    made.end()


def test_it_says_when_it_is_ready_and_answers(child: Child) -> None:
    ready = child.receive()
    assert (ready.call, ready.kind) == (0, Kind.READY)
    assert msgspec.msgpack.decode(ready.body, type=Beat) == Beat(TINY.id, 64, 0, 0)
    texts = {7: "one", 9: "two \ud800 \0", 1 << 40: ""}
    for call, text in texts.items():
        child.wire.send(Frame(call, Kind.QUERY, text_bytes(text)))
    answers = [child.receive() for _ in texts]
    assert {answer.kind for answer in answers} == {Kind.VECTOR}
    assert {answer.call: answer.body for answer in answers} == {
        call: TINY.encode_queries([text]).tobytes() for call, text in texts.items()
    }
    child.wire.send(Frame(0, Kind.PING))
    pong = child.receive()
    assert pong.kind == Kind.PONG
    assert msgspec.msgpack.decode(pong.body, type=Beat).texts == 3


def test_it_encodes_passages(child: Child) -> None:
    child.receive()
    texts = ["a first passage", "another"]
    body = msgspec.msgpack.encode([text_bytes(text) for text in texts])
    child.wire.send(Frame(3, Kind.PASSAGES, body))
    answer = child.receive()
    assert (answer.call, answer.kind) == (3, Kind.VECTOR)
    rows = np.frombuffer(answer.body, dtype=np.float32).reshape(2, 64)
    assert rows.tobytes() == TINY.encode_passages(texts).tobytes()


def test_it_ends_when_its_parent_lets_go(child: Child) -> None:
    child.receive()
    assert child.end() == 0


def test_it_ends_while_it_loads(child: Child) -> None:
    assert child.end() == 0


def test_it_leaves_the_signals_of_a_terminal_to_its_parent(child: Child) -> None:
    child.receive()
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(child.process.pid, number)
    child.wire.send(Frame(1, Kind.QUERY, b"still there"))
    assert child.receive().kind == Kind.VECTOR


@pytest.mark.parametrize(
    ("spec", "code", "part"),
    [
        (Spec(kind="nonsense"), "bad_request", "nonsense"),
        (Spec(kind="tiny", arguments=(("dim", 64),), expected_id="another"), "encoder", "another"),
        (Spec(kind="onnx-minilm", arguments=(("folder", "/absent"),)), "missing_part", "/absent"),
    ],
)
def test_it_says_why_it_cannot_load(spec: Spec, code: str, part: str) -> None:
    child = Child(spec)
    failed = child.receive()
    fault = msgspec.msgpack.decode(failed.body, type=ErrorTold)
    assert (failed.call, failed.kind, fault.code) == (0, Kind.FAILED, code)
    assert part in fault.sentence
    assert child.wire.receive() is None
    assert child.process.wait(PATIENCE) == 2
    child.end()


def test_it_dies_with_its_parent() -> None:
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            PARENT,
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    orphan = int(parent.stdout.readline())
    assert _is_alive(orphan)
    parent.kill()
    parent.wait(PATIENCE)
    parent.stdout.close()
    deadline = time.monotonic() + PATIENCE
    while _is_alive(orphan):
        assert time.monotonic() < deadline, "the process outlived its parent"
        time.sleep(0.02)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    # What nobody has waited for yet is dead all the same.
    with open(f"/proc/{process}/stat", encoding="ascii") as stat:  # noqa: PTH123 - a pseudo file
        return stat.read().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize("text", ["", "plain", "\ud800", "\U0001f600 und äöü", "\0"])
def test_any_text_crosses(text: str) -> None:
    assert bytes_text(text_bytes(text)) == text
