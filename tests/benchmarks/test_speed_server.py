from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import speed_server
from tests.world_core.worlds import make_world

RECIPE = '[lexical]\nengine = "tantivy"\n'
SPENDING = "import time\nend = time.process_time() + 0.5\nwhile time.process_time() < end: pass\n"
PARENT = (
    "import subprocess, sys, http.server\n"
    "child = subprocess.Popen([sys.executable, '-c', sys.argv[2]])\n"
    "child.wait() if len(sys.argv) > 3 else None\n"
    "held = bytearray(64 << 20)\n"
    "class Handler(http.server.BaseHTTPRequestHandler):\n"
    "    def do_GET(self):\n"
    "        self.send_response(200 if self.path == '/ready' else 404)\n"
    "        self.end_headers()\n"
    "    def log_message(self, *words): pass\n"
    "http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()\n"
)


def test_a_server_is_watched_with_its_children_and_ended() -> None:
    port = speed_server.free_port()
    child = SPENDING + "import time\ntime.sleep(600)\n"
    words = [sys.executable, "-c", PARENT, str(port), child]
    with speed_server.running(words, port, "/ready") as server:
        assert len(server.processes()) == 2
        assert server.address == f"http://127.0.0.1:{port}"
        while server.cpu_seconds() < 0.5:
            assert server.process.poll() is None
        assert server.memory() > 64 << 20
        (_, pid) = server.processes()
    assert server.process.poll() is not None
    subprocess.run(["kill", "-9", str(pid)], check=True)
    assert server.cpu_seconds() == 0
    assert server.memory() == 0


def test_a_server_that_ends_is_said_so() -> None:
    words = [sys.executable, "-c", "raise SystemExit(3)"]
    with (
        pytest.raises(SystemExit, match="ended with 3"),
        speed_server.running(words, speed_server.free_port(), "/ready"),
    ):
        pytest.fail("it cannot be ready")


def test_queries_are_words_of_the_world_and_the_same_for_a_seed(tmp_path: Path) -> None:
    folder = make_world(tmp_path, RECIPE)
    world = folder.parent
    assert speed_server.version_of(world) == folder
    assert speed_server.version_of(folder) == folder
    queries = speed_server.queries_of(world, 200, seed=1)
    assert queries == speed_server.queries_of(folder, 200, seed=1)
    assert queries != speed_server.queries_of(folder, 200, seed=2)
    assert len(set(queries)) == len(queries) == 200
    for query in queries:
        assert re.fullmatch(r"\w+( \w+){2,6}", query)


def test_the_load_is_a_number() -> None:
    assert speed_server.load_average() >= 0
