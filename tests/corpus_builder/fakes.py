"""Sources, extractors and tasks that spawned processes import by name."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from corpus_builder.capture import Capture, Draft, Loss, Shard
from corpus_builder.workers import Tell
from world_core.errors import BadInputError


@dataclass(frozen=True)
class Numbers:
    """A source of ``count`` captures a shard, named by number; every tenth is a loss."""

    folder: Path
    shard_count: int = 2
    count: int = 25

    def shards(self) -> list[Shard]:
        return [Shard("numbers", self.folder, {"shard": str(n)}) for n in range(self.shard_count)]

    def read(self, shard: Shard) -> Iterator[Capture | Loss]:
        name = shard.arguments["shard"]
        for item in range(self.count):
            if item % 10 == 9:
                yield Loss(name, item, "ninth")
            else:
                yield Capture(f"https://{name}.example/{item}", 5, name, item, text=f"text {item}")


@dataclass(frozen=True)
class Broken(Numbers):
    """A source that breaks its promise at the third item."""

    def read(self, shard: Shard) -> Iterator[Capture | Loss]:
        for item, found in enumerate(super().read(shard)):
            if item == 3:
                raise ZeroDivisionError("no third")
            yield found


@dataclass(frozen=True)
class Stops(Numbers):
    """A source whose reader is interrupted at the thirteenth item."""

    def read(self, shard: Shard) -> Iterator[Capture | Loss]:
        for item, found in enumerate(super().read(shard)):
            if item == 12:
                raise KeyboardInterrupt
            yield found


@dataclass(frozen=True)
class Trouble:
    """An extractor that does what the table says at an address, else makes a plain draft.

    ``once`` names a file; trouble of the kinds "die once" happens only while it is not there.
    """

    table: dict[str, str]
    once: Path | None = None

    def prepare(self) -> None:
        return

    def __call__(self, capture: Capture) -> Draft | Loss:
        what = self.table.get(capture.url, "")
        if what == "raise":
            raise KeyError(capture.url)
        if what == "swallow":
            _spin_and_swallow()
        if what == "spin":
            while True:
                pass
        if what == "die" or (what == "die once" and self.once and not self.once.exists()):
            if self.once:
                self.once.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if what == "crash in C":
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGVTALRM])
            while True:
                pass
        if what == "exit":
            os._exit(7)
        return Draft(
            capture.url, capture.url, capture.time, capture.origin, capture.offset, text="t"
        )


def _spin_and_swallow() -> None:
    end = time.process_time() + 0.4
    while time.process_time() < end:
        try:
            while time.process_time() < end:
                pass
        except BaseException:  # noqa: BLE001, S110  # as a careless library would
            pass


def square(task: int, tell: Tell) -> int:
    """Return the square, telling its root."""
    tell(task)
    return task * task


def moody(task: str, tell: Tell) -> str:
    """Do what the task says."""
    if task == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if task == "refuse":
        raise BadInputError("A sentence.", hint="A hint.")
    if task == "full":
        raise OSError(28, "No space left on device", "file")
    if task == "sleep":
        time.sleep(60)
    return f"{task}:{os.getpid()}"
