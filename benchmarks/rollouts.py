"""Traffic shaped like recorded rollouts, through the shipped client, for minutes.

usage:
    python -m benchmarks.rollouts WORLD [--rate 120] [--minutes 10]    a fixed rate of calls
    python -m benchmarks.rollouts WORLD --soak [--share 0.7] [--minutes 30]

As many simulated rollouts run as give the rate with their think times, and after a period that
fell short as many more as it lacked; each waits for its answers before it thinks again, as agents
do. Every call ends in an outcome; what is no outcome of the contract is counted as untyped, and
there must be none. ``--soak`` first finds the best rate with rollouts that never think, then holds
a share of it: the p95 of the last five minutes may be 1.2 times that of the first five, and the
server's own memory must stay flat.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import math
import random
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.rollouts_traffic import THINK_S, Rollout, Step, Turn, calls_a_turn, read_cases
from benchmarks.speed_server import (
    ROOT,
    Server,
    load_average,
    queries_of,
    version_of,
    world_server,
)
from world_client import WorldClient
from world_client.errors import ClientError
from world_client.wire import SearchRequest
from world_core.pages import PageStore

PROBE_S = 20.0
PROBE_ROLLOUTS = 64
RATE_BAR = 0.97
TAIL_BAR = 1.2
MEMORY_BAR = 1.05
EDGE = 5
MOST_MORE = 0.1
MIB = 1 << 20


@dataclass
class Period:
    """What one period came to: seconds of every call, outcomes, the server's memory at its end."""

    seconds: list[float] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    memory: int = 0

    def quantile(self, share: float) -> float:
        """Return a quantile of the milliseconds, NaN without calls."""
        values = sorted(self.seconds)
        return values[min(len(values) - 1, int(share * len(values)))] * 1e3 if values else math.nan


@dataclass
class Record:
    """Periods of equal length since a start."""

    length_s: float
    started: float = field(default_factory=time.perf_counter)
    periods: list[Period] = field(default_factory=list)

    def now(self) -> Period:
        """Return the period that is running."""
        place = int((time.perf_counter() - self.started) / self.length_s)
        while len(self.periods) <= place:
            self.periods.append(Period())
        return self.periods[place]

    @property
    def outcomes(self) -> Counter[str]:
        """Outcomes of all periods."""
        return sum((period.outcomes for period in self.periods), Counter())


