"""The native routes: ``/v1/search``, ``/v1/search/batch`` and ``/v1/fetch``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from world_client import wire
from world_core.types import FetchAnswer, Hit, Mode, Outcome, SearchAnswer, SearchCall, Span
from world_server.dialects import times
from world_server.dialects.jsonbytes import json_reply
from world_server.errors import BadFieldError
from world_server.exchange import Reply, Request
from world_server.http_body import parse_json
from world_server.problems import Problem
from world_server.service import Service

_Model = TypeVar("_Model", bound=BaseModel)


async def search(service: Service, request: Request) -> Reply:
    """Answer one search."""
    wanted = _validated(wire.SearchRequest, request)
    call = _call(wanted, "")
    answers = await service.search(request, lambda _manifest: [call])
    reply = json_reply(_search_answer(wanted, answers[0]), outcome=answers[0].outcome.value)
    return _marked(reply, answers)


async def search_batch(service: Service, request: Request) -> Reply:
    """Answer several searches in order, each as if it had been asked alone."""
    wanted = _validated(wire.SearchBatchRequest, request).searches
    calls = [_call(one, f"searches.{place}.") for place, one in enumerate(wanted)]
    answers = await service.search(request, lambda _manifest: calls)
    bodies = [_search_answer(one, answer) for one, answer in zip(wanted, answers, strict=True)]
    return _marked(json_reply({"answers": bodies}), answers)


async def fetch(service: Service, request: Request) -> Reply:
    """Return a page, or the outcome that there is none."""
    wanted = _validated(wire.FetchRequest, request)
    answer = await service.fetch(request, wanted.url)
    return json_reply(_fetch_answer(answer), outcome=shown_outcome(answer).value)


def render(problem: Problem, _request: Request) -> Reply:
    """Return the problem as a ``ProblemResponse``."""
    body = {
        "outcome": problem.outcome.value,
        "code": problem.code,
        "message": problem.message,
        "hint": problem.hint,
        "retryable": problem.retryable,
        "trainable": problem.trainable,
    }
    return json_reply(body, status=problem.status)


def shown_outcome(answer: FetchAnswer) -> Outcome:
    """Return the outcome of a fetch as an agent may see it: what is hidden is not in the world."""
    if answer.outcome in (Outcome.OK, Outcome.DEAD_LINK):
        return answer.outcome
    return Outcome.NOT_IN_WORLD


def _validated(kind: type[_Model], request: Request) -> _Model:
    value = parse_json(request.body)
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(str(step) for step in first["loc"])
        raise BadFieldError(
            f"{place or 'The body'}: {first['msg']} (found {_shown(first['input'])}).",
            field=place,
            hint="The schema is at /openapi.json.",
        ) from error


def _shown(value: object) -> str:
    """Return a value for a message: short, whatever was sent; containers by their type alone."""
    if value is None or isinstance(value, str | int | float):
        return repr(value)[:80]
    return f"a {type(value).__name__}"


def _call(wanted: wire.SearchRequest, prefix: str) -> SearchCall:
    if not wanted.query.strip():
        raise BadFieldError(f"{prefix}query: is blank.", field=f"{prefix}query")
    instants = {}
    for name in ("published_from", "published_to"):
        text: str | None = getattr(wanted, name)
        try:
            instants[name] = None if text is None else times.parse(text)
        except (ValueError, OverflowError) as error:
            raise BadFieldError(
                f"{prefix}{name}: {text!r:.80} is no ISO 8601 day or instant.",
                field=f"{prefix}{name}",
                hint="Write 2024-05-01 or 2024-05-01T10:00:00Z.",
            ) from error
    return SearchCall(
        query=wanted.query,
        count=wanted.count,
        offset=wanted.offset,
        mode=Mode(wanted.mode),
        published_from=instants["published_from"],
        published_to=instants["published_to"],
        allow_lexical=wanted.allow_lexical,
        sitelinks=wanted.sitelinks,
        explain=wanted.explain,
    )


def _marked(reply: Reply, answers: Sequence[SearchAnswer]) -> Reply:
    """Return the reply with the mode that an answer was degraded to, if one was."""
    degraded = next((one.degraded for one in answers if one.degraded is not None), None)
    return reply if degraded is None else replace(reply, degraded=degraded.value)


def _search_answer(wanted: wire.SearchRequest, answer: SearchAnswer) -> dict[str, object]:
    hits = [_hit(hit, rank, wanted) for rank, hit in enumerate(answer.hits, wanted.offset + 1)]
    body: dict[str, object] = {
        "outcome": answer.outcome.value,
        "query": wanted.query,
        "hits": hits,
    }
    if answer.degraded is not None:
        body["degraded"] = answer.degraded.value
    return body


def _hit(hit: Hit, rank: int, wanted: wire.SearchRequest) -> dict[str, object]:
    meta = hit.meta
    row: dict[str, object] = {
        "rank": rank,
        "page_id": meta.page_id,
        "url": meta.url,
        "title": meta.title,
        "snippet": hit.snippet,
        "language": meta.language,
        "published": times.iso(meta.published),
        "score": hit.score,
    }
    if wanted.sitelinks:
        row["sitelinks"] = [{"title": link.title, "url": link.url} for link in hit.sitelinks]
    if wanted.explain:
        row["parts"] = _parts(hit)
    return row


def _parts(hit: Hit) -> dict[str, object]:
    parts, why = hit.parts, hit.explanation
    row: dict[str, object] = {
        "lexical": parts.lexical,
        "dense": parts.dense,
        "lexical_rank": parts.lexical_rank,
        "dense_rank": parts.dense_rank,
        "sparse": parts.sparse,
        "sparse_rank": parts.sparse_rank,
        "rerank": parts.rerank,
    }
    if why is not None:
        row |= {
            "lexical_share": why.lexical,
            "dense_share": why.dense,
            "sparse_share": why.sparse,
            "passage": _range(why.passage),
            "dense_passage": _range(why.dense_passage),
        }
    return row


def _range(span: Span | None) -> dict[str, int] | None:
    return None if span is None else {"start": span.start, "end": span.end}


def _fetch_answer(answer: FetchAnswer) -> dict[str, object]:
    outcome = shown_outcome(answer)
    body: dict[str, object] = {"outcome": outcome.value, "url": answer.url}
    if outcome is Outcome.DEAD_LINK:
        body["status"] = answer.status
    version = answer.version
    if outcome is Outcome.OK and version is not None:
        meta = version.meta
        body |= {
            "page_id": meta.page_id,
            "title": meta.title,
            "text": version.text,
            "language": meta.language,
            "published": times.iso(meta.published),
            "modified": times.iso(meta.modified),
            "valid_from": times.iso(meta.valid_from),
            "links": version.links,  # the writer makes objects of them, field by field
        }
    return body
