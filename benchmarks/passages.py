"""Vectors of passages against vectors of openings, on long pages that queries are judged for.

usage: passages.py WORLD QUERIES.jsonl QRELS.tsv [--words 2000] [--passages 4000] [--tokens 500]
                   [--longest 80] [--seed N]

Takes the pages of a published world that a query is judged for and that have over ``--words``
words, and other long pages drawn by a seed until there are ``--passages`` passages. Each page is
ranked once by its best passage and once by the vector of its title and first ``--tokens`` tokens
(MiniLM has places for 512), both from MiniLM. Pages of more than ``--longest`` passages are left
out and counted. Printed: nDCG@10 and the share of targets among the first ten, by both.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

if __package__:
    from benchmarks.ranking import current, read_judged
else:
    from ranking import current, read_judged  # type: ignore[import-not-found, no-redef]
from world_core import manifest as manifests
from world_core.cutting import cut
from world_core.encoders.base import Encoder
from world_core.encoders.onnx_minilm import OnnxMiniLm
from world_core.pages import PageStore
from world_core.types import Vectors
from world_core.views import Columns, at_clock

BATCH = 16
TEMPLATE = "{id}"


@dataclass(frozen=True)
class LongPage:
    """A page with the texts of its passages, titles before them, and its opening."""

    page: int
    passages: tuple[str, ...]
    opening: str


@dataclass(frozen=True)
class Parts:
    """The parts of a world that this needs."""

    pages: PageStore
    columns: Columns
    folder: Path

    @classmethod
    def open(cls, folder: Path) -> Parts:
        """Open them."""
        return cls(
            PageStore.open(folder / "pages.sqlite"),
            Columns.open(folder),
            folder,
        )

    def close(self) -> None:
        """Release them."""
        self.pages.close()


def main() -> int:
    """Print the figures; the exit code is 1 when passages are not the better ones."""
    options = parser().parse_args()
    parts = Parts.open(current(options.world))
    judged = read_judged(options.queries, options.qrels, TEMPLATE)
    targets = {
        query: page
        for query, gains in judged.gains.items()
        if query in judged.queries
        for page in (parts.pages.find(key) for key in gains)
        if isinstance(page, int)
    }
    pages = chosen(parts, targets, options)
    parts.close()
    known = {page.page for page in pages}
    asked = {query: page for query, page in targets.items() if page in known}
    print(
        f"{len(asked)} queries for {len(set(asked.values()))} long pages among {len(pages)}, "
        f"{sum(len(page.passages) for page in pages):,} passages",
        flush=True,
    )
    queries = encoder_of(0).encode_queries([judged.queries[query] for query in asked])
    by_passage = np.stack(list(best_passages(pages, queries)))
    openings = encoded(encoder_of(options.tokens), [page.opening for page in pages])
    numbers = np.array([page.page for page in pages])
    relevant = [int(np.flatnonzero(numbers == page)[0]) for page in asked.values()]
    figures = {"passages": by_passage.T, f"first {options.tokens} tokens": queries @ openings.T}
    means = []
    for name, scores in figures.items():
        ranks = [
            1 + int((row > row[place]).sum()) for row, place in zip(scores, relevant, strict=True)
        ]
        gains = [1 / math.log2(rank + 1) if rank <= 10 else 0.0 for rank in ranks]
        means.append(float(np.mean(gains)))
        found = float(np.mean([rank <= 10 for rank in ranks]))
        print(f"{name:18} nDCG@10 {means[-1]:.4f}  among ten {found:.4f}")
    return int(means[0] <= means[1])


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    found = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    found.add_argument("world", type=Path)
    found.add_argument("queries", type=Path)
    found.add_argument("qrels", type=Path)
    found.add_argument("--words", type=int, default=2000)
    found.add_argument("--passages", type=int, default=4000)
    found.add_argument("--tokens", type=int, default=500)
    found.add_argument("--longest", type=int, default=80)
    found.add_argument("--seed", type=int, default=1)
    return found


def chosen(parts: Parts, targets: Mapping[str, int], options: argparse.Namespace) -> list[LongPage]:
    """Return the long target pages, then long pages by lot until there are enough passages."""
    wanted = sorted(set(targets.values()))
    others = sorted(set(range(parts.columns.page_count)) - set(wanted))
    random.Random(options.seed).shuffle(others)
    view = at_clock(parts.columns, manifests.read(parts.folder).clock)
    pages: list[LongPage] = []
    count = left_out = 0
    for place, page in enumerate([*wanted, *others]):
        if place >= len(wanted) and count >= options.passages:
            break
        version = view.version_of(page)
        if version is None:
            continue
        stored = parts.pages.read(version)
        if len(stored.text.split()) <= options.words:
            continue
        spans = cut(stored.text)
        if len(spans) > options.longest:
            left_out += place < len(wanted)
            continue
        title = f"{stored.meta.title}\n" if stored.meta.title else ""
        texts = tuple(title + stored.text[span.start : span.end] for span in spans)
        pages.append(LongPage(page, texts, title + stored.text[:20_000]))
        count += len(texts)
    print(f"{left_out} target pages of more than {options.longest} passages left out")
    return pages


def encoder_of(tokens: int) -> OnnxMiniLm:
    """Return MiniLM, reading so many tokens of a text, or as many as usual for 0."""
    encoder = OnnxMiniLm.load({}, 1)
    if tokens:
        encoder._tokenizer.enable_truncation(tokens)  # noqa: SLF001 - a limit no world may have
    return encoder


def best_passages(pages: Sequence[LongPage], queries: Vectors) -> Iterator[Vectors]:
    """Yield for each page its best cosine with each query, shape (queries,)."""
    encoder = encoder_of(0)
    for done, page in enumerate(pages, start=1):
        yield (encoded(encoder, page.passages) @ queries.T).max(axis=0)
        if done % 50 == 0:
            print(f"{done} of {len(pages)} pages", file=sys.stderr, flush=True)


def encoded(encoder: Encoder, texts: Sequence[str]) -> Vectors:
    """Return the vectors of texts, those of like length encoded together."""
    order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
    found = np.empty((len(texts), encoder.dim), np.float32)
    for start in range(0, len(order), BATCH):
        some = order[start : start + BATCH]
        found[some] = encoder.encode_passages([texts[place] for place in some])
    return found


if __name__ == "__main__":
    sys.exit(main())
