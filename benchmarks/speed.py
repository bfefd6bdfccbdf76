"""What a request costs the server, against the sum of its parts measured alone.

usage: python -m benchmarks.speed WORLD [--seconds N] [--json FILE] [--serve FLAG ...]

Measured in one run: the processor time of each step of a call in this process, one call after
another; then that of the server's processes for BM25, hybrid, fetch and a route that does nothing
(``/health``) under wrk at 1, 8 and 64 connections. The ratio is server time over the sum of the
steps and the route. Then every body of a mixed list is compared with the one that a single
connection got, and the slowest hundredth of hybrid searches at 0.7 of the best rate with that of
the route at the same rate. Queries are not repeated, so no cache answers them.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import uvloop

from benchmarks import speed_driver, speed_wrk
from benchmarks.speed_server import Server, load_average, queries_of, version_of, world_server
from benchmarks.speed_wrk import Request, post
from world_core import steps
from world_core.engine import Engine
from world_core.generation import Generation
from world_core.pages import PageStore
from world_core.types import FetchCall, Mode, SearchCall, Timings

CONNECTIONS = (1, 8, 64)
CPU_BAR = 1.3
TAIL_BAR = 3.0
SHARE = 0.7
NO_OP = Request("GET", "/health")
SLICE = 3000
COMPARED = 100


@dataclass(frozen=True)
class Parts:
    """Processor milliseconds by step of one kind of call, and the slowest steps of the wall."""

    cpu_ms: Mapping[str, float]
    longest_ms: float
    longest: str

    @property
    def total(self) -> float:
        """Milliseconds of all steps."""
        return sum(self.cpu_ms.values())


def main() -> int:
    """Measure, print the tables, and say whether the bars are held."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("world", type=Path)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each load (%(default)s)")
    parser.add_argument("--calls", type=int, default=300, help="of each kind, for the parts")
    parser.add_argument("--warm", type=int, default=1000, help="calls of each kind before")
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument("--serve", action="append", default=[], help="flag of world-server serve")
    options = parser.parse_args()
    wanted = (2 * len(CONNECTIONS) + 1) * SLICE
    wanted += 4 * (options.calls + options.warm + COMPARED)
    queries = queries_of(options.world, wanted, seed=1)
    if len(queries) < wanted:
        raise SystemExit(f"{options.world} has only {len(queries)} queries; take a larger world")
    source = iter(queries)
    addresses = addresses_of(options.world, SLICE, seed=2)
    found: dict[str, Any] = {"load_before": load_average()}
    parts = measure_parts(options.world, source, addresses, options.calls, options.warm)
    print_parts(parts)
    has_dense = parts["hybrid"] is not None
    with world_server(options.world, *options.serve) as server:
        uvloop.run(warm(server, source, options.warm, has_dense=has_dense))
        kinds = {
            "no-op": itertools.repeat([NO_OP]),
            "bm25": (lexical(source) for _ in itertools.count()),
            "hybrid": (hybrid(source) for _ in itertools.count()),
            "fetch": itertools.repeat([post("/v1/fetch", {"url": url}) for url in addresses]),
        }
        if not has_dense:
            kinds.pop("hybrid")
        rows = [
            row
            for kind, requests in kinds.items()
            for row in measure_server(server, kind, requests, options.seconds)
        ]
        held = print_rows(rows, parts)
        wrong = uvloop.run(compare(server, source, addresses, has_dense=has_dense))
        print(f"bodies that differ from those of one connection: {wrong['wrong']} of {wrong['n']}")
        tail = uvloop.run(measure_tail(server, rows, source, parts, options.seconds))
    print_tail(tail)
    found |= {
        "load_after": load_average(),
        "parts": {
            kind: {"cpu_ms": dict(one.cpu_ms), "longest": one.longest, "ms": one.longest_ms}
            for kind, one in parts.items()
            if one
        },
        "server": rows,
        "bodies": wrong,
        "tail": tail,
    }
    print(f"load average {found['load_before']:.1f} before, {found['load_after']:.1f} after")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0 if held and not wrong["wrong"] and tail["held"] else 1


def search(query: str, mode: str) -> Request:
    """Return a search of the native route."""
    return post("/v1/search", {"query": query, "count": 10, "mode": mode})


def hybrid(source: Iterator[str], count: int = SLICE) -> list[Request]:
    """Return hybrid searches for the next queries."""
    return [search(query, "hybrid") for query in itertools.islice(source, count)]


