"""Queries that a finished world is asked before it is published, and must answer ever after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from corpus_builder.errors import PublishError
from world_core.engine import Engine
from world_core.generation import Generation
from world_core.manifest import Canary
from world_core.types import Outcome, SearchCall

COUNT = 5
_TRIED = 50
_DEPTH = 10
_WORDS = 12


def ask_canaries(generation: Generation, queries: Sequence[str]) -> tuple[Canary, ...]:
    """Ask the queries, or titles spread over the world when there are none.

    Raises:
        PublishError: a query finds nothing, or a world with titled pages answers no title.
        WorldError: a part of the world failed.
    """
    engine = Engine(generation)
    if queries:
        canaries = tuple(_ask(engine, query) for query in queries)
        for canary in canaries:
            if not canary.page_ids:
                raise PublishError(
                    f"The canary query {canary.query!r} finds nothing in the finished world.",
                    hint="Change the canaries of the recipe.",
                )
        return canaries
    drawn: list[Canary] = []
    titles = list(_titles(generation))
    for title in titles:
        canary = _ask(engine, title)
        if canary.page_ids:
            drawn.append(canary)
        if len(drawn) == COUNT:
            break
    if titles and not drawn:
        raise PublishError(
            f"The finished world does not find a page by its own title {titles[0]!r}.",
            hint="Check the settings of [lexical] in the recipe.",
        )
    return tuple(drawn)


def _ask(engine: Engine, query: str) -> Canary:
    answer = engine.search(SearchCall(query, count=_DEPTH, rerank=False))
    found = answer.hits if answer.outcome is Outcome.OK else ()
    return Canary(query=query, page_ids=tuple(hit.meta.page_id for hit in found))


def _titles(generation: Generation) -> Iterator[str]:
    """Yield searchable titles of visible versions, evenly spread over the pages."""
    pages = generation.columns.page_count
    step = max(1, pages // _TRIED)
    seen = set()
    for page in range(0, pages, step):
        version = generation.plain_view.version_of(page)
        if version is None:
            continue
        meta = generation.pages.metas([version])[0]
        title = " ".join(meta.title.split()[:_WORDS])
        if title not in seen and generation.analyzer.tokens(title):
            seen.add(title)
            yield title
