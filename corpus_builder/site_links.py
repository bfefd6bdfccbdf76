"""Which pages of its host each root and section start leads to, best known first.

A page is known by how many pages of its host had linked to it when the start was captured: links
that were captured later count for later versions only, so no date shows what came after it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from world_core import urls
from world_core.sitelinks import CANDIDATES, is_start
from world_core.types import PageRecord, VersionRecord

MEMORY = 1 << 17
"""Addresses remembered, since navigation repeats them."""


class PageNumbers:
    """The number of each page by its key and aliases, and its host."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._hosts: list[str] = []

    def add(self, page: PageRecord) -> None:
        """Take the next page."""
        self._numbers.update(dict.fromkeys((page.key, *page.aliases), len(self._hosts)))
        self._hosts.append(urls.host_of(page.key))

    def find(self, url: str) -> int:
        """Return the page of an address, -1 if there is none."""
        return self._numbers.get(urls.canonical(url), -1)

    def host(self, page: int) -> str:
        """Return the host of a page."""
        return self._hosts[page]


def choose_sitelinks(pages: Iterable[PageRecord], numbers: PageNumbers) -> Mapping[int, list[int]]:
    """Return the target pages of each version that is a start, by version number.

    Memory grows by eight bytes for each pair of a page and another of its host that it links to.
    Of pages that are known equally well, the one that the start names first comes first.
    """
    find = lru_cache(MEMORY)(numbers.find)
    known: dict[int, array[int]] = {}
    starts: list[tuple[int, int, list[int]]] = []
    version = 0
    for source, page in enumerate(pages):
        host = numbers.host(source)
        wanted = is_start(page.key)
        met: set[int] = set()
        for record in page.versions:
            targets = _targets(record, source, host, find, numbers)
            for target in targets:
                if target not in met:
                    met.add(target)
                    known.setdefault(target, array("q")).append(record.valid_from)
            if wanted and targets:
                starts.append((version, record.valid_from, targets))
            version += 1
    # Pages come in the order of their ids, so times come in none.
    for target in {target for _, _, targets in starts for target in targets}:
        known[target] = array("q", sorted(known[target]))
    return {
        number: sorted(targets, key=lambda target: -bisect_right(known[target], moment))[
            :CANDIDATES
        ]
        for number, moment, targets in starts
    }


def _targets(
    record: VersionRecord,
    source: int,
    host: str,
    find: Callable[[str], int],
    numbers: PageNumbers,
) -> list[int]:
    """Return the other pages of the host that a version links to, once each, in its order."""
    found = dict.fromkeys(find(link.url) for link in record.links)
    return [page for page in found if page not in (-1, source) and numbers.host(page) == host]