def lexical(source: Iterator[str], count: int = SLICE) -> list[Request]:
    """Return BM25 searches for the next queries."""
    return [search(query, "lexical") for query in itertools.islice(source, count)]


def addresses_of(world: Path, count: int, *, seed: int) -> list[str]:
    """Return the addresses of random pages of a world."""
    store = PageStore.open(version_of(world) / "pages.sqlite")
    versions = range(store.counts().versions)
    chosen = random.Random(seed).choices(versions, k=count)
    found = [meta.url for meta in store.metas(sorted(set(chosen)))]
    store.close()
    return found


async def warm(server: Server, source: Iterator[str], calls: int, *, has_dense: bool) -> None:
    """Let Java compile what the loads run, as the calls before the parts do in this process."""
    asked = [*lexical(source, calls), *(hybrid(source, calls) if has_dense else [])]
    await speed_driver.closed_loop(server.port, asked, connections=8, expected={})


def measure_parts(
    world: Path, source: Iterator[str], addresses: Sequence[str], calls: int, warm: int
) -> dict[str, Parts | None]:
    """Measure the steps of each kind of call in this process, one call after another."""
    engine = Engine(Generation.open(version_of(world), verify=False))
    try:
        modes = {"bm25": Mode.LEXICAL, "hybrid": Mode.HYBRID}
        found: dict[str, Parts | None] = {}
        for kind, mode in modes.items():
            if mode is Mode.HYBRID and engine.generation.dense is None:
                found[kind] = None
                continue
            asked = [
                SearchCall(query, count=10, mode=mode)
                for query in itertools.islice(source, warm + 2 * calls)
            ]
            for call in asked[:warm]:  # Java compiles what it runs often
                engine.search(call)
            found[kind] = search_parts(engine, asked[warm:])
        pages = [FetchCall(url) for url in addresses[: 2 * calls]]
        for call in pages[:calls]:
            engine.fetch(call)
        started = time.process_time()
        for call in pages[calls:]:
            engine.fetch(call)
        spent = (time.process_time() - started) * 1e3 / len(pages[calls:])
        found["fetch"] = Parts({"fetch": spent}, spent, "fetch")
        return found
    finally:
        engine.close()


def search_parts(engine: Engine, calls: Sequence[SearchCall]) -> Parts:
    """Return the processor time by step of these calls, and the step with the longest p99."""
    cpu: dict[str, float] = defaultdict(float)
    walls: dict[str, list[float]] = defaultdict(list)
    wall_clock, half = steps.time, len(calls) // 2
    for call in calls[:half]:
        timings = Timings()
        engine.search(call, timings=timings)
        for step, seconds in timings.seconds.items():
            walls[step].append(seconds)
    # The steps take the time from their module's clock; here it counts processor time instead.
    steps.time = SimpleNamespace(perf_counter=time.process_time)  # type: ignore[assignment]
    try:
        for call in calls[half:]:
            timings = Timings()
            engine.search(call, timings=timings)
            for step, seconds in timings.seconds.items():
                cpu[step] += seconds * 1e3 / (len(calls) - half)
    finally:
        steps.time = wall_clock
    tails = {step: sorted(seconds)[int(0.99 * len(seconds))] for step, seconds in walls.items()}
    longest = max(tails, key=lambda step: tails[step])
    return Parts(dict(cpu), tails[longest] * 1e3, longest)


def measure_server(
    server: Server, kind: str, requests: Iterator[list[Request]], seconds: float
) -> Iterator[dict[str, Any]]:
    """Yield a row a number of connections: rate, latencies, processor time a request."""
    for connections in CONNECTIONS:
        before = server.cpu_seconds()
        load = speed_wrk.run(
            server.address, next(requests), connections=connections, seconds=seconds
        )
        spent = server.cpu_seconds() - before
        yield {
            "kind": kind,
            "connections": connections,
            "per_s": load.rate,
            "cpu_ms": spent * 1e3 / max(1, load.answers),
            "p50_ms": load.p50 * 1e3,
            "p99_ms": load.p99 * 1e3,
            "failed": load.not_2xx + load.socket_errors,
        }


