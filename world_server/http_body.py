"""Reading a request body within limits, and the JSON in it without surprises."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import re
from typing import Any

import orjson

from world_server.errors import BadFieldError, BodyTooLargeError, ClientLeftError, SlowBodyError
from world_server.exchange import Receive, Scope

REST_LIMIT = 16 << 20
"""Bytes of a refused body that are read away at most."""
REST_SECONDS = 5.0
"""Seconds for which the rest of a refused body is read away at most."""

_BOM = b"\xef\xbb\xbf"
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile("[\ud800-\udfff]")


async def read_body(scope: Scope, receive: Receive, *, limit: int, seconds: float) -> bytes:
    """Return the whole body of a request.

    A stated length above the limit is refused before a byte is read; otherwise reading stops with
    the chunk that passes the limit.

    Raises:
        BodyTooLargeError: the body is larger than ``limit`` bytes.
        SlowBodyError: it did not arrive within ``seconds``.
        ClientLeftError: the client closed the connection first.
    """
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit() and int(value) > limit:
            raise _too_large(limit)
    try:
        async with asyncio.timeout(seconds):
            return await _collect(receive, limit)
    except TimeoutError:
        raise SlowBodyError(f"The body did not arrive within {seconds:g} s.") from None


async def drop_rest(
    receive: Receive, *, limit: int = REST_LIMIT, seconds: float = REST_SECONDS
) -> None:
    """Read away what is still to come of a refused body, within limits.

    Most clients read the answer only when they have sent everything, and a connection that is
    closed with bytes unread takes the answer with it.
    """
    size = 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while size < limit:
                message = await receive()
                if message["type"] == "http.disconnect" or not message.get("more_body"):
                    return
                size += len(message.get("body", b""))


def parse_json(body: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value of a JSON text; of a key given twice the last one holds.

    A byte-order mark is skipped. Half surrogate pairs, which no answer could carry, become U+FFFD.

    Raises:
        BadFieldError: no JSON, not UTF-8, nested too deeply, or with NaN or an infinity.
    """
    body = body.removeprefix(_BOM)
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        # orjson refuses half surrogates; only a body that may hold one is worth a second look.
        if _SURROGATE_ESCAPE.search(body):
            return _parse_with_surrogates(body)
        raise BadFieldError(f"The body is not JSON: {_reason(error)}.") from error


def clean_text(text: str) -> str:
    """Return the text with half surrogate pairs replaced by U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)


async def _collect(receive: Receive, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientLeftError("The client left while it sent the body.")
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)


def _too_large(limit: int) -> BodyTooLargeError:
    return BodyTooLargeError(
        f"The body is larger than {limit} bytes.", hint="Send less, or raise body_limit."
    )


def _parse_with_surrogates(body: bytes) -> Any:  # noqa: ANN401 - any JSON value
    try:
        value = json.loads(body.decode("utf-8"), parse_constant=_refuse, parse_float=_finite)
        return _clean(value)
    except (ValueError, RecursionError) as error:
        raise BadFieldError(f"The body is not JSON: {_reason(error)}.") from error


def _clean(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, dict):
        return {clean_text(key): _clean(item) for key, item in value.items()}
    return value


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:20]} is too large a number")
    return number


def _reason(error: Exception) -> str:
    """Return the parser's reason in short; it names places, never the caller's text."""
    return str(error)[:120] or type(error).__name__
