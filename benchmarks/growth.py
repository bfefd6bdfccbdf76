"""How cost grows with the world: 10,000, 100,000 and 1,000,000 passages in one run.

usage: growth.py SHARED [--sizes N ...] [--engine NAME ...] [--lucene-million]
                 [--vectors FILE] [--tier T] [--queries N] [--seed N]

Passages are splices of two real ones (the documents of ``SHARED/data/ir``), vectors are perturbed
real ones, both by one seed. Every size gets a dense index of the tier ``auto`` and a lexical index
of passages; queries are judged queries, encoded one at a time. A hybrid search is all that grows
with the world: encode, both candidate lists, both scores completed for their union, fusion.
Reading pages and making snippets cost the same for ten hits at any size, and are left out.

All sizes are asked in turn, query by query, so that other work on the machine meets them alike.
Printed by size: seconds to open both indexes (mapped, pages of the files dropped where the system
allows); what the process came to hold, and the bytes of the files, a passage; and by part the p50
of wall and of CPU milliseconds. The bar is hybrid p50 at the largest size over that at 100,000
<= 1.5. Lucene runs at sizes up to 100,000, above only with ``--lucene-million``.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

if __package__:
    from benchmarks import vectors as sources
else:
    import vectors as sources  # type: ignore[import-not-found, no-redef]
from world_core.analysis import Analyzer
from world_core.encoders.base import Encoder
from world_core.encoders.loading import load
from world_core.fusion import fuse
from world_core.indexes.dense import DenseIndex, write_dense
from world_core.indexes.lexical import LexicalIndex, LexicalWriter
from world_core.ranking import BASE_DEPTH as DEPTH
from world_core.types import Vectors

PARTS = ("encode", "lexical", "dense", "complete", "hybrid")
SETS = ("cacm", "xquad/en")
BAR = 1.5
LUCENE_LIMIT = 100_000


@dataclass
class Size:
    """One size of one engine: where its indexes lie, and what was measured."""

    passages: int
    engine: str
    place: Path
    tier: str
    build_s: float
    open_s: float = 0.0
    grown: float = 0.0
    dense: DenseIndex | None = None
    lexical: LexicalIndex | None = None
    wall: dict[str, list[float]] = field(default_factory=dict)
    cpu: dict[str, list[float]] = field(default_factory=dict)

    @property
    def files(self) -> list[Path]:
        """The files of both indexes."""
        return sorted(path for path in self.place.rglob("*") if path.is_file())

    def line(self) -> str:
        """Return the figures as a line of a table."""
        stored = sum(path.stat().st_size for path in self.files) / self.passages
        parts = " | ".join(
            f"{p50(self.wall[part]):.2f} / {p50(self.cpu[part]):.2f}" for part in PARTS
        )
        return (
            f"| {self.passages:,} | {self.engine} | {self.tier} | {self.build_s:.0f} | "
            f"{self.open_s:.2f} | {self.grown / self.passages:,.0f} | {stored:,.0f} | {parts} |"
        )


def main() -> int:
    """Print a table; the exit code is 1 when the bar is missed."""
    options = parser().parse_args()
    encoder, analyzer = load("onnx-minilm", {}), Analyzer(["en"])
    real = sources.cached(options.vectors or sources.cache_of(encoder))
    texts = sources.queries(options.shared, options.queries, sets=SETS)
    documents = analysed(options.shared, analyzer)
    print(f"{len(real):,} real vectors, {len(documents):,} real passages, {len(texts)} queries")
    titles = ("passages", "engine", "tier", "build s", "open s", "grown B", "file B", *PARTS)
    print(f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}", flush=True)
    met = True
    with tempfile.TemporaryDirectory() as temporary:
        for engine in options.engine:
            sizes = []
            for count in sorted(options.sizes):
                if engine == "lucene" and count > LUCENE_LIMIT and not options.lucene_million:
                    continue
                size = Size(count, engine, Path(temporary) / f"{engine}-{count}", options.tier, 0.0)
                rows = sources.perturbed(real, count, options.seed)
                write(size, analyzer.fields, rows, spliced(documents, count, options.seed))
                sizes.append(size)
            measure(sizes, texts, analyzer, encoder)
            met = report(sizes) and met
    return int(not met)


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    found = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    found.add_argument("shared", type=Path)
    found.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    found.add_argument("--engine", nargs="+", choices=("tantivy", "lucene"), default=["tantivy"])
    found.add_argument("--lucene-million", action="store_true")
    found.add_argument("--vectors", type=Path, help="file of a vector cache")
    found.add_argument("--tier", default="auto")
    found.add_argument("--queries", type=int, default=300)
    found.add_argument("--seed", type=int, default=1)
    return found


def report(sizes: Sequence[Size]) -> bool:
    """Print the table of an engine; say whether the bar is met where it can be told."""
    for size in sizes:
        print(size.line(), flush=True)
    base = next((size for size in sizes if size.passages == LUCENE_LIMIT), None)
    if base is None or sizes[-1] is base:
        return True
    wall, cpu = (
        p50(getattr(sizes[-1], kind)["hybrid"]) / p50(getattr(base, kind)["hybrid"])
        for kind in ("wall", "cpu")
    )
    print(
        f"{base.engine}: hybrid p50 at {sizes[-1].passages:,} over {base.passages:,}: "
        f"{wall:.2f} (bar {BAR}), of CPU {cpu:.2f}"
    )
    return wall <= BAR


def p50(seconds: Sequence[float]) -> float:
    """Return the median in milliseconds."""
    return float(np.median(seconds)) * 1000


def analysed(shared: Path, analyzer: Analyzer) -> list[dict[str, list[str]]]:
    """Return the terms by field of every real document."""
    found = []
    for name in SETS:
        for line in (shared / "data/ir" / name / "docs.jsonl").read_text("utf-8").splitlines():
            row = json.loads(line)
            found.append(analyzer.document(row.get("title") or "", row["text"], "en"))
    return found


def spliced(
    documents: Sequence[dict[str, list[str]]], count: int, seed: int
) -> Iterator[dict[str, list[str]]]:
    """Yield ``count`` passages: the real ones, then each the head of one and the tail of another.

    Both parts are real text, so terms keep their frequencies and neighbours. One term in each is
    its own, as names and numbers are, so that the vocabulary grows with the world.
    """
    source = np.random.default_rng(seed)
    for number in range(count):
        if number < len(documents):
            yield documents[number]
            continue
        head, tail = (documents[int(place)] for place in source.integers(0, len(documents), 2))
        share = source.random()
        made = {}
        for name in head.keys() | tail.keys():
            first, last = head.get(name, []), tail.get(name, [])
            made[name] = first[: round(len(first) * share)] + last[round(len(last) * share) :]
        made["body"] = [*made.get("body", []), f"own{number}"]
        yield made


def write(
    size: Size,
    fields: Sequence[str],
    rows: Iterator[Vectors],
    passages: Iterator[dict[str, list[str]]],
) -> None:
    """Write both indexes of a size."""
    started = time.perf_counter()
    dense = size.place / "dense"
    dense.mkdir(parents=True)
    table = np.concatenate(list(rows))
    numbers = np.arange(len(table), dtype=np.int64)
    size.tier = write_dense(dense, table, numbers, tier=size.tier).kind
    del table
    gc.collect()
    with lexical_writer(size.engine, size.place / "lexical", fields) as writer:
        for passage in passages:
            writer.add(passage)
    size.build_s = time.perf_counter() - started


def measure(
    sizes: Sequence[Size], texts: Sequence[str], analyzer: Analyzer, encoder: Encoder
) -> None:
    """Open every size and ask it every query to warm up; then ask all of them in turn."""
    for size in sizes:
        for path in size.files:
            forget(path)
        before, started = resident(), time.perf_counter()
        size.dense = DenseIndex.open(size.place / "dense", kind=size.tier)
        size.lexical = opened(size.engine, size.place / "lexical")
        size.open_s = time.perf_counter() - started
        for text in texts:
            search(size, text, analyzer, encoder)
        size.grown = resident() - before
        size.wall, size.cpu = {}, {}
    for text in texts:
        for size in sizes:
            search(size, text, analyzer, encoder)
    for size in sizes:
        if size.dense is not None and size.lexical is not None:
            size.dense.close()
            size.lexical.close()


def search(size: Size, text: str, analyzer: Analyzer, encoder: Encoder) -> None:
    """Do a hybrid search and keep the seconds of its parts."""
    dense, lexical = size.dense, size.lexical
    if dense is None or lexical is None:
        raise ValueError(f"the size {size.passages} is not open")
    marks = [(time.perf_counter(), time.process_time())]

    def mark() -> None:
        marks.append((time.perf_counter(), time.process_time()))

    vector = encoder.encode_queries([text])[0]
    mark()
    query = analyzer.query(text)
    first = lexical.search(query, DEPTH).units
    mark()
    second = dense.search(vector, DEPTH).units
    mark()
    union = np.union1d(first, second)
    fuse(lexical.score(query, union), dense.score(vector, union))
    mark()
    for column, kept in enumerate((size.wall, size.cpu)):
        times = [both[column] for both in marks]
        spans = [*np.diff(times).tolist(), times[-1] - times[0]]
        for part, span in zip(PARTS, spans, strict=True):
            kept.setdefault(part, []).append(span)


def lexical_writer(engine: str, folder: Path, fields: Sequence[str]) -> LexicalWriter:
    """Return a writer of an engine."""
    if engine == "lucene":
        from world_core.indexes.lucene import LuceneWriter

        return LuceneWriter(folder, fields)
    from world_core.indexes.tantivy import TantivyWriter

    return TantivyWriter(folder, fields)


def opened(engine: str, folder: Path) -> LexicalIndex:
    """Return the open index of an engine."""
    if engine == "lucene":
        from world_core.indexes.lucene import LuceneIndex

        return LuceneIndex.open(folder)
    from world_core.indexes.tantivy import TantivyIndex

    return TantivyIndex.open(folder)


def forget(path: Path) -> None:
    """Drop a file's pages from the system's memory, so that opening reads it anew."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def resident() -> int:
    """Return the bytes of this process in memory, mapped files included."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    sys.exit(main())
