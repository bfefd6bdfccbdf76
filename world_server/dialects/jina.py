"""Jina Reader: a page as text or JSON, the way r.jina.ai gives it.

The target is everything after the route in the raw path, query string included. Pages are kept as
Markdown, so the format ``html`` is answered with Markdown too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus
from urllib.parse import parse_qs, unquote

from world_client.wire import Outcome as Shown
from world_core.types import FetchAnswer, Link, Outcome, StoredVersion
from world_core.urls import canonical
from world_server.dialects import times
from world_server.dialects.jsonbytes import json_reply
from world_server.dialects.markup import count_tokens, cut_to_tokens, plain_text
from world_server.errors import BadFieldError, BudgetError
from world_server.exchange import TEXT, Reply, Request
from world_server.http_body import parse_json
from world_server.problems import Problem
from world_server.service import Service

MAX_URL_CHARACTERS = 100_000
_FORM = "application/x-www-form-urlencoded"
_ENCODED_SCHEME = re.compile(r"https?%3a", re.IGNORECASE)
_SCHEME = re.compile(r"(https?):/*", re.IGNORECASE)
_NAMES = {
    400: ("ParamValidationError", 40001),
    401: ("AuthenticationRequiredError", 40103),
    404: ("ParamValidationError", 40401),
    405: ("ParamValidationError", 40501),
    408: ("ParamValidationError", 40801),
    409: ("BudgetExceededError", 40904),
    413: ("ParamValidationError", 41301),
    422: ("AssertionFailureError", 42206),
    503: ("ServiceUnavailableError", 50301),
    504: ("ServiceUnavailableError", 50401),
}


async def read(service: Service, request: Request) -> Reply:
    """Return the addressed page in the form the headers ask for."""
    url = _target(request)
    if len(url) > MAX_URL_CHARACTERS:
        raise BadFieldError(f"The URL is longer than {MAX_URL_CHARACTERS} characters.", field="url")
    if not canonical(url):
        raise BadFieldError(f"Invalid URL: {url[:200]!a}", field="url")
    answer = await service.fetch(request, url)
    if answer.outcome is Outcome.DEAD_LINK:
        return _page(request, _DeadPage(answer))
    if answer.version is None:
        message = f"Failed to load {url[:2000]}: no such page"
        body = _envelope(422, message)
        return _error_reply(request, body, 422, Shown.NOT_IN_WORLD.value)
    return _page(request, _LivePage(answer.version))


def render(problem: Problem, request: Request) -> Reply:
    """Return the problem as Jina's envelope, or as its readable message where text is wanted."""
    body = _envelope(problem.status, problem.message)
    return _error_reply(request, body, problem.status, problem.outcome.value)


def target_of(raw: str) -> str:
    """Return the address that follows the route, as the caller meant it.

    An address that is percent-encoded as a whole is decoded once; a scheme with one slash, as
    front proxies leave it, gets its second one back.
    """
    path, mark, query = raw.partition("?")
    if "/" not in path or _ENCODED_SCHEME.match(path):
        path = unquote(path, errors="replace")
    found = _SCHEME.match(path)
    if found is not None:
        path = f"{found[1].lower()}://{path[found.end() :]}"
    return path + mark + query


class _LivePage:
    """What a stored version gives to the frame."""

    def __init__(self, version: StoredVersion) -> None:
        self.title = version.meta.title
        self.url = version.meta.url
        self.text = version.text
        self.links: Iterable[Link] = version.links
        self.published = times.iso(version.meta.published)
        self.language = version.meta.language
        self.warning = ""
        self.outcome = "ok"


class _DeadPage(_LivePage):
    """A page for which the crawl recorded an error: no text, but a warning."""

    def __init__(self, answer: FetchAnswer) -> None:
        status = answer.status or 404
        phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else "Error"
        self.title = ""
        self.url = answer.url
        self.text = ""
        self.links = ()
        self.published = None
        self.language = ""
        self.warning = f"Target URL returned error {status}: {phrase}"
        self.outcome = Shown.DEAD_LINK.value


def _target(request: Request) -> str:
    if request.tail:
        return target_of(request.tail)
    if request.method == "POST" and request.body:
        url = _url_of_body(request)
    else:
        url = request.query.get("url")
    if not isinstance(url, str) or not url.strip():
        raise BadFieldError("Missing url.", field="url")
    return url


