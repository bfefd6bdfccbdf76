"""What a body is, whatever its label says."""

from __future__ import annotations

import re
from enum import StrEnum


class Media(StrEnum):
    """Kinds of body that are treated differently."""

    HTML = "html"
    TEXT = "text"
    PDF = "pdf"
    OTHER = "other"


_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml"})
_XML = re.compile(r"(?:text|application)/(?:[a-z0-9.+-]+\+)?xml")
_TEXT = re.compile(
    r"text/(?!css|javascript|ecmascript|calendar|vcard|vtt)[a-z0-9.+-]+"
    r"|application/(?:[a-z0-9.+-]+\+)?(?:json|ndjson|x-ndjson|yaml|x-yaml|toml)"
)
_CODE = re.compile(r"(?:text|application)/(?:x-)?(?:css|javascript|ecmascript)")
_UNKNOWN = frozenset({"", "application/octet-stream", "unknown/unknown", "content/unknown"})
_LOOKS_HTML = re.compile(
    rb"\s*(?:<\?xml[^>]{0,200}>\s*)?(?:<!--.{0,2000}?-->\s*)*"
    rb"<(?:!doctype\s+html|html|head|body|title|meta|script|div|table|p|h1|a|ul|article)\b",
    re.IGNORECASE | re.DOTALL,
)
_BINARY_MAGIC = (
    b"\x89PNG", b"GIF8", b"\xff\xd8\xff", b"PK\x03\x04", b"\x1f\x8b", b"OggS", b"RIFF", b"\x7fELF",
    b"\x00\x00\x01\x00", b"wOFF", b"wOF2", b"ID3", b"BZh", b"7z\xbc\xaf", b"Rar!", b"MZ\x90",
    b"\xd0\xcf\x11\xe0", b"\x00asm", b"FLV\x01", b"CWS", b"FWS",
)  # fmt: skip
_NUL_SHARE = 0.05
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")


def media_of(mime: str, body: bytes) -> Media:
    """Return the kind of a body by its first bytes, and by its label where they do not decide."""
    head = body[:4096]
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n\x00")
    if start.startswith(b"%PDF-") or mime == "application/pdf":
        return Media.PDF
    if head.startswith(_BINARY_MAGIC) or _CODE.fullmatch(mime) or _is_binary(head):
        return Media.OTHER
    if mime in _HTML_TYPES or _XML.fullmatch(mime):
        return Media.OTHER if mime == "image/svg+xml" else Media.HTML
    if _TEXT.fullmatch(mime):
        return Media.HTML if mime != "text/plain" and _LOOKS_HTML.match(start) else Media.TEXT
    if mime in _UNKNOWN:
        return Media.HTML if _LOOKS_HTML.match(start) else Media.TEXT
    return Media.OTHER


def _is_binary(head: bytes) -> bool:
    """Return whether zero bytes make up more of the head than stray ones in a text would."""
    if not head or head.startswith(_WIDE_MARKS):
        return False
    zeros = head.count(0)
    if zeros <= _NUL_SHARE * len(head):
        return False
    # Text in two-byte units has its zeros in every second place.
    even, odd = head[::2].count(0), head[1::2].count(0)
    return min(even, odd) > 0.1 * max(even, odd) or max(even, odd) < 0.4 * len(head) / 2
