"""The virtual machine is one a process, so most of its life is tried in processes of its own."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.world_core.indexes import lexical_cases as cases
from world_core.errors import IndexFailedError
from world_core.indexes import jvm

pytestmark = pytest.mark.java

ROOT = Path(jvm.__file__).parents[2]


@pytest.fixture(autouse=True)
def _java() -> None:
    cases.need_java()


def run(program: str) -> tuple[str, str]:
    """Run the program in a process of its own; return what it prints and its errors."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_boots_once_with_the_first_heap_from_many_threads() -> None:
    shown, errors = run("""
import threading
from world_core.indexes import jvm
try:
    with jvm.calls("asking too early"): pass
except jvm.IndexFailedError as error: print(error)
threads = [threading.Thread(target=jvm.boot, args=(96,)) for _ in range(8)]
[thread.start() for thread in threads]; [thread.join() for thread in threads]
jvm.boot(4096)
with jvm.calls("asking"):
    print(jvm.load("java.lang.Runtime").getRuntime().maxMemory() // 2**20)
    print(jvm.load("java.lang.System").getProperty("java.version"))
""")
    early, heap, version = shown.splitlines()
    assert early == "Java is not running; jvm.boot() starts it."
    assert 80 <= int(heap) <= 96
    assert version.startswith("25.")
    assert errors == ""


@pytest.mark.parametrize("daemon", [False, True])
def test_a_process_ends_although_another_thread_booted(daemon: bool) -> None:
    shown, errors = run(f"""
import threading, time
from world_core.indexes import jvm
ready = threading.Event()
def work():
    jvm.boot()
    with jvm.calls("asking"): print(jvm.load("java.lang.Runtime").getRuntime() is not None)
    ready.set()
    if {daemon}: time.sleep(600)
threading.Thread(target=work, daemon={daemon}).start()
ready.wait()
""")
    assert (shown, errors) == ("True\n", "")


def test_signals_stay_with_python() -> None:
    shown, _ = run("""
import os, signal, time
from world_core.indexes import jvm
for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, lambda got, frame: print("handled", got))
# A process started in the background by a shell begins with SIGINT ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
jvm.boot()
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    try:
        os.kill(os.getpid(), number); time.sleep(0.2)
    except KeyboardInterrupt: print("interrupted")
print("alive")
""")
    assert shown.splitlines() == ["handled 15", "handled 1", "interrupted", "alive"]


def test_a_forked_child_is_refused() -> None:
    shown, _ = run("""
import os
from world_core.indexes import jvm
jvm.boot()
child = os.fork()
if child == 0:
    try: jvm.boot()
    except jvm.IndexFailedError as error: print(error, flush=True)
    try:
        with jvm.calls("asking"): print("asked", flush=True)
    except jvm.IndexFailedError as error: print(error, flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(os.getpid(), child)
""")
    first, second, pids = shown.splitlines()
    assert first == second
    parent, child = pids.split()
    assert f"process {parent}" in first
    assert f"forked child {child}" in first
    assert "spawn" in first


def test_a_machine_of_somebody_else_is_refused() -> None:
    shown, _ = run("""
import jpype
from world_core.indexes import jar, jvm
jpype.startJVM(str(jar.java_library()), "-Xmx32m")
try: jvm.boot()
except jvm.IndexFailedError as error: print(error)
""")
    assert "Another library has started Java" in shown


def test_an_impossible_heap_is_said_with_its_size() -> None:
    shown, _ = run("""
from world_core.indexes import jvm
try: jvm.boot(-5)
except jvm.IndexFailedError as error: print(error)
""")
    assert "heap of -5 MB" in shown


def test_a_missing_jar_is_said_before_java_starts() -> None:
    shown, _ = run("""
import importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name: None if name == "pyserini" else real(name)
from world_core.errors import MissingPartError
from world_core.indexes import jvm
try: jvm.boot()
except MissingPartError as error: print(error)
import jpype
print(jpype.isJVMStarted())
""")
    sentence, started = shown.splitlines()
    assert "pyserini" in sentence
    assert "world-server setup lucene" in sentence
    assert started == "False"


def test_threads_that_end_leave_java() -> None:
    jvm.boot()
    counted: list[int] = []

    def visit() -> None:
        with jvm.calls("counting"):
            counted.append(int(jvm.load("java.lang.Thread").activeCount()))

    for _ in range(60):
        thread = threading.Thread(target=visit)
        thread.start()
        thread.join()
    assert len(counted) == 60
    assert counted[-1] <= counted[0] + 1


def test_a_fixed_pool_attaches_no_more_threads_than_it_has() -> None:
    jvm.boot()

    def visit(number: int) -> int:
        with jvm.calls("counting"):
            return int(jvm.load("java.lang.Thread").activeCount())

    before = visit(0)
    with ThreadPoolExecutor(4) as pool:
        counted = list(pool.map(visit, range(400)))
    assert max(counted) <= before + 4
    assert visit(0) <= before + 1


def test_the_heap_grows_with_the_index_between_its_bounds(tmp_path: Path) -> None:
    assert jvm.heap_of(0) == jvm.LEAST_MB
    assert jvm.heap_of(3200 << 20) == jvm.LEAST_MB + 100
    assert jvm.heap_of(1 << 50) == jvm.MOST_MB
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        with (tmp_path / name / "segment").open("wb") as file:
            file.truncate(640 << 20)  # sparse
    assert jvm.heap_for(tmp_path / "one") == jvm.LEAST_MB + 20
    assert jvm.heap_for(tmp_path / "one", tmp_path / "two") == jvm.LEAST_MB + 40


def test_a_java_exception_becomes_an_index_error_with_the_task() -> None:
    jvm.boot()
    with (
        pytest.raises(IndexFailedError, match=r"while reading a number: .*NumberFormat") as caught,
        jvm.calls("reading a number"),
    ):
        jvm.load("java.lang.Long").parseLong("no number")
    assert caught.value.__cause__ is not None


def test_a_class_that_is_not_there_is_named() -> None:
    jvm.boot()
    with pytest.raises(IndexFailedError, match=r"org\.nowhere\.Thing"):
        jvm.load("org.nowhere.Thing")