def main() -> int:
    """Run the traffic, print a row a minute, and say whether the bars are held."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("world", type=Path)
    parser.add_argument("--rate", type=float, default=120.0, help="calls a second (%(default)s)")
    parser.add_argument("--minutes", type=float, help="how long (10; with --soak 30)")
    parser.add_argument("--soak", action="store_true", help="hold a share of the best rate")
    parser.add_argument("--share", type=float, default=0.7, help="of the best rate (%(default)s)")
    parser.add_argument("--period", type=float, default=60.0, help="seconds of a row (%(default)s)")
    parser.add_argument("--think", type=float, default=THINK_S, help="mean seconds (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--traffic", type=Path, default=ROOT.parent / "shared" / "data" / "traffic")
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument("--serve", action="append", default=[], help="flag of world-server serve")
    options = parser.parse_args()
    minutes = options.minutes or (30.0 if options.soak else 10.0)
    files = read_cases(options.traffic)
    own = queries_of(options.world, 20_000, seed=options.seed)
    pages = pages_of(options.world, 1000)
    with world_server(options.world, *options.serve) as server:
        make = Maker(files, own, pages, options.seed)
        rate, best = options.rate, math.nan
        if options.soak:
            best = uvloop.run(best_rate(server, make))
            rate = options.share * best
            print(f"best rate {best:.0f} calls/s; held: {rate:.0f}", flush=True)
        record = uvloop.run(
            run(server, make, rate, 60 * minutes, think_s=options.think, period_s=options.period)
        )
    found = summary(record, rate, 60 * minutes) | {"best_per_s": best, "soak": options.soak}
    held = verdict(found, soak=options.soak)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0 if held else 1


class Maker:
    """Makes the rollouts of a run, each from a seed of its own."""

    def __init__(
        self,
        files: Sequence[Sequence[Sequence[Turn]]],
        own: Sequence[str],
        pages: Sequence[str],
        seed: int,
    ) -> None:
        self.calls_a_turn = calls_a_turn(files)
        self._files, self._own, self._pages, self._seed = files, own, pages, seed

    def rollout(self, number: int, think_s: float) -> Rollout:
        """Return the rollout of a number."""
        source = random.Random(f"{self._seed} {number}")
        return Rollout(self._files, self._own, self._pages, source, think_s)


async def run(
    server: Server,
    make: Maker,
    rate: float,
    seconds: float,
    *,
    think_s: float,
    period_s: float,
    printed: bool = True,
) -> Record:
    """Let as many rollouts run as give the rate, and return what came of their calls."""
    count = max(1, round(rate * think_s / make.calls_a_turn)) if think_s else PROBE_ROLLOUTS
    record = Record(period_s)
    end = record.started + seconds
    async with WorldClient(server.address) as client, asyncio.TaskGroup() as group:
        numbers = itertools.count()

        def start(more: int) -> None:
            for number in itertools.islice(numbers, more):
                group.create_task(one(client, make.rollout(number, think_s), record, end, think_s))

        def top_up(got: float) -> None:
            if think_s and 0 < got < rate:
                start(round(min(rate / got - 1, MOST_MORE) * count))

        start(count)
        group.create_task(watch(server, record, end, top_up, printed=printed))
    return record


async def one(
    client: WorldClient, rollout: Rollout, record: Record, end: float, think_s: float
) -> None:
    """Let a rollout think and call until the end; they begin spread over one think time."""
    await asyncio.sleep(rollout.source.random() * think_s)
    for step in rollout.steps():
        if time.perf_counter() + step.think_s >= end:
            return
        await asyncio.sleep(step.think_s)
        await take(client, rollout, step, record)


async def take(client: WorldClient, rollout: Rollout, step: Step, record: Record) -> None:
    """Make the calls of a step: a batch as one request, the others at the same time."""

    async def ask(query: str) -> Sequence[str]:
        answer = await client.search(query)
        rollout.found([hit.url for hit in answer.hits])
        return [answer.outcome]

    async def ask_all() -> Sequence[str]:
        answers = await client.search_batch([SearchRequest(query=text) for text in step.queries])
        rollout.found([hit.url for answer in answers for hit in answer.hits])
        return [answer.outcome for answer in answers]

    async def fetch(url: str) -> Sequence[str]:
        return [(await client.fetch(url)).outcome]

    if step.together and step.queries:
        await timed(ask_all(), len(step.queries), record)
    else:
        calls = [*(ask(query) for query in step.queries), *(fetch(url) for url in step.urls)]
        await asyncio.gather(*(timed(call, 1, record) for call in calls))


async def timed(call: Awaitable[Sequence[str]], calls: int, record: Record) -> None:
    """Count the outcomes of a request, each of its calls with the request's seconds."""
    started = time.perf_counter()
    try:
        outcomes = await call
    except ClientError as error:
        outcomes = [error.outcome] * calls
    except Exception as error:  # noqa: BLE001 - what is measured is that nothing else is raised
        outcomes = [f"untyped {type(error).__name__}"] * calls
    period = record.now()
    period.seconds += [time.perf_counter() - started] * calls
    period.outcomes.update(outcomes)


async def watch(
    server: Server, record: Record, end: float, ended: Callable[[float], None], *, printed: bool
) -> None:
    """Note the server's memory at the end of each period, print the period, and tell its rate."""
    number = 0
    while (now := time.perf_counter()) < end:
        due = record.started + (number + 1) * record.length_s
        await asyncio.sleep(max(0.0, min(due, end) - now))
        record.now()
        period = record.periods[number]
        period.memory = await asyncio.to_thread(server.memory)
        if printed:
            print_period(number, period, min(record.length_s, end - due + record.length_s))
        ended(len(period.seconds) / record.length_s)
        number += 1


