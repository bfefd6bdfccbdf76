"""Anchor texts: what the links that lead to a page call it, for each version of the page.

A version carries the texts of links that stood when it was captured, and of no later ones, so that
nothing captured after a date changes what is found at that date. A text counts once a host. Links
of a page to itself add nothing, and neither does navigation: one text that more than half of a
host's pages of that time give to one target.
"""

from __future__ import annotations

import shutil
from array import array
from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from heapq import merge
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from corpus_builder.rows import read_rows, write_rows
from corpus_builder.snapshot import read_pages
from world_core import urls
from world_core.analysis import Analyzer
from world_core.types import Instant, PageRecord

RULES = 1
"""Raised when equal pages come to other anchors."""

TEXTS = 64
"""Texts of a version: those of most hosts first, then of most pages, then by the text itself."""

TERMS = 24
"""Terms of a text; what comes after them is no name of a page."""

NAVIGATION_PAGES = 5
"""Pages of a host that must agree on a text and its target before it can be navigation."""

RUN = 500_000
"""Links sorted in memory at once."""

MEMORY = 1 << 17
"""Addresses and texts remembered, since navigation repeats them."""


class Anchor(NamedTuple):
    """A link by numbers of pages, in the order of the files; ``text`` is its terms joined."""

    target: int
    text: str
    host: str
    source: int
    begin: Instant
    end: Instant


class _Graph:
    """What must be known of all pages before a link can be read: numbers, times and hosts."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.begins: list[array[int]] = []
        self.host_begins: dict[str, list[Instant]] = defaultdict(list)

    def add(self, page: PageRecord) -> None:
        number = len(self.begins)
        self.numbers.update(dict.fromkeys((page.key, *page.aliases), number))
        self.begins.append(array("q", [version.valid_from for version in page.versions]))
        insort(self.host_begins[urls.host_of(page.key)], page.versions[0].valid_from)

    def pages_of(self, host: str, moment: Instant) -> int:
        """Return how many pages of the host were captured by then."""
        return bisect_right(self.host_begins[host], moment)


def version_anchors(
    pages: Sequence[Path], folder: Path, analyzer: Analyzer
) -> Generator[list[str], None, None]:
    """Yield the terms of each version's anchor field, in the order of the versions.

    Args:
        pages: the blocks of the snapshot, read twice.
        folder: does not exist; sorted links lie there until the iterator ends or is closed.
        analyzer: makes terms of texts.

    Raises:
        OSError: a file cannot be read or written.
    """
    graph = _Graph()
    for page in read_pages(pages):
        graph.add(page)
    folder.mkdir()
    try:
        runs = _runs(_links(read_pages(pages), graph.numbers, analyzer))
        files = [_write(folder, number, run) for number, run in enumerate(runs)]
        links = merge(*map(_read, files))
        link = next(links, None)
        for number, begins in enumerate(graph.begins):
            found: list[Anchor] = []
            while link is not None and link.target == number:
                found.append(link)
                link = next(links, None)
            for moment in begins:
                yield texts_at(found, moment, graph.pages_of)
    finally:
        shutil.rmtree(folder)


def texts_at(
    links: Iterable[Anchor], moment: Instant, pages_of: Callable[[str, Instant], int]
) -> list[str]:
    """Return the terms of the texts that these links of one page bore at a moment.

    ``pages_of(host, moment)`` is the number of the host's pages of that time.
    """
    sources: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for link in links:
        if link.begin <= moment < link.end:
            sources[link.text][link.host].add(link.source)
    kept: list[tuple[int, int, str]] = []
    for text, hosts in sources.items():
        counts = [
            len(found)
            for host, found in hosts.items()
            if len(found) < NAVIGATION_PAGES or 2 * len(found) <= pages_of(host, moment)
        ]
        if counts:
            kept.append((-len(counts), -sum(counts), text))
    each = ([text] * -hosts for hosts, _, text in sorted(kept))
    chosen = list(chain.from_iterable(each))[:TEXTS]
    return " ".join(chosen).split()


def joined(
    units: Iterable[Mapping[str, Sequence[str]]],
    versions: Iterable[int],
    anchors: Iterable[Sequence[str]],
) -> Iterator[dict[str, Sequence[str]]]:
    """Yield each unit's terms with the field ``anchor`` of its version; versions ascend."""
    texts = enumerate(anchors)
    number = -1
    text: Sequence[str] = ()
    for unit, version in zip(units, versions, strict=False):  # versions may go on
        while number < version:
            number, text = next(texts)
        yield {**unit, "anchor": text}


def _links(
    pages: Iterable[PageRecord], numbers: Mapping[str, int], analyzer: Analyzer
) -> Iterator[Anchor]:
    target_of = lru_cache(MEMORY)(lambda url: numbers.get(urls.canonical(url), -1))
    terms_of = lru_cache(MEMORY)(
        lambda text: " ".join(token.term for token in analyzer.tokens(text)[:TERMS])
    )
    for source, page in enumerate(pages):
        host = urls.host_of(page.key)
        for version in page.versions:
            found = {(target_of(link.url), terms_of(link.text)) for link in version.links}
            for target, text in found:
                if target not in (-1, source) and text:
                    yield Anchor(target, text, host, source, version.valid_from, version.valid_to)


def _runs(links: Iterable[Anchor]) -> Iterator[list[Anchor]]:
    run: list[Anchor] = []
    for link in links:
        run.append(link)
        if len(run) >= RUN:
            yield sorted(run)
            run = []
    yield sorted(run)


def _write(folder: Path, number: int, run: Iterable[Anchor]) -> Path:
    path = folder / f"links-{number:05d}.jsonl.zst"
    write_rows(path, (list(link) for link in run))
    return path


def _read(path: Path) -> Iterator[Anchor]:
    for row in read_rows(path):
        yield Anchor(*row)
