"""Recall of the approximate dense tiers against exact search, and what a query costs.

usage: recall.py SHARED [--vectors FILE] [--rows N ...] [--queries N] [--tier NAME ...]

Vectors are real: those of a vector cache (``--vectors``; MiniLM's by default), and where
more rows are asked for than it has, perturbed copies of them. Queries are judged queries of
``SHARED``, encoded. Every tier is asked at its defaults. Recall@10 is the share of the exact best
ten, by the integer codes, that a search for ten brings; recall@100 likewise. CPU milliseconds are
those of the process, one query at a time. The bar for approximate tiers is 0.99 at ten.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

if __package__:
    from benchmarks import vectors as sources
else:
    import vectors as sources  # type: ignore[import-not-found, no-redef]
from world_core.encoders.loading import load
from world_core.indexes.dense import DenseIndex, write_dense
from world_core.indexes.tiers import KINDS
from world_core.types import Vectors

BAR = 0.99


@dataclass(frozen=True)
class Figures:
    """What was measured of one tier."""

    tier: str
    rows: int
    recall_10: float
    recall_100: float
    cpu_ms: float
    build_cpu_s: float
    index_bytes: float

    def line(self) -> str:
        """Return the figures as a line of a table."""
        return (
            f"| {self.tier} | {self.rows:,} | {self.recall_10:.4f} | {self.recall_100:.4f} | "
            f"{self.cpu_ms:.2f} | {self.build_cpu_s:.0f} | {self.index_bytes:,.0f} |"
        )


def measure(rows: Vectors, queries: Vectors, tiers: Sequence[str], place: Path) -> list[Figures]:
    """Build each tier over the rows, ask it, and compare it with the exact tier."""
    exact = _built(rows, "flat", place)[0]
    truth = {k: [exact.search(query, k).units for query in queries] for k in (10, 100)}
    measured = []
    for tier in tiers:
        index, build, size = _built(rows, tier, place)
        recall = {}
        for k, expected in truth.items():
            started = time.process_time()
            found = [index.search(query, k).units for query in queries]
            cost = time.process_time() - started
            shares = [
                len(np.intersect1d(a, b)) / len(b) for a, b in zip(found, expected, strict=True)
            ]
            recall[k] = (float(np.mean(shares)), cost / len(queries) * 1000)
        measured.append(
            Figures(tier, len(rows), recall[10][0], recall[100][0], recall[10][1], build, size)
        )
        index.close()
    exact.close()
    return measured


def main() -> int:
    """Print a table; the exit code is 1 when a tier is below the bar."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shared", type=Path)
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--rows", type=int, nargs="+", default=[0], help="0: the real ones only")
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--tier", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    encoder = load("onnx-minilm", {})
    real = sources.cached(options.vectors or sources.cache_of(encoder))
    asked = encoder.encode_queries(sources.queries(options.shared, options.queries))
    print(f"{len(real):,} real vectors of {real.shape[1]} components, {len(asked)} queries")
    print("| tier | rows | recall@10 | recall@100 | CPU ms | build CPU s | index bytes a row |")
    print("|---|---|---|---|---|---|---|")
    low = False
    for count in options.rows:
        rows = np.concatenate(list(sources.perturbed(real, count or len(real), options.seed)))
        with tempfile.TemporaryDirectory() as place:
            for tier in options.tier:
                figures = measure(rows, asked, [tier], Path(place))[0]
                print(figures.line(), flush=True)
                low = low or figures.recall_10 < BAR
    return int(low)


def _built(rows: Vectors, tier: str, place: Path) -> tuple[DenseIndex, float, float]:
    """Return the index of a tier, the CPU seconds it took and its bytes a row beside the codes."""
    folder = place / f"{tier}-{len(rows)}"
    folder.mkdir(exist_ok=True)
    started = time.process_time()
    kind = write_dense(folder, rows, np.arange(len(rows), dtype=np.int64), tier=tier).kind
    build = time.process_time() - started
    file = folder / "index.faiss"
    size = file.stat().st_size / len(rows) if file.exists() else 0.0
    return DenseIndex.open(folder, kind=kind), build, size


if __name__ == "__main__":
    sys.exit(main())
