"""The parent of the processes: those that answer HTTP, and the engine process behind them."""

from __future__ import annotations

import logging
import socket

from uvicorn.config import STARTUP_FAILURE, Config
from uvicorn.supervisors import Multiprocess
from uvicorn.supervisors.multiprocess import Process

from world_server.engine_keeper import EngineKeeper
from world_server.errors import EngineLostError

EXIT_UNUSABLE = 2

_LOG = logging.getLogger(__name__)


class Supervisor(Multiprocess):
    """uvicorn's supervisor, which replaces workers that die; a second signal ends them at once.

    Unlike uvicorn's it asks no worker for a sign of life: one that opens a large index holds its
    interpreter for long, and would be taken for dead.
    """

    def __init__(
        self, config: Config, sockets: list[socket.socket], *, engine: EngineKeeper | None = None
    ) -> None:
        super().__init__(config, sockets)
        self._engine = engine
        self._fault: EngineLostError | None = None

    def serve(self) -> int:
        """Run until told to end; return 0, or 2 when the workers cannot start.

        The engine process is started first and ended last.

        Raises:
            WorldError: the engine process cannot serve, or ended again and again.
        """
        try:
            if self._engine is not None and not self._engine.start(self._is_told):
                return 0
            self.run()
        finally:
            if self._engine is not None:
                self._engine.stop(self._is_told)
        if self._fault is not None:
            raise self._fault
        failed = any(worker.exitcode == STARTUP_FAILURE for worker in self.processes)
        return EXIT_UNUSABLE if failed else 0

    def keep_subprocess_alive(self) -> None:
        """Replace what died; end when a worker could not even start, for so would the next."""
        if self._engine is not None and not self.should_exit.is_set():
            try:
                self._engine.look()
            except EngineLostError as error:
                self._fault = error
                self.should_exit.set()
        for place, worker in enumerate(self.processes):
            if self.should_exit.is_set() or worker.process.is_alive():
                continue
            if worker.exitcode == STARTUP_FAILURE:
                self.should_exit.set()
                return
            _LOG.error(
                "worker %s died with %s, another takes its place", worker.pid, worker.exitcode
            )
            self.processes[place] = Process(self.config, self.sockets)
            self.processes[place].start()

    def terminate_all(self) -> None:
        """Tell the workers to end, and let go of the socket.

        A copy held here would keep it open when the workers have closed theirs: clients would be
        let in and never answered.
        """
        for listening in self.sockets:
            listening.close()
        if self._engine is not None and not self._engine.is_ready:
            # Workers that wait for it see that none will come.
            self._engine.stop(self._is_told)
        super().terminate_all()

    def join_all(self) -> None:
        """Wait for the workers to finish their calls; stop waiting at a further signal."""
        for worker in self.processes:
            while worker.process.is_alive() and not self.signal_queue:
                worker.process.join(0.1)
        for worker in self.processes:
            if worker.process.is_alive():
                worker.process.kill()
            worker.process.join()

    def _is_told(self) -> bool:
        """Say whether a signal has come that was not taken yet."""
        return bool(self.signal_queue)