async def compare(
    server: Server, source: Iterator[str], addresses: Sequence[str], *, has_dense: bool
) -> dict[str, int]:
    """Ask a mixed list over 64 connections and count the bodies that differ from one by one."""
    asked = [
        *(hybrid(source, COMPARED) if has_dense else []),
        *lexical(source, COMPARED),
        *(post("/v1/fetch", {"url": url}) for url in addresses[:COMPARED]),
    ]
    random.Random(3).shuffle(asked)
    expected = await speed_driver.bodies(server.port, asked)
    tally = await speed_driver.closed_loop(
        server.port, asked * 2, connections=64, expected=expected
    )
    answered = tally.statuses.total()
    return {"n": 2 * len(asked), "wrong": tally.wrong + answered - tally.statuses[200]}


async def measure_tail(
    server: Server,
    rows: Sequence[Mapping[str, Any]],
    source: Iterator[str],
    parts: Mapping[str, Parts | None],
    seconds: float,
) -> dict[str, Any]:
    """Return the p99 of searches at 0.7 of the best rate and of the no-op route at that rate."""
    kind = "hybrid" if parts["hybrid"] else "bm25"
    rate = SHARE * max(row["per_s"] for row in rows if row["kind"] == kind)
    asked = hybrid(source) if kind == "hybrid" else lexical(source)
    found: dict[str, Any] = {"kind": kind, "rate": rate}
    for name, requests in (("no_op", [NO_OP]), ("search", asked)):
        tally = await speed_driver.open_loop(
            server.port, requests, rate=rate, seconds=2 * seconds, expected={}
        )
        found[name] = {
            "p50_ms": tally.quantile(0.5) * 1e3,
            "p99_ms": tally.quantile(0.99) * 1e3,
            "failures": sum(tally.failures.values()),
            "late": tally.late,
        }
    one = parts[kind]
    longest = one.longest_ms if one else 0.0
    found["longest_step"] = {"name": one.longest if one else "", "p99_ms": longest}
    found["bound_ms"] = TAIL_BAR * (found["no_op"]["p99_ms"] + longest)
    found["held"] = found["search"]["p99_ms"] <= found["bound_ms"]
    return found


def print_parts(parts: Mapping[str, Parts | None]) -> None:
    """Print the steps of each kind of call."""
    for kind, one in parts.items():
        if one:
            listed = ", ".join(f"{step} {ms:.2f}" for step, ms in one.cpu_ms.items())
            print(f"parts of {kind}, CPU ms: {listed}; together {one.total:.2f}")


def print_rows(rows: Sequence[dict[str, Any]], parts: Mapping[str, Parts | None]) -> bool:
    """Print the server's rows with their ratios, add these, and say whether all are in bounds."""
    no_op = {row["connections"]: row["cpu_ms"] for row in rows if row["kind"] == "no-op"}
    print("| call | connections | per s | server CPU ms | sum of parts | ratio | p99 ms | failed |")
    print("|---|---|---|---|---|---|---|---|")
    held = True
    for row in rows:
        one = parts.get(row["kind"])
        row["sum_ms"] = (one.total if one else 0.0) + no_op[row["connections"]]
        row["ratio"] = row["cpu_ms"] / row["sum_ms"]
        held = held and row["ratio"] <= CPU_BAR and not row["failed"]
        print(
            f"| {row['kind']} | {row['connections']} | {row['per_s']:.0f} | {row['cpu_ms']:.3f} "
            f"| {row['sum_ms']:.3f} | {row['ratio']:.2f} | {row['p99_ms']:.1f} | {row['failed']} |"
        )
    print(f"bar: a ratio of at most {CPU_BAR}: {'held' if held else 'MISSED'}")
    return held


def print_tail(tail: Mapping[str, Any]) -> None:
    """Print the slowest hundredth against its bound."""
    step = tail["longest_step"]
    print(
        f"p99 of {tail['kind']} at {tail['rate']:.0f}/s: {tail['search']['p99_ms']:.1f} ms "
        f"(p50 {tail['search']['p50_ms']:.1f}); no-op route {tail['no_op']['p99_ms']:.1f} ms; "
        f"longest step {step['name']} {step['p99_ms']:.1f} ms; bound {TAIL_BAR:g} x their sum "
        f"{tail['bound_ms']:.1f} ms: {'held' if tail['held'] else 'MISSED'}; late sends "
        f"{tail['search']['late']}, failures {tail['search']['failures']}"
    )


if __name__ == "__main__":
    sys.exit(main())
