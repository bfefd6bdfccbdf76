"""A recorded HTTP response: its status line, headers and still-coded body."""

from __future__ import annotations

import re
from dataclasses import dataclass

from corpus_builder.textclean import header_text

HEAD_LIMIT = 256 * 1024
_STATUS = re.compile(rb"HTTP/\d(?:\.\d)?[ \t]+(\d{3})(?!\d)")
_END_OF_HEAD = re.compile(rb"\r?\n[ \t]*\r?\n")
_LINE_END = re.compile(rb"\r?\n")


@dataclass(frozen=True, slots=True)
class HttpMessage:
    """A response as sent: ``headers`` by lower-case name, the first value of a repeated one."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def mime(self) -> str:
        """The media type in lower case without its parameters, "" if none was sent."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def charset(self) -> str:
        """The charset parameter of the content type, "" if none was sent."""
        return charset_of(self.headers.get("content-type", ""))

    @property
    def length(self) -> int | None:
        """The length of the body that the server announced, None if unknown."""
        value = self.headers.get("content-length", "").strip()
        return int(value) if value.isascii() and value.isdigit() and len(value) < 19 else None


def charset_of(content_type: str) -> str:
    """Return the charset parameter of a content type, "" if it has none."""
    found = re.search(r"""charset\s*=\s*["']?([A-Za-z0-9_.:-]+)""", content_type, re.IGNORECASE)
    return found[1].lower() if found else ""


def parse_headers(lines: list[bytes]) -> dict[str, str]:
    """Return header lines by lower-case name; folded lines are joined, the first value wins."""
    headers: dict[str, str] = {}
    name = ""
    for line in lines:
        if line[:1] in b" \t" and line.strip():
            if name:
                headers[name] += " " + header_text(line)
            continue
        raw, colon, value = line.partition(b":")
        name = ""
        if colon:
            key = header_text(raw).lower()
            if key not in headers:
                name = key
                headers[name] = header_text(value)
    return headers


def parse_message(block: bytes) -> HttpMessage | None:
    """Return the HTTP response in a record's block, None if it does not begin with one."""
    block = block.lstrip(b"\r\n") if block[:2] in (b"\r\n", b"\n\n") else block
    status = _STATUS.match(block)
    if not status:
        return None
    end = _END_OF_HEAD.search(block, 0, HEAD_LIMIT)
    head, body = (block[: end.start()], block[end.end() :]) if end else (block[:HEAD_LIMIT], b"")
    lines = _LINE_END.split(head)
    return HttpMessage(int(status[1]), parse_headers(lines[1:]), body)
