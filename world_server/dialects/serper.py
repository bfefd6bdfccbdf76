"""Serper: ``/search`` and ``/scrape`` as google.serper.dev and scrape.serper.dev answer them.

``num`` above 100 counts as 100, below 1 it is an error; ``position`` starts at 1 on every page;
results deeper than rank 10,000 are an empty list. ``date`` is there only where it is known,
``sitelinks`` only at a host's root or section start. ``tbs`` counts from the world clock; a form it
does not know is echoed and has no effect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from world_client.wire import MAX_BATCH, MAX_COUNT, MAX_OFFSET, MAX_QUERY_CHARACTERS
from world_client.wire import Outcome as Shown
from world_core.types import Hit, Instant, Outcome, SearchCall
from world_server.dialects import tbs, times
from world_server.dialects.jsonbytes import json_reply
from world_server.dialects.markup import plain_text
from world_server.errors import BadFieldError
from world_server.exchange import Reply, Request
from world_server.http_body import parse_json
from world_server.problems import Problem
from world_server.service import Service

MAX_URL_CHARACTERS = 100_000
SCRAPE_CREDITS = 2
_DEFAULT_COUNT = 10
_DIGITS = 18
_LARGEST = (
    999_999_999_999_999_999  # a larger number means the same, and JSON writers may fail on it
)
_ECHOED = ("gl", "hl", "location")


@dataclass(frozen=True, slots=True)
class _Search:
    """One search of a request: its call, but for the dates, and what is echoed."""

    query: str
    count: int
    page: int
    tbs: str
    echo: Mapping[str, object]

    @property
    def offset(self) -> int:
        return (self.page - 1) * self.count

    def call(self, clock: Instant) -> SearchCall:
        start, end = tbs.period(self.tbs, clock)
        return SearchCall(
            query=self.query,
            count=self.count,
            offset=self.offset,
            published_from=start,
            published_to=end,
            sitelinks=True,
        )


async def search(service: Service, request: Request) -> Reply:
    """Answer one search, or a batch of up to 100 in which a bad one fails alone."""
    sent = _sent(request)
    if isinstance(sent, list):
        return await _batch(service, request, sent)
    wanted = _parsed(sent)
    hits = (await _hits(service, request, [wanted]))[0]
    return json_reply(_answer(wanted, hits), outcome="ok" if hits else "empty")


async def scrape(service: Service, request: Request) -> Reply:
    """Return the text of a page."""
    sent = _sent(request)
    if not isinstance(sent, dict):
        raise BadFieldError("The body must be an object.")
    url = sent.get("url")
    if not isinstance(url, str) or not url.strip():
        raise BadFieldError("Missing url parameter", field="url")
    if len(url) > MAX_URL_CHARACTERS:
        raise BadFieldError(f"url is longer than {MAX_URL_CHARACTERS} characters", field="url")
    answer = await service.fetch(request, url)
    if answer.version is None:
        message = "Page not found"
        if answer.outcome is Outcome.DEAD_LINK:
            message = f"Target URL returned error {answer.status}"
        outcome = Shown.DEAD_LINK if answer.outcome is Outcome.DEAD_LINK else Shown.NOT_IN_WORLD
        return json_reply(_error(message, 404), status=404, outcome=outcome.value)
    markdown = answer.version.text
    body: dict[str, object] = {"text": plain_text(markdown)}
    if _truth(sent.get("includeMarkdown")):
        body["markdown"] = markdown
    body["metadata"] = {"title": answer.version.meta.title}
    body["credits"] = SCRAPE_CREDITS
    return json_reply(body)


def render(problem: Problem, _request: Request) -> Reply:
    """Return the problem as ``{message, statusCode}``, a refused key in Serper's own words."""
    if problem.outcome is Shown.UNAUTHORIZED:
        return json_reply(_error("Unauthorized.", 403), status=403)
    return json_reply(_error(problem.message, problem.status), status=problem.status)


