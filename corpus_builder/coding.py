"""Undo the transfer and content coding of a recorded HTTP body, within a size limit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from corpus_builder.decoders import (
    DecoderFactory,
    brotli_decoder,
    gzip_decoder,
    raw_deflate_decoder,
    zlib_decoder,
    zstd_decoder,
    zstd_size,
)

BODY_LIMIT = 16 * 1024 * 1024
NESTING_LIMIT = 2
CUT = "cut short"
LARGE = "too large"
DAMAGED = "damaged body"

_CHUNK_SIZE = re.compile(rb"\r?\n?[ \t]*([0-9A-Fa-f]{1,16})[ \t]*(?:;[^\r\n]*)?\r?\n")
_CLOSING = re.compile(rb"</html>\s*(?:<!--[^>]*-->\s*)?\Z", re.IGNORECASE)
_MAGIC = {"gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd"}
_NAMES = {"x-gzip": "gzip", "gzip": "gzip", "deflate": "deflate", "br": "br", "zstd": "zstd"}
_DECODERS: dict[str, tuple[DecoderFactory, ...]] = {
    "gzip": (gzip_decoder,),
    "deflate": (zlib_decoder, raw_deflate_decoder),
    "br": (brotli_decoder,),
    "zstd": (zstd_decoder,),
}


@dataclass(frozen=True, slots=True)
class Body:
    """A decoded body, or ``flaw``: the reason why it cannot be used."""

    data: bytes
    flaw: str = ""


def decode_body(headers: Mapping[str, str], raw: bytes, limit: int = BODY_LIMIT) -> Body:
    """Return the body with chunking and content coding undone.

    Archives often keep the headers of a coded body next to the decoded one, so a coding is undone
    only where the body shows it. ``headers`` are by lower-case name, ``limit`` is in bytes and
    holds after every step.
    """
    body = Body(raw)
    chunked = "chunked" in headers.get("transfer-encoding", "").lower()
    if chunked:
        body = _unchunk(raw)
    if body.flaw not in ("", CUT):
        return body
    names = [
        _NAMES[name]
        for part in headers.get("content-encoding", "").split(",")
        if (name := part.strip().lower()) in _NAMES
    ]
    if len(names) > NESTING_LIMIT:
        return Body(b"", "too many content codings")
    for name in reversed(names):
        decoded = _inflate(name, body.data, limit)
        if decoded.flaw:
            return decoded
        if decoded.data is not body.data:
            # A content coding that reached its own end proves the body whole, last chunk or not.
            body = decoded
    if not body.flaw and not chunked and not names:
        body = _measure(headers, body)
    if body.flaw == CUT and _CLOSING.search(body.data[-200:]):
        body = Body(body.data)
    return Body(b"", LARGE) if len(body.data) > limit else body


def _measure(headers: Mapping[str, str], body: Body) -> Body:
    """Return the body, marked cut if it is shorter than the server announced."""
    length = headers.get("content-length", "").strip()
    if length.isascii() and length.isdigit() and len(length) < 19 and int(length) > len(body.data):
        return Body(body.data, CUT)
    return body


def _unchunk(raw: bytes) -> Body:
    """Return the joined chunks; a body that is not chunked after all is returned as it is."""
    parts: list[bytes] = []
    position = 0
    while True:
        size_line = _CHUNK_SIZE.match(raw, position)
        if not size_line:
            if position == 0:
                return Body(raw)
            ended = not raw[position:].strip(b"\r\n")
            return Body(b"".join(parts), CUT if ended else DAMAGED)
        size = int(size_line[1], 16)
        if size == 0:
            return Body(b"".join(parts))
        start = size_line.end()
        piece = raw[start : start + size]
        parts.append(piece)
        if len(piece) < size:
            # A plain text may begin with a number alone on its line.
            return Body(raw) if position == 0 and not _is_plausible(raw) else _cut(parts)
        position = start + size


def _cut(parts: list[bytes]) -> Body:
    return Body(b"".join(parts), CUT)


def _is_plausible(raw: bytes) -> bool:
    """Return whether the first line looks like a chunk size rather than like a text's number."""
    return raw.partition(b"\n")[0].endswith(b"\r")


def _inflate(name: str, data: bytes, limit: int) -> Body:
    magic = _MAGIC.get(name)
    if not data or (magic and not data.startswith(magic)):
        return Body(data)
    if name == "zstd" and zstd_size(data) > limit:
        return Body(b"", LARGE)
    flaw = ""
    for factory in _DECODERS[name]:
        body = _run(factory, data, limit)
        if not body.flaw:
            return body
        flaw = flaw if flaw in (CUT, LARGE) else body.flaw
        if body.flaw == LARGE:
            break
    if flaw == DAMAGED and not magic and _is_text(data):
        return Body(data)
    return Body(b"", flaw)


def _run(factory: DecoderFactory, data: bytes, limit: int) -> Body:
    """Return what the data unfolds to, several members in a row included."""
    parts: list[bytes] = []
    total = 0
    while True:
        decoder = factory()
        try:
            for piece in decoder.feed(data):
                parts.append(piece)
                total += len(piece)
                if total > limit:
                    return Body(b"", LARGE)
        except decoder.errors:
            return Body(b"", DAMAGED)
        if not decoder.eof:
            return Body(b"", CUT)
        data = data[len(data) - decoder.unused :] if decoder.unused else b""
        if not data.startswith(_MAGIC["gzip"]) or factory is not gzip_decoder:
            return Body(b"".join(parts))


def _is_text(data: bytes) -> bool:
    head = data[:1024]
    return b"\x00" not in head and sum(byte < 32 and byte not in b"\t\r\n\f" for byte in head) == 0