def _url_of_body(request: Request) -> object:
    if request.header(b"content-type").split(";")[0].strip().lower() == _FORM:
        return parse_qs(request.body.decode("utf-8", "replace")).get("url", [None])[-1]
    value = parse_json(request.body)
    if not isinstance(value, dict):
        raise BadFieldError("The body must be an object with url.", field="url")
    return value.get("url")


def _page(request: Request, page: _LivePage) -> Reply:
    wanted = (request.header(b"x-return-format") or request.header(b"x-respond-with")).lower()
    content = plain_text(page.text) if "text" in wanted and "markdown" not in wanted else page.text
    budget = _number(request, b"x-token-budget")
    tokens = count_tokens(content)
    if budget is not None and tokens > budget:
        raise BudgetError(f"Token budget ({budget}) exceeded, the page needs {tokens} tokens.")
    most = _number(request, b"x-max-tokens")
    if most is not None and tokens > most:
        content = cut_to_tokens(content, most)
        tokens = count_tokens(content)
    links = _links(request, page)
    usage = {"X-Usage-Tokens": str(tokens)}
    if _wants_json(request):
        reply = json_reply(_json_page(page, content, links, tokens))
        return Reply(reply.body, headers=usage, outcome=page.outcome)
    bare = any(name in wanted for name in ("markdown", "html", "text"))
    text = content if bare and not page.warning else _frame(page, content, links)
    return Reply(text.encode("utf-8", "replace"), 200, TEXT, usage, page.outcome)


def _links(request: Request, page: _LivePage) -> list[tuple[str, str]] | None:
    """Return the links as (text, address) if they are asked for, each address once."""
    wanted = request.header(b"x-with-links-summary").strip().lower()
    if wanted == "all":
        return [(link.text, link.url) for link in page.links]
    if wanted == "true":
        unique: dict[str, str] = {}
        for link in page.links:
            unique.setdefault(link.url, link.text)
        return [(text, url) for url, text in unique.items()]
    return None


def _frame(page: _LivePage, content: str, links: list[tuple[str, str]] | None) -> str:
    """Return the text frame that callers search for."""
    parts = [f"Title: {page.title}", f"URL Source: {page.url}"]
    if page.published is not None:
        parts.append(f"Published Time: {page.published}")
    if page.warning:
        parts.append(f"Warning: {page.warning}")
    parts.append(f"Markdown Content:\n{content}")
    if links is not None:
        rows = "\n".join(f"- [{text}]({url})" for text, url in links)
        parts.append(f"Links/Buttons:\n{rows}")
    return "\n\n".join(parts)


def _json_page(
    page: _LivePage, content: str, links: list[tuple[str, str]] | None, tokens: int
) -> dict[str, object]:
    data: dict[str, object] = {
        "title": page.title,
        "description": "",
        "url": page.url,
        "content": content,
    }
    if page.published is not None:
        data["publishedTime"] = page.published
    if page.warning:
        data["warning"] = page.warning
    data["metadata"] = {"lang": page.language} if page.language else {}
    data["external"] = {}
    if links is not None:
        data["links"] = [[text, url] for text, url in links]
    usage = {"tokens": tokens}
    data["usage"] = usage
    return {"code": 200, "status": 20000, "data": data, "meta": {"usage": usage}}


def _number(request: Request, name: bytes) -> int | None:
    text = request.header(name).strip()
    return int(text[:18]) if text.isascii() and text.isdecimal() else None


def _wants_json(request: Request) -> bool:
    """True when JSON is asked for and text is not acceptable; ``*/*`` means text."""
    accept = request.header(b"accept").lower()
    return "application/json" in accept and "text/plain" not in accept and "*/*" not in accept


def _envelope(status: int, message: str) -> dict[str, object]:
    name, number = _NAMES.get(status, ("ServiceUnavailableError", status * 100 + 1))
    return {
        "data": None,
        "code": status,
        "name": name,
        "status": number,
        "message": message,
        "readableMessage": f"{name}: {message}",
    }


def _error_reply(request: Request, body: dict[str, object], status: int, outcome: str) -> Reply:
    if _wants_json(request):
        return json_reply(body, status=status, outcome=outcome)
    text = str(body["readableMessage"])
    return Reply(text.encode("utf-8", "replace"), status, TEXT, outcome=outcome)
