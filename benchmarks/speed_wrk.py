"""Load from wrk: a list of requests asked in turn, and what came of it.

wrk takes a tenth of the processor time of a Python client, so the server gets the rest. It does not
compare bodies; ``speed_driver`` does.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}

SCRIPT = """
local requests = {}
local place = 0
local threads = 0
function setup(thread) thread:set("first", threads) threads = threads + 1 end
function init(args)
  local file = assert(io.open("%(path)s", "r"))
  for line in file:lines() do
    local method, path, body = line:match("^(%%S+) (%%S+) ?(.*)$")
    local headers = {["Content-Type"] = "application/json"}
    requests[#requests + 1] = wrk.format(method, path, headers, body ~= "" and body or nil)
  end
  file:close()
  place = math.floor(first * #requests / 2)
end
function request()
  place = place %% #requests + 1
  return requests[place]
end
"""


@dataclass(frozen=True, slots=True)
class Request:
    """A request: method, path, and a body of one line or none."""

    method: str
    path: str
    body: str = ""

    def raw(self) -> bytes:
        """Return the bytes that a keep-alive client sends."""
        data = self.body.encode()
        head = f"{self.method} {self.path} HTTP/1.1\r\nHost: x\r\n"
        if data:
            head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n"
        return head.encode() + b"\r\n" + data


@dataclass(frozen=True, slots=True)
class Load:
    """What wrk measured: answers, those with an error status, socket errors, seconds, latencies."""

    answers: int
    not_2xx: int
    socket_errors: int
    seconds: float
    p50: float
    p99: float

    @property
    def rate(self) -> float:
        """Answers a second."""
        return self.answers / self.seconds


def post(path: str, value: object) -> Request:
    """Return a POST of a JSON value, written in ASCII on one line."""
    return Request("POST", path, json.dumps(value))


def run(address: str, requests: Sequence[Request], *, connections: int, seconds: float) -> Load:
    """Ask the requests in turn over so many connections for so long.

    Raises:
        SystemExit: wrk is not installed.
    """
    program = shutil.which("wrk")
    if program is None:
        raise SystemExit("wrk is missing; install it: apt-get install wrk")
    threads = min(2, connections)
    with tempfile.TemporaryDirectory() as folder:
        listed = Path(folder) / "requests.txt"
        lines = (f"{one.method} {one.path} {one.body}".rstrip() for one in requests)
        listed.write_text("\n".join(lines) + "\n", encoding="utf-8")
        script = Path(folder) / "requests.lua"
        script.write_text(SCRIPT % {"path": listed}, encoding="utf-8")
        shown = subprocess.run(
            [
                program,
                *("-t", str(threads), "-c", str(connections), "-d", f"{round(seconds)}s"),
                *("--latency", "--timeout", "30s", "-s", str(script), address),
            ],
            capture_output=True,
            text=True,
            check=True,
        )
    return parse(shown.stdout)


def parse(text: str) -> Load:
    """Read what wrk prints."""

    def found(pattern: str) -> str:
        match = re.search(pattern, text)
        return match[1] if match else "0"

    errors = re.search(
        r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", text
    )
    return Load(
        answers=int(found(r"(\d+) requests in ")),
        not_2xx=int(found(r"Non-2xx or 3xx responses: (\d+)")),
        socket_errors=sum(map(int, errors.groups())) if errors else 0,
        seconds=_seconds(found(r"requests in ([\d.]+[a-z]+)")),
        p50=_seconds(found(r"50%\s+([\d.]+[a-z]+)")),
        p99=_seconds(found(r"99%\s+([\d.]+[a-z]+)")),
    )


def _seconds(text: str) -> float:
    match = re.fullmatch(r"([\d.]+)([a-z]*)", text)
    return float(match[1]) * UNITS.get(match[2], 1.0) if match else 0.0
