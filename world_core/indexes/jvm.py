"""The one place that boots the Java virtual machine of this process."""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from world_core.errors import IndexFailedError
from world_core.indexes import jar

Java = Any
"""A Java object or class; JPype makes them at run time, so they have no Python type."""

HEAP_MB = 1024
"""Java heap for writing an index: a segment's buffer of 128 MB, what flushing it takes, merging."""

LEAST_MB, MOST_MB = 256, 4096
"""Bounds of the Java heap for reading; it grows to them only with what is really used."""

OPTIONS = (
    "-Xrs",  # leaves SIGINT, SIGTERM and SIGHUP to Python, which stops gracefully
    "-XX:-UsePerfData",  # writes no file under the temporary folder
    "-XX:+UseSerialGC",  # little stays alive; collecting beside the searches costs as much as they
    "--enable-native-access=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
)


class _Machine:
    """What is known of the virtual machine; there can be only one a process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.pid: int | None = None
        self.visits = threading.local()
        self.loggers: list[Java] = []


class _Visit:
    """Detaches its thread from Java when the thread ends; Java keeps attached threads forever."""

    def __init__(self, jpype: ModuleType) -> None:
        self._pid = os.getpid()
        # What the end needs is held here: at the interpreter's end nothing can be imported.
        self._getpid = os.getpid
        self._ending = sys.is_finalizing
        self._running = jpype.isJVMStarted
        self._detach = jpype.java.lang.Thread.detach

    def __del__(self) -> None:
        if not self._ending() and self._getpid() == self._pid and self._running():
            self._detach()


# A process has one virtual machine, which cannot be started twice: the one place where the truth
# is per process, and so is this record of it.
_MACHINE = _Machine()


def heap_for(*folders: Path) -> int:
    """Return the megabytes of heap that reading these indexes takes, all at once."""
    return heap_of(
        sum(
            path.stat().st_size for folder in folders for path in folder.iterdir() if path.is_file()
        )
    )


def heap_of(size: int) -> int:
    """Return the megabytes of heap that reading index files of so many bytes takes.

    Lucene leaves postings, positions, norms and columns in the page cache. On the heap lie its
    classes, what each search under way holds, and remembered filters: 32 MB in its own cache, 16
    in ours. One byte for 32 of the files is room for what grows with the number of units.
    """
    return min(MOST_MB, LEAST_MB + (size >> 25))


def boot(heap_mb: int = HEAP_MB) -> None:
    """Start the virtual machine with this heap, once; later calls do nothing, whatever the heap.

    Raises:
        MissingPartError: Java, JPype or the jar is not installed.
        IndexFailedError: this is a forked child of a process that had booted it, another library
            started one in this process, or it does not start.
    """
    with _MACHINE.lock:
        if _MACHINE.pid is not None:
            _refuse_fork()
            return
        jar.check_bridge()
        library, classes = jar.java_library(), jar.find()
        jpype = importlib.import_module("jpype")
        if jpype.isJVMStarted():
            raise IndexFailedError(
                "Another library has started Java in this process, so Lucene cannot be loaded.",
                hint="Run it in a process of its own.",
            )
        try:
            jpype.startJVM(
                str(library),
                f"-Xmx{heap_mb}m",
                *OPTIONS,
                classpath=[str(classes)],
                convertStrings=False,
                interrupt=False,
            )
        except (OSError, RuntimeError) as error:
            raise IndexFailedError(
                f"Java at {library} did not start with a heap of {heap_mb} MB: {error}."
            ) from error
        _quiet(jpype)
        # Java waits at its end for the thread that booted it, which may be gone or busy by then.
        # Detached, it is attached by its next call as a daemon, which nobody waits for.
        jpype.java.lang.Thread.detach()
        _MACHINE.pid = os.getpid()


@contextmanager
def calls(task: str) -> Iterator[None]:
    """Make Java calls inside; ``task`` says what for, as in "searching".

    Raises:
        IndexFailedError: the virtual machine is not running in this very process, or Java raised.
    """
    if _MACHINE.pid is None:
        raise IndexFailedError("Java is not running; jvm.boot() starts it.")
    _refuse_fork()
    jpype = importlib.import_module("jpype")
    if not hasattr(_MACHINE.visits, "visit"):
        _MACHINE.visits.visit = _Visit(jpype)
    try:
        yield
    except jpype.JException as error:
        raise IndexFailedError(f"Lucene failed while {task}: {error}.") from error


def load(name: str) -> Java:
    """Return the Java class of this full name.

    Raises:
        IndexFailedError: the jar has no such class.
    """
    jpype = importlib.import_module("jpype")
    try:
        return jpype.JClass(name)
    except TypeError as error:
        raise IndexFailedError(f"The jar {jar.find()} has no class {name}.") from error


def _refuse_fork() -> None:
    if _MACHINE.pid != os.getpid():
        raise IndexFailedError(
            f"Java was started in process {_MACHINE.pid} and cannot be used in its forked child "
            f"{os.getpid()}.",
            hint="Start worker processes by spawn, and open the index in each.",
        )


def _quiet(jpype: ModuleType) -> None:
    severe = jpype.JClass("java.util.logging.Level").SEVERE
    logger = jpype.JClass("java.util.logging.Logger").getLogger("org.apache.lucene")
    logger.setLevel(severe)
    # Java forgets a logger, level included, as soon as nobody holds it.
    _MACHINE.loggers.append(logger)
