"""The engine process as its parent sees it: started, watched, started again, ended."""

from __future__ import annotations

import logging
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from world_core.errors import WorldError
from world_server.engine_protocol import ErrorTold, Kind, decoded, error_of
from world_server.errors import EngineLostError, SettingsError
from world_server.frames import FrameSocket

PAUSES = (0.0, 1.0, 2.0, 4.0, 8.0)
"""Seconds before each new engine process in a row; when there are no more the server gives up."""

GOOD_S = 60.0
"""Seconds that an engine process must have been ready for, so that its end begins a new row."""

POLL_S = 0.1

_LONGEST_PATH = 100  # bytes; the system takes 107 for the address of a Unix socket
_COMMAND = (sys.executable, "-P", "-m", "world_server.engine_process")
_LOG = logging.getLogger(__name__)


class EngineKeeper:
    """Keeps one engine process running; it listens in a folder that only this user may enter.

    Attributes:
        address: path of the socket.
    """

    def __init__(
        self,
        *,
        command: Sequence[str] = _COMMAND,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make the folder; the process is started by :meth:`start`.

        Raises:
            SettingsError: the folder for temporary files has too long a name.
        """
        self._folder = Path(tempfile.mkdtemp(prefix="world-engine-"))
        self.address = self._folder / "engine.sock"
        if len(os.fsencode(self.address)) > _LONGEST_PATH:
            self._folder.rmdir()
            raise SettingsError(
                f"{self.address} is too long for the address of a socket.",
                hint="Set TMPDIR to a folder with a shorter name.",
            )
        self._command = command
        self._clock = clock
        self._process: subprocess.Popen[bytes] | None = None
        self._parent: FrameSocket | None = None
        self._ready_since: float | None = None
        self._next_start = 0.0
        self._ends = 0
        self._fault: WorldError | None = None

    @property
    def is_ready(self) -> bool:
        """True while an engine process runs that has said it is ready."""
        return self._ready_since is not None

    @property
    def pid(self) -> int | None:
        """The number of the engine process, ``None`` while there is none."""
        return None if self._process is None else self._process.pid

    def start(self, is_stopped: Callable[[], bool]) -> bool:
        """Start the engine process and wait until it is ready; return false when told to stop.

        Raises:
            WorldError: it cannot serve, and why.
        """
        process = self._spawn()
        while not self.is_ready:
            if is_stopped():
                return False
            code = process.poll()
            self._hear(POLL_S)  # after the look, so that its last words are not missed
            if code is not None and not self.is_ready:
                raise self._fault or EngineLostError(
                    f"The engine process ended with {code} before it was ready.",
                    hint="What it wrote to standard error may say why.",
                )
        return True

    def look(self) -> None:
        """Notice what became of the engine process, and start another when it has ended.

        Raises:
            EngineLostError: it ended so often in a row that another would, too.
        """
        if self._process is None:
            if self._clock() >= self._next_start:
                self._spawn()
            return
        code = self._process.poll()
        self._hear(0.0)
        if code is not None:
            self._bury(self._process.pid, code)

    def stop(self, is_hurried: Callable[[], bool]) -> None:
        """Let the engine process answer what it has taken, and wait for its end.

        It is killed in a hurry. One that is not ready yet has taken nothing and is killed.
        """
        if self._parent is not None:
            self._parent.close()
        if self._process is not None:
            while self._process.poll() is None:
                if is_hurried() or not self.is_ready:
                    self._process.kill()
                try:
                    self._process.wait(POLL_S)
                except subprocess.TimeoutExpired:
                    continue
        self._process = self._parent = self._ready_since = None
        shutil.rmtree(self._folder, ignore_errors=True)

    def _spawn(self) -> subprocess.Popen[bytes]:
        """Start a process, found as ours is even when the project is not installed."""
        self.address.unlink(missing_ok=True)
        ours, its = socket.socketpair()
        paths = os.pathsep.join(path for path in sys.path if path)
        with its:
            process = subprocess.Popen(  # noqa: S603 - fixed arguments
                [*self._command, "--socket", str(self.address), "--parent", str(its.fileno())],
                env={**os.environ, "PYTHONPATH": paths},
                stdin=subprocess.DEVNULL,
                pass_fds=[its.fileno()],
                process_group=0,  # the signals of a terminal are for the parent
            )
        self._process, self._parent = process, FrameSocket(ours)
        self._ready_since = self._fault = None
        return process

    def _hear(self, seconds: float) -> None:
        """Take what the process says, waiting so long for it."""
        if self._parent is None or not select.select([self._parent], [], [], seconds)[0]:
            return
        frame = self._parent.receive()
        if frame is None:
            self._parent.close()
            self._parent = None
        elif frame.kind == Kind.READY:
            self._ready_since = self._clock()
            _LOG.info("the engine process %s is ready", self.pid)
        elif frame.kind == Kind.ERROR:
            self._fault = error_of(decoded(ErrorTold, frame.body))

    def _bury(self, pid: int, code: int) -> None:
        now = self._clock()
        if self._ready_since is not None and now - self._ready_since >= GOOD_S:
            self._ends = 0
        fault = self._fault
        if self._parent is not None:
            self._parent.close()
        self._process = self._parent = self._ready_since = None
        if self._ends == len(PAUSES):
            reason = "." if fault is None else f": {fault.sentence}"
            raise EngineLostError(
                f"The engine process ended {self._ends + 1} times in a row, last with "
                f"{code}{reason}",
                hint="" if fault is None else fault.hint,
            )
        pause = PAUSES[self._ends]
        self._ends += 1
        self._next_start = now + pause
        _LOG.error(
            "the engine process %s ended with %s (%s); another is started in %g s",
            *(pid, code, fault or "no reason given", pause),
        )
