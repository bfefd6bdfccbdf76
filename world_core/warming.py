"""Warming a world up before it is served: searches that its own titles ask.

Java compiles what runs often: Lucene's first hundreds of searches cost two to three times as much
as later ones. The files of any index come into memory by being read.
"""

from __future__ import annotations

from world_core.generation import Generation
from world_core.lexical_asking import LexicalAsking
from world_core.ranking import BASE_DEPTH

QUERIES = 300
"""Searches of a warm-up, one a page, spread evenly over the pages."""

WORDS = 8
"""Words of a title that are asked."""


def warm_up(generation: Generation, queries: int = QUERIES) -> int:
    """Ask the lexical index for titles, and to score what it finds; return how many were asked.

    The same world is asked the same, and nothing of it is kept but what is remembered anyway.

    Raises:
        IndexFailedError, PageStoreError: a part failed, as it would have for the first caller.
    """
    view = generation.plain_view
    pages = generation.columns.page_count
    chosen = range(0, pages, max(1, pages // queries)) if queries else range(0)
    versions = [version for page in chosen if (version := view.version_of(page)) is not None]
    asking = LexicalAsking(generation)
    allowed = view.allowed(generation.manifest.lexical.unit)
    asked = 0
    for meta in generation.pages.metas(versions[:queries]):
        query = asking.query(" ".join(meta.title.split()[:WORDS]), view)
        if not query.is_empty:
            found = generation.lexical.search(query, BASE_DEPTH, allowed)
            generation.lexical.score(query, found.units)
            asked += 1
    return asked
