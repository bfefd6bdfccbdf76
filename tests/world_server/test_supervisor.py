from __future__ import annotations

import signal
import socket
import threading
from dataclasses import dataclass, field

import pytest
from uvicorn import Config
from uvicorn.config import STARTUP_FAILURE

from world_server import supervisor
from world_server.supervisor import EXIT_UNUSABLE, Supervisor


@dataclass
class System:
    """The process of a worker as the system sees it."""

    alive: bool = True
    killed: bool = False
    waits: int = 0
    ends_after: int = 10**9

    def is_alive(self) -> bool:
        return self.alive

    def join(self, timeout: float | None = None) -> None:
        self.waits += 1
        if self.waits >= self.ends_after:
            self.alive = False

    def kill(self) -> None:
        self.killed = True
        self.alive = False


@dataclass
class Worker:
    process: System = field(default_factory=System)
    exitcode: int | None = None
    pid: int = 7
    started: bool = False
    terminated: bool = False

    def start(self) -> None:
        self.started = True

    def terminate(self) -> None:
        self.terminated = True


@pytest.fixture
def parent(monkeypatch: pytest.MonkeyPatch) -> Supervisor:
    """Return a supervisor of two stand-ins, whose successors are stand-ins too."""
    before = {number: signal.getsignal(number) for number in supervisor_signals()}
    made = Supervisor(Config("x:y", workers=2), sockets=[])
    for number, handler in before.items():
        signal.signal(number, handler)
    made.processes = [Worker(), Worker()]  # type: ignore[list-item]
    monkeypatch.setattr(supervisor, "Process", lambda config, sockets: Worker())
    return made


def supervisor_signals() -> list[signal.Signals]:
    from uvicorn.supervisors.multiprocess import SIGNALS

    return list(SIGNALS)


def test_a_worker_that_died_is_replaced(parent: Supervisor) -> None:
    first, second = parent.processes
    first.process.alive = False  # type: ignore[attr-defined]
    parent.keep_subprocess_alive()
    assert parent.processes[0] is not first
    assert parent.processes[0].started  # type: ignore[attr-defined]
    assert parent.processes[1] is second
    assert not parent.should_exit.is_set()


def test_a_worker_that_cannot_start_ends_the_server(
    parent: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = parent.processes[1]
    worker.process.alive = False  # type: ignore[attr-defined]
    worker.exitcode = STARTUP_FAILURE  # type: ignore[misc]
    parent.keep_subprocess_alive()
    assert parent.should_exit.is_set()
    assert parent.processes[1] is worker
    monkeypatch.setattr(parent, "run", lambda: None)
    assert parent.serve() == EXIT_UNUSABLE


def test_while_ending_nothing_is_replaced(parent: Supervisor) -> None:
    first = parent.processes[0]
    first.process.alive = False  # type: ignore[attr-defined]
    parent.should_exit.set()
    parent.keep_subprocess_alive()
    assert parent.processes[0] is first


def test_at_the_end_the_socket_is_let_go(parent: Supervisor) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    parent.sockets = [listening]
    parent.terminate_all()
    assert listening.fileno() == -1
    assert all(worker.terminated for worker in parent.processes)  # type: ignore[attr-defined]


def test_the_end_waits_for_the_workers(parent: Supervisor, monkeypatch: pytest.MonkeyPatch) -> None:
    for worker in parent.processes:
        worker.process.ends_after = 3  # type: ignore[attr-defined]
    parent.join_all()
    assert not any(worker.process.killed for worker in parent.processes)  # type: ignore[attr-defined]
    monkeypatch.setattr(parent, "run", lambda: None)
    assert parent.serve() == 0


def test_a_further_signal_ends_the_wait(parent: Supervisor) -> None:
    timer = threading.Timer(0.01, lambda: parent.signal_queue.append(signal.SIGTERM))
    timer.start()
    parent.join_all()
    timer.join()
    assert all(worker.process.killed for worker in parent.processes)  # type: ignore[attr-defined]
