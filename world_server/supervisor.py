"""The parent of several worker processes."""

from __future__ import annotations

from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

EXIT_UNUSABLE = 2


class Supervisor(Multiprocess):
    """uvicorn's supervisor, which restarts workers that die; a second signal ends them at once."""

    def serve(self) -> int:
        """Run until told to end; return 0, or 2 when the workers cannot start."""
        self.run()
        failed = any(process.exitcode == STARTUP_FAILURE for process in self.processes)
        return EXIT_UNUSABLE if failed else 0

    def join_all(self) -> None:
        """Wait for the workers to finish their calls; stop waiting at a further signal."""
        for worker in self.processes:
            while worker.process.is_alive() and not self.signal_queue:
                worker.process.join(0.1)
        for worker in self.processes:
            if worker.process.is_alive():
                worker.process.kill()
            worker.process.join()
