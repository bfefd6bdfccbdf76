"""A pool of spawned processes that survives the death of any of them.

Tasks are taken in order and results handed back in order. A process that dies (killed, out of
memory, a crash in C code) costs only its own task, which the caller may replace and run again.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Generic, Protocol, TypeVar

from corpus_builder.errors import BuilderError, StageFailedError
from world_core.errors import WorldError

T = TypeVar("T")
R = TypeVar("R")
Tell = Callable[[int], None]
"""Called by a task with the number of things it has done since the last call."""

DEATHS = 2

KNOWN_ERRORS = (BuilderError, WorldError, OSError, MemoryError)


@dataclass(slots=True)
class _Worker(Generic[T]):
    process: SpawnProcess
    pipe: Connection
    number: int = -1
    task: T | None = None


def run_tasks(
    function: Callable[[T, Tell], R],
    tasks: Sequence[T],
    *,
    workers: int,
    died: Callable[[T, int], T],
    tell: Tell,
) -> Iterator[R]:
    """Run every task in some process and yield the results in the order of the tasks.

    Args:
        function: a module-level function; it runs in the main thread of a spawned process.
        tasks: its arguments, picklable.
        workers: how many processes at most.
        died: called with a task and the exit code when its process died; returns the task to run
            instead, or raises.
        tell: gets what tasks report, in this process.

    Raises:
        BuilderError, WorldError, OSError, MemoryError: what a task raised, or ``died``.
    """
    pool = _Pool(function, tasks, min(workers, len(tasks)), died, tell)
    try:
        yield from pool.results()
    finally:
        pool.stop()


class Numbered(Protocol):
    """A task with a place among the others."""

    @property
    def number(self) -> int:
        """Its place."""


N = TypeVar("N", bound=Numbered)


def second_chance(stage: str) -> Callable[[N, int], N]:
    """Return what runs a task once more when its process died, and gives up the second time."""
    deaths: dict[int, int] = {}

    def died(task: N, code: int) -> N:
        deaths[task.number] = deaths.get(task.number, 0) + 1
        if deaths[task.number] >= DEATHS:
            raise StageFailedError(
                f"A process died twice (exit code {code}) at block {task.number} of the {stage}.",
                hint="Free memory or give fewer --workers, then run the same command again.",
            )
        return task

    return died


class _Pool(Generic[T, R]):
    def __init__(
        self,
        function: Callable[[T, Tell], R],
        tasks: Sequence[T],
        count: int,
        died: Callable[[T, int], T],
        tell: Tell,
    ) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._function = function
        self._waiting = deque(enumerate(tasks))
        self._total = len(tasks)
        self._died = died
        self._tell = tell
        self._done: dict[int, R] = {}
        self._workers = [self._start() for _ in range(count)]

    def results(self) -> Iterator[R]:
        for worker in self._workers:
            self._give(worker)
        for number in range(self._total):
            while number not in self._done:
                self._turn()
            yield self._done.pop(number)

    def stop(self) -> None:
        for worker in self._workers:
            worker.process.kill()
            worker.process.join()
            worker.process.close()
            worker.pipe.close()

    def _start(self) -> _Worker[T]:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_work, args=(theirs, self._function), daemon=True)
        process.start()
        theirs.close()
        return _Worker(process, ours)

    def _give(self, worker: _Worker[T]) -> None:
        if self._waiting:
            worker.number, worker.task = self._waiting.popleft()
            worker.pipe.send(worker.task)
        else:
            worker.task = None

    def _turn(self) -> None:
        """Wait until some worker says something or dies, and deal with it."""
        busy = {worker.pipe: worker for worker in self._workers if worker.task is not None}
        for pipe in wait(list(busy)):
            worker = busy[pipe]  # type: ignore[index]  # wait gives back what it was given
            try:
                kind, value = worker.pipe.recv()
            except (EOFError, ConnectionError):
                self._replace(worker)
                continue
            if kind == "told":
                self._tell(value)
            elif kind == "failed":
                raise value
            else:
                self._done[worker.number] = value
                self._give(worker)

    def _replace(self, worker: _Worker[T]) -> None:
        worker.process.join()
        code = worker.process.exitcode
        task = worker.task
        if task is None:
            return
        self._waiting.appendleft((worker.number, self._died(task, 0 if code is None else code)))
        worker.process.close()
        worker.pipe.close()
        fresh = self._start()
        worker.process, worker.pipe = fresh.process, fresh.pipe
        self._give(worker)


def _work(pipe: Connection, function: Callable[[T, Tell], R]) -> None:
    """Run tasks until the pipe closes; the process ends with its parent."""
    threading.Thread(target=_die_with_parent, daemon=True).start()
    while True:
        try:
            task: T = pipe.recv()
        except (EOFError, ConnectionError):
            return
        try:
            answer: tuple[str, object] = (
                "done",
                function(task, lambda count: pipe.send(("told", count))),
            )
        except KNOWN_ERRORS as error:
            answer = ("failed", error)
        pipe.send(answer)


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)
