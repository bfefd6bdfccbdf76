"""The script that asks the demo server, up to the point where a server is needed."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time

import pytest

from tests.conftest import ROOT

CALLS = ROOT / "scripts" / "demo_calls.py"


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the script."""
    return subprocess.run(
        [sys.executable, str(CALLS), *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_free_port_is_free(unused_tcp_port: int) -> None:
    assert run("free", str(unused_tcp_port)).returncode == 0


def test_a_port_in_use_is_said_with_another_one() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        ended = run("free", str(port))
    assert ended.returncode == 2
    assert f"port {port}" in ended.stderr
    assert f"--port {port % 65535 + 1}" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("port", ["abc", "", "-1", "0", "65536", "8000x", "\u0661"])
def test_what_is_no_port_is_refused_in_a_sentence(port: str) -> None:
    ended = run("free", f"{port}") if not port.startswith("-") else run("free", "--", port)
    assert ended.returncode == 2
    assert "--port needs a number" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_server_that_ended_is_not_waited_for(unused_tcp_port: int) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    ended = run("ask", str(unused_tcp_port), "--server-pid", str(gone.pid), "--once", "yes")
    assert ended.returncode == 1
    assert "ended before it was ready" in ended.stderr


def test_an_interrupt_ends_it_with_a_sentence(unused_tcp_port: int) -> None:
    waiting = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    words = ["ask", str(unused_tcp_port), "--server-pid", str(waiting.pid), "--once", "yes"]
    asking = subprocess.Popen(
        [sys.executable, str(CALLS), *words], stderr=subprocess.PIPE, text=True
    )
    try:
        time.sleep(1.5)
        assert asking.poll() is None
        asking.send_signal(signal.SIGINT)
        _, said = asking.communicate(timeout=30)
    finally:
        waiting.kill()
        waiting.wait()
    assert asking.returncode == 130
    assert "Interrupted" in said
    assert "Traceback" not in said
