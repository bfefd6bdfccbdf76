"""The image's one command, run as a process, with the image's own health check asked of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import TextIO

import pytest

from tests.deploy.test_files import _last
from tests.support import command, free_port

PATIENCE = 240.0


def _healthy(port: int) -> bool:
    probe = _last("cpu", "HEALTHCHECK")
    code = json.loads(probe[probe.index("[") :])[2].replace(":8000/", f":{port}/")
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    return ran.returncode == 0


def _start(words: list[str], volume: Path, output: TextIO) -> subprocess.Popen[bytes]:
    # As in the image, only the volume may be written to.
    return subprocess.Popen(
        [command(words[0]), *words[1:]],
        env={**os.environ, "HOME": str(volume), "XDG_DATA_HOME": str(volume)},
        cwd=volume,
        stdout=output,
        stderr=subprocess.STDOUT,
    )


@pytest.mark.slow
def test_the_command_builds_serves_and_stops(tmp_path: Path) -> None:
    port = free_port()
    assert not _healthy(port)
    words = json.loads(_last("cpu", "ENTRYPOINT")) + json.loads(_last("cpu", "CMD"))
    words = [str(port) if word == "8000" else word for word in words]
    log = tmp_path / "log"
    with log.open("w") as output:
        process = _start(words, tmp_path, output)
    try:
        deadline = time.monotonic() + PATIENCE
        while not _healthy(port) and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.5)
        assert _healthy(port), log.read_text()
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/search",
            data=b'{"q": "lighthouse"}',
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as response:
            assert json.load(response)["organic"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=40) == 0, log.read_text()
        assert "Traceback" not in log.read_text()
    finally:
        process.kill()
        process.wait()
    assert (tmp_path / "searchworld" / "worlds" / "demo").exists()
