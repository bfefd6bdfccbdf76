"""What encoding queries costs under load: alone, in micro-batches, remembered, in a process.

usage:
    encoding.py callers SHARED [--encoder KIND] [--callers 1 8 16 32 64] [--rounds 3]
    encoding.py process SHARED [--encoder KIND] [--deaths 3]

``SHARED`` is the folder of evaluation data; the queries are the real ones of its ``data/traffic``.
``callers`` compares, alternating in one run, CPU seconds of the encoder's thread a query: one at a
time, and from so many callers who ask the next query when they have an answer. Lines with the
length left out take whoever waits, whatever its length. ``process`` compares the process of its own
with this one, and kills it.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from world_core.encoders.base import Encoder, LengthAware
from world_core.encoders.loading import load
from world_core.types import Vectors
from world_server.batching import MicroBatcher
from world_server.encoder_client import RemoteEncoder
from world_server.encoder_process import Spec
from world_server.query_encoder import QueryEncoder


class Timed:
    """An encoder that counts the CPU seconds of its queries, and the sizes of its batches."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.id = encoder.id
        self.dim = encoder.dim
        self.seconds = 0.0
        self.sizes: list[int] = []

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """Encode, with the clock of this thread around it."""
        started = time.thread_time()
        rows = self._encoder.encode_queries(texts)
        self.seconds += time.thread_time() - started
        self.sizes.append(len(texts))
        return rows

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        """Pass on."""
        return self._encoder.encode_passages(texts)


class TimedByLength(Timed):
    """The same for an encoder that tells lengths, which costs CPU as well."""

    def __init__(self, encoder: Encoder, ruler: LengthAware) -> None:
        super().__init__(encoder)
        self._ruler = ruler

    def query_length(self, text: str) -> int:
        """Tell the length, with the clock of this thread around it."""
        started = time.thread_time()
        length = self._ruler.query_length(text)
        self.seconds += time.thread_time() - started
        return length


def queries(shared: Path) -> list[str]:
    """Return the real queries in the order they were asked, repetitions included."""
    found: list[str] = []
    for path in sorted((shared / "data" / "traffic").glob("*_requests.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            found += json.loads(line).get("queries") or []
    return found


def ask(encoder: QueryEncoder, texts: Sequence[str], callers: int) -> list[float]:
    """Let callers take the next text until there is none; return the seconds of each."""
    left: Iterator[str] = iter(texts)
    lock = threading.Lock()
    seconds: list[float] = []

    def caller(_number: int) -> None:
        while True:
            with lock:
                text = next(left, None)
            if text is None:
                return
            started = time.perf_counter()
            encoder.submit(text).result()
            seconds.append(time.perf_counter() - started)

    with ThreadPoolExecutor(callers) as pool:
        list(pool.map(caller, range(callers)))
    return seconds


def run_callers(options: argparse.Namespace) -> None:
    """Print the table of micro-batching."""
    texts = list(dict.fromkeys(queries(options.shared)))
    model = load(options.encoder, {})
    kinds: dict[str, Callable[[], Timed]] = {"as they come": partial(Timed, model)}
    if isinstance(model, LengthAware):
        kinds["by length"] = partial(TimedByLength, model, model)
    print(f"{len(texts)} queries, {options.encoder}, load {os.getloadavg()[0]:.1f}")
    model.encode_queries(texts[:50])
    rows: dict[tuple[int, str, int], list[tuple[float, float, float, float]]] = {}
    for _ in range(options.rounds):
        alone = Timed(model)
        for text in texts:
            alone.encode_queries([text])
        for callers in options.callers:
            for name, kind in kinds.items():
                for limit in options.limits:
                    timed = kind()
                    batcher = MicroBatcher(timed, limit=limit, wait_s=options.wait_ms / 1e3)
                    seconds = sorted(ask(batcher, texts, callers))
                    batcher.close()
                    rows.setdefault((callers, name, limit), []).append(
                        (
                            timed.seconds / alone.seconds,
                            statistics.fmean(timed.sizes),
                            1e3 * seconds[len(seconds) // 2],
                            1e3 * seconds[int(0.99 * len(seconds))],
                        )
                    )
        print(f"alone {1e3 * alone.seconds / len(texts):.2f} ms of CPU a query", flush=True)
    print("| callers | batches | limit | CPU / alone (range) | mean batch | p50 ms | p99 ms |")
    print("|---|---|---|---|---|---|---|")
    for (callers, name, limit), found in rows.items():
        ratio, size, half, late = (statistics.median(column) for column in zip(*found, strict=True))
        low, high = min(one[0] for one in found), max(one[0] for one in found)
        print(
            f"| {callers} | {name} | {limit} | {ratio:.2f} ({low:.2f} to {high:.2f}) | {size:.1f} "
            f"| {half:.0f} | {late:.0f} |"
        )


def run_process(options: argparse.Namespace) -> None:
    """Print what the way to another process costs, and how long it is away when it dies."""
    texts = list(dict.fromkeys(queries(options.shared)))
    print(f"{options.encoder}, load {os.getloadavg()[0]:.1f}")
    started = time.perf_counter()
    remote = RemoteEncoder(Spec(kind=options.encoder))
    load_s = time.perf_counter() - started
    local = MicroBatcher(load(options.encoder, {}))
    print(f"start with load and self-check: {load_s:.2f} s")
    for callers in (1, 16):
        for name, encoder in (("here", local), ("process", remote)):
            started = time.perf_counter()
            seconds = sorted(ask(encoder, texts, callers))
            rate = len(texts) / (time.perf_counter() - started)
            print(
                f"{callers} callers, {name}: p50 {1e3 * seconds[len(seconds) // 2]:.2f} ms, "
                f"{rate:.0f}/s"
            )
    for number in (signal.SIGKILL, signal.SIGSTOP):
        for _ in range(options.deaths):
            process = remote.process_id or 0
            os.kill(process, signal.SIGSTOP)  # so that the call is under way in either case
            future = remote.submit(texts[0])
            started = time.perf_counter()
            if number == signal.SIGKILL:
                time.sleep(0.05)
                os.kill(process, number)
            error = future.exception()
            away = time.perf_counter() - started
            print(f"{number.name}: the call under way ended after {away:.2f} s with {error!r}")
            while not remote.report().is_ready:
                time.sleep(0.05)
            time.sleep(options.pause)
    remote.close()
    local.close()


def main() -> None:
    """Run one of the benchmarks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    commands = parser.add_subparsers(required=True)
    callers = commands.add_parser("callers")
    callers.add_argument("--callers", type=int, nargs="+", default=[1, 8, 16, 32, 64])
    callers.add_argument("--limits", type=int, nargs="+", default=[32])
    callers.add_argument("--wait-ms", type=float, default=0.0)
    callers.add_argument("--rounds", type=int, default=3)
    callers.set_defaults(run=run_callers)
    process = commands.add_parser("process")
    process.add_argument("--deaths", type=int, default=2)
    process.add_argument("--pause", type=float, default=0.0, help="seconds between deaths")
    process.set_defaults(run=run_process)
    for command in (callers, process):
        command.add_argument("shared", type=Path)
        command.add_argument("--encoder", default="onnx-minilm")
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
