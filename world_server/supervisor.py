"""The parent of several worker processes."""

from __future__ import annotations

import logging

from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess
from uvicorn.supervisors.multiprocess import Process

EXIT_UNUSABLE = 2

_LOG = logging.getLogger(__name__)


class Supervisor(Multiprocess):
    """uvicorn's supervisor, which replaces workers that die; a second signal ends them at once.

    Unlike uvicorn's it asks no worker for a sign of life: one that opens a large index holds its
    interpreter for long, and would be taken for dead.
    """

    def serve(self) -> int:
        """Run until told to end; return 0, or 2 when the workers cannot start."""
        self.run()
        failed = any(worker.exitcode == STARTUP_FAILURE for worker in self.processes)
        return EXIT_UNUSABLE if failed else 0

    def keep_subprocess_alive(self) -> None:
        """Replace workers that died; end when one could not even start, for so would the next."""
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