async def best_rate(server: Server, make: Maker) -> float:
    """Return the calls a second that rollouts get who never think, after a run to warm up."""
    settings = {"think_s": 0.0, "period_s": PROBE_S}
    await run(server, make, 0, PROBE_S / 2, printed=False, **settings)
    record = await run(server, make, 0, PROBE_S, printed=False, **settings)
    return sum(len(period.seconds) for period in record.periods) / PROBE_S


def summary(record: Record, rate: float, seconds: float) -> dict[str, Any]:
    """Return the figures of a run."""
    periods = [period for period in record.periods if period.memory]
    first, last = periods[:EDGE], periods[-EDGE:]
    outcomes = record.outcomes
    return {
        "wanted_per_s": rate,
        "per_s": outcomes.total() / seconds,
        "outcomes": dict(outcomes.most_common()),
        "untyped": sum(n for name, n in outcomes.items() if name.startswith("untyped")),
        "periods": [
            {
                "calls": len(period.seconds),
                "p50_ms": period.quantile(0.5),
                "p95_ms": period.quantile(0.95),
                "p99_ms": period.quantile(0.99),
                "memory_mib": period.memory / MIB,
            }
            for period in periods
        ],
        "p95_first_ms": _together(first).quantile(0.95),
        "p95_last_ms": _together(last).quantile(0.95),
        "memory_first_mib": max(period.memory for period in first) / MIB,
        "memory_last_mib": max(period.memory for period in last) / MIB,
        "load": load_average(),
    }


def verdict(found: dict[str, Any], *, soak: bool) -> bool:
    """Print the end of a run and say whether its bars are held."""
    print(
        f"{found['per_s']:.1f} calls/s of {found['wanted_per_s']:.1f} wanted; outcomes "
        f"{found['outcomes']}; untyped {found['untyped']}; load average {found['load']:.1f}"
    )
    held = bool(found["untyped"] == 0)
    if not soak:
        return held and bool(found["per_s"] >= RATE_BAR * found["wanted_per_s"])
    slower = found["p95_last_ms"] / found["p95_first_ms"]
    grown = found["memory_last_mib"] / found["memory_first_mib"]
    print(
        f"p95 of the last {EDGE} periods {found['p95_last_ms']:.1f} ms, of the first "
        f"{found['p95_first_ms']:.1f} ms: {slower:.2f} times (bar {TAIL_BAR}); own memory "
        f"{found['memory_first_mib']:.0f} to {found['memory_last_mib']:.0f} MiB: {grown:.2f} times "
        f"(bar {MEMORY_BAR})"
    )
    return held and slower <= TAIL_BAR and grown <= MEMORY_BAR


def print_period(number: int, period: Period, seconds: float) -> None:
    """Print one row."""
    print(
        f"{number + 1:3}: {len(period.seconds) / seconds:7.1f}/s  p50 {period.quantile(0.5):7.1f}  "
        f"p95 {period.quantile(0.95):7.1f}  p99 {period.quantile(0.99):7.1f} ms  "
        f"{period.memory / MIB:6.0f} MiB  load {load_average():.1f}",
        flush=True,
    )


def pages_of(world: Path, count: int) -> list[str]:
    """Return addresses of evenly spaced pages of a world."""
    store = PageStore.open(version_of(world) / "pages.sqlite")
    versions = store.counts().versions
    found = [meta.url for meta in store.metas(range(0, versions, max(1, versions // count)))]
    store.close()
    return found


def _together(periods: Sequence[Period]) -> Period:
    return Period([second for period in periods for second in period.seconds])


if __name__ == "__main__":
    sys.exit(main())
