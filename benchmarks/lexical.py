"""Speed of the lexical engines on the text files of a folder.

usage: lexical.py FOLDER [--units N] [--queries N] [--threads N ...] [--engine NAME ...]

Units are windows of about 1,000 characters of the folder's .txt, .md, .rst, .html and .py files;
queries are 3 to 7 words in a row out of random units. Figures are CPU and wall milliseconds a call
after a warm-up, with 10 and 100 hits, scoring of 200 given units, and filters kept and new.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from world_core.analysis import Analyzer
from world_core.indexes.lexical import LexicalIndex
from world_core.indexes.lucene import LuceneIndex, LuceneWriter
from world_core.indexes.tantivy import TantivyIndex, TantivyWriter
from world_core.types import Bitmap, LexicalQuery

SUFFIXES = {".txt", ".md", ".rst", ".html", ".py"}
WINDOW = 1000
ENGINES: dict[str, tuple[Callable[..., LexicalIndex], Callable[..., LuceneWriter | TantivyWriter]]]
ENGINES = {
    "lucene": (LuceneIndex.open, LuceneWriter),
    "tantivy": (TantivyIndex.open, TantivyWriter),
}


def main() -> int:
    """Index and ask with each engine, and print a line a figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--units", type=int, default=20_000)
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 8])
    parser.add_argument("--engine", nargs="+", choices=sorted(ENGINES), default=sorted(ENGINES))
    options = parser.parse_args()
    texts = list(windows(options.folder, options.units))
    analyzer = Analyzer(["en"])
    units = [analyzer.document("", text, "en") for text in texts]
    source = random.Random(1)
    queries = [analyzer.query(words(source, texts)) for _ in range(options.queries)]
    print(f"{len(units)} units, {sum(map(len, texts)) / 1e6:.1f} M characters")
    for name in options.engine:
        with tempfile.TemporaryDirectory() as place:
            measure(
                name,
                Path(place) / "index",
                units,
                queries,
                analyzer=analyzer,
                threads=options.threads,
            )
    return 0


def windows(folder: Path, limit: int) -> Iterator[str]:
    """Yield windows of the folder's texts, files in order of name."""
    left = limit
    for path in sorted(folder.rglob("*")):
        if path.suffix in SUFFIXES and path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace")
            for start in range(0, len(text), WINDOW):
                if left == 0:
                    return
                left -= 1
                yield text[start : start + WINDOW]


def words(source: random.Random, texts: Sequence[str]) -> str:
    """Return some words in a row of a random text."""
    found = source.choice(texts).split()
    start = source.randrange(max(1, len(found) - 3))
    return " ".join(found[start : start + source.randint(3, 7)])


def measure(
    name: str,
    folder: Path,
    units: Sequence[dict[str, list[str]]],
    queries: Sequence[LexicalQuery],
    *,
    analyzer: Analyzer,
    threads: Sequence[int],
) -> None:
    """Print the figures of one engine."""
    opened, writer_class = ENGINES[name]
    begun, cpu = time.perf_counter(), time.process_time()
    with writer_class(folder, analyzer.fields) as writer:
        for unit in units:
            writer.add(unit)
    wall, cpu = time.perf_counter() - begun, time.process_time() - cpu
    size = sum(file.stat().st_size for file in folder.iterdir())
    index = opened(folder)
    print(f"{index.engine}: {len(units) / wall:,.0f} units/s wall, {len(units) / cpu:,.0f} a CPU-s")
    print(f"  {size / 1e6:.1f} MB")
    for query in queries:
        index.search(query, 100)
    ways = {
        "search 10": lambda query: index.search(query, 10),
        "search 100": lambda query: index.search(query, 100),
        "score 200": scorer(index, 200),
        "search 100, half allowed": searcher(index, 0.5, keep=True),
        "search 100, 1 % allowed": searcher(index, 0.01, keep=True),
        "search 100, half allowed, new filter": searcher(index, 0.5, keep=False),
    }
    for label, ask in ways.items():
        timed(f"  {label}", ask, queries, 1)
    for count in threads:
        timed(f"  search 100 from {count} threads", ways["search 100"], queries, count)
    index.close()


def scorer(index: LexicalIndex, size: int) -> Callable[[LexicalQuery], object]:
    """Return a call that scores as many random units."""
    units = np.sort(np.random.default_rng(2).choice(index.count, size, replace=False))
    return lambda query: index.score(query, units)


def searcher(index: LexicalIndex, share: float, *, keep: bool) -> Callable[[LexicalQuery], object]:
    """Return a filtered search, with one bitmap or with a new one each time."""
    source = np.random.default_rng(3)
    kept: Bitmap = source.random(index.count) < share

    def search(query: LexicalQuery) -> object:
        if not keep:
            kept[source.integers(index.count)] ^= True
        return index.search(query, 100, kept)

    return search


def timed(
    label: str,
    ask: Callable[[LexicalQuery], object],
    queries: Sequence[LexicalQuery],
    threads: int,
) -> None:
    """Print what a call costs."""
    with ThreadPoolExecutor(threads) as pool:
        begun, cpu = time.perf_counter(), time.process_time()
        list(pool.map(ask, queries))
        wall, cpu = time.perf_counter() - begun, time.process_time() - cpu
    calls = len(queries)
    print(
        f"{label}: {cpu / calls * 1e3:.2f} ms CPU, {wall / calls * 1e3:.2f} ms wall, "
        f"{calls / wall:,.0f} calls/s"
    )


if __name__ == "__main__":
    sys.exit(main())
