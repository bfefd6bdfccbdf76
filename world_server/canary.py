"""Canary queries: the proof that encoder, indexes and page store work together."""

from __future__ import annotations

from collections.abc import Sequence

from world_core.errors import BadWorldError
from world_core.manifest import Canary, Manifest
from world_core.types import FetchAnswer, FetchCall, Outcome, SearchAnswer, SearchCall
from world_server.engine_client import BlockingEngine


def calls(manifest: Manifest) -> list[SearchCall]:
    """Return the searches of a world's canary queries, in order, and one for the reranker.

    What they find is not to depend on the reranker, which the operator may choose; that it works is
    seen by asking the first query once more with it.
    """
    searches = [
        SearchCall(query=canary.query, count=max(1, len(canary.page_ids)), rerank=False)
        for canary in manifest.canaries
    ]
    return searches + [SearchCall(call.query, count=1) for call in searches[:1]]


def page_call(answers: Sequence[SearchAnswer]) -> FetchCall | None:
    """Return the fetch of the first page found, so that the page store is asked too."""
    return next((FetchCall(answer.hits[0].meta.url) for answer in answers if answer.hits), None)


def fault(manifest: Manifest, answers: Sequence[SearchAnswer], page: FetchAnswer | None) -> str:
    """Return what is wrong with the answers in one sentence, "" when they are as they must be.

    The page that was first when the world was built must be among the hits, and as many must be
    found. The order is not compared: on another family of processors the encoder's vectors may
    differ in their last bits, and two pages that nearly tie change places. Answers beyond those of
    the canary queries need only be there.
    """
    for canary, answer in zip(manifest.canaries, answers, strict=False):
        found = tuple(hit.meta.page_id for hit in answer.hits)
        if len(found) != len(canary.page_ids) or not set(canary.page_ids[:1]) <= set(found):
            return _mismatch(canary, found)
    if page is not None and page.outcome is not Outcome.OK:
        return f"The first page found cannot be fetched: {page.outcome.value}."
    return ""


def prove(engine: BlockingEngine, manifest: Manifest) -> None:
    """Ask the canary queries of a world that was just opened.

    Raises:
        BadWorldError: the answers are not those the manifest holds.
        WorldError: a part failed.
    """
    answers = engine.search_batch(calls(manifest))
    call = page_call(answers)
    wrong = fault(manifest, answers, engine.fetch(call) if call is not None else None)
    if wrong:
        raise BadWorldError(
            f"World {manifest.name}: {wrong}", hint="Build the world again, or unpack it anew."
        )


def _mismatch(canary: Canary, found: tuple[str, ...]) -> str:
    return (
        f"The canary query {canary.query[:80]!a} brought up {_short(found)} instead of "
        f"{_short(canary.page_ids)}."
    )


def _short(page_ids: tuple[str, ...]) -> str:
    return "[" + ", ".join(page_ids[:3]) + (", ..." if len(page_ids) > 3 else "") + "]"