async def _batch(service: Service, request: Request, items: Sequence[object]) -> Reply:
    if len(items) > MAX_BATCH:
        raise BadFieldError(f"A batch holds at most {MAX_BATCH} searches, this one {len(items)}")
    parsed: list[_Search | BadFieldError] = []
    for item in items:
        try:
            parsed.append(_parsed(item))
        except BadFieldError as error:
            parsed.append(error)
    good = [item for item in parsed if isinstance(item, _Search)]
    answers = iter(await _hits(service, request, good))
    bodies = [
        _answer(item, next(answers)) if isinstance(item, _Search) else _error(item.sentence, 400)
        for item in parsed
    ]
    return json_reply(bodies)


async def _hits(
    service: Service, request: Request, wanted: Sequence[_Search]
) -> list[tuple[Hit, ...]]:
    """Return the hits of each search; one too deep for any world does not reach the engine."""
    near = [one for one in wanted if one.offset <= MAX_OFFSET]
    if not near:
        return [()] * len(wanted)
    answers = iter(
        await service.search(request, lambda manifest: [one.call(manifest.clock) for one in near])
    )
    return [next(answers).hits if one.offset <= MAX_OFFSET else () for one in wanted]


def _sent(request: Request) -> object:
    """Return what was sent: the JSON body, or the query string when there is no body."""
    if request.body:
        value = parse_json(request.body)
        if isinstance(value, dict):
            return {**request.query, **value}
        return value
    return request.query


def _parsed(sent: object) -> _Search:
    if not isinstance(sent, dict):
        raise BadFieldError("The body must be an object or an array of objects")
    query = sent.get("q")
    if query is None or query == "":
        raise BadFieldError("Missing query parameter", field="q")
    if not isinstance(query, str):
        raise BadFieldError("q must be a string", field="q")
    if not query.strip():
        raise BadFieldError("Missing query parameter", field="q")
    if len(query) > MAX_QUERY_CHARACTERS:
        raise BadFieldError(f"q is longer than {MAX_QUERY_CHARACTERS} characters", field="q")
    count = _whole(sent, "num", _DEFAULT_COUNT)
    page = _whole(sent, "page", 1)
    period = sent.get("tbs")
    echo: dict[str, object] = {"q": query}
    echo |= {name: sent[name] for name in _ECHOED if isinstance(sent.get(name), str)}
    if sent.get("num") is not None:
        echo["num"] = count
    if sent.get("page") is not None:
        echo["page"] = page
    if isinstance(period, str):
        echo["tbs"] = period
    if sent.get("autocorrect") is not None:
        echo["autocorrect"] = _truth(sent["autocorrect"])
    return _Search(
        query=query,
        count=min(count, MAX_COUNT),
        page=page,
        tbs=period if isinstance(period, str) else "",
        echo=echo | {"type": "search", "engine": "google"},
    )


def _whole(sent: Mapping[str, object], name: str, default: int) -> int:
    """Return a whole number of at least 1 that came as a number or as digits."""
    value = sent.get(name)
    if value is None or value == "":
        return default
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdecimal():
        value = int(value.strip()[:_DIGITS])
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadFieldError(f"{name} must be a whole number", field=name)
    if value < 1:
        raise BadFieldError(f"{name} must be at least 1, not {value}", field=name)
    return min(value, _LARGEST)


def _truth(value: object) -> bool:
    return value is True or (isinstance(value, str) and value.strip().lower() == "true")


def _answer(wanted: _Search, hits: Sequence[Hit]) -> dict[str, object]:
    return {
        "searchParameters": wanted.echo,
        "organic": [_organic(hit, position) for position, hit in enumerate(hits, 1)],
        "credits": 1 if wanted.count <= _DEFAULT_COUNT else 2,
    }


def _organic(hit: Hit, position: int) -> dict[str, object]:
    row: dict[str, object] = {
        "title": hit.meta.title,
        "link": hit.meta.url,
        "snippet": hit.snippet,
    }
    date = times.spoken(hit.meta.published)
    if date is not None:
        row["date"] = date
    if hit.sitelinks:
        row["sitelinks"] = [{"title": link.title, "link": link.url} for link in hit.sitelinks]
    row["position"] = position
    return row


def _error(message: str, status: int) -> dict[str, object]:
    return {"message": message, "statusCode": status}
