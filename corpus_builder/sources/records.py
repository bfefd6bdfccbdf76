"""Records of a WARC or ARC archive, read so that damage costs one record and is always told.

The declared length of a record is believed only if the next record, or the end, follows it. Where
it does not, the record ends at the next header that can be found, and is kept only if a digest or
the HTTP length proves that its body is whole.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from corpus_builder.capture import Loss
from corpus_builder.sources.http_message import parse_headers, parse_message
from corpus_builder.sources.members import HEAD_SIZE, Member, members, starts_record
from corpus_builder.textclean import header_text

HEADER_LIMIT = 64 * 1024
SCAN = 256 * 1024
_NEWLINES = b"\r\n"
_WARC_LINE = re.compile(rb"WARC/\d+\.\d+[ \t]*\r?\n", re.IGNORECASE)
_END_OF_HEADER = re.compile(rb"\r?\n\r?\n")
_WARC_MARK = re.compile(rb"WARC/\d+\.\d+[ \t]*\r?\n(?=[A-Za-z][A-Za-z-]*:)")
_ARC_MARK = re.compile(rb"(?<=\n)[a-z][a-z0-9+.-]{1,20}:[^\n]{1,4000} \d{12,18} [^\n]{1,1000}\n")
_ARC_DATE = re.compile(r"\d{12,18}")
_PAGE_KINDS = frozenset({"response", "resource", "conversion", "revisit", "continuation"})


@dataclass(frozen=True, slots=True)
class Record:
    """A record of an archive: its place, kind, headers by lower-case name, and block.

    ``offset`` is a byte of the archive file: of the record, or of the gzip member that holds it.
    ``block`` is empty for kinds that give no page.
    """

    offset: int
    kind: str
    headers: dict[str, str]
    block: bytes

    @property
    def uri(self) -> str:
        """The target address as written, without angle brackets; "" if the record has none."""
        return _target(self.headers)


def _target(headers: dict[str, str]) -> str:
    return headers.get("warc-target-uri", "").strip("<> ")


@dataclass(frozen=True, slots=True)
class _Header:
    kind: str
    headers: dict[str, str]
    size: int  # bytes of the header itself
    declared: int | None  # bytes of the block, None if the header gives no usable length


def read_records(file: BinaryIO, origin: str, limit: int) -> Iterator[Record | Loss]:
    """Yield the records of an archive in order, and a loss for everything that could not be read.

    ``limit`` is the largest block, in bytes, that is loaded; a larger one is a loss.
    """
    told = False
    for member in members(file):
        count = 0
        for item in _Framing(member, origin, limit).records():
            count += isinstance(item, Record)
            yield item
        if member.packed and count > 1 and not told:
            told = True
            yield Loss(origin, member.offset, "several records in one gzip member", note=True)


class _Framing:
    """Cuts one member into records."""

    def __init__(self, member: Member, origin: str, limit: int) -> None:
        self._member = member
        self._stream = member.stream
        self._origin = origin
        self._limit = limit
        self._arc = False
        self._size = member.stream.seek(0, 2)
        self._next = 0

    def records(self) -> Iterator[Record | Loss]:
        position = self._skip_newlines(0)
        losses = records = 0
        while position < self._size:
            header = self._header(position)
            if header is None:
                following = self._find_header(position + 1)
                yield self._loss(position, self._junk(following))
                losses += 1
                position = self._size if following is None else following
                continue
            for item in self._record(position, header):
                losses += isinstance(item, Loss)
                records += isinstance(item, Record)
                yield item
            position = self._next
            position = self._skip_newlines(position)
        if not losses and not (self._member.sound and self._member.whole):
            # The records are all there, yet the member's end is not as it was written.
            note = bool(records)
            yield Loss(self._origin, self._member.offset, self._damage(), note=note)

    def _junk(self, following: int | None) -> str:
        if following is None and not (self._member.whole and self._member.sound):
            return self._damage()
        return "data between records"

    def _damage(self) -> str:
        return "cut short" if self._member.sound else "damaged"

    def _loss(self, position: int, reason: str, url: str = "", *, note: bool = False) -> Loss:
        return Loss(self._origin, self._offset(position), reason, url, note)

    def _offset(self, position: int) -> int:
        return self._member.offset if self._member.packed else position

    def _read(self, position: int, size: int) -> bytes:
        self._stream.seek(position)
        return self._stream.read(size)

    def _skip_newlines(self, position: int) -> int:
        while data := self._read(position, HEAD_SIZE):
            rest = data.lstrip(_NEWLINES)
            position += len(data) - len(rest)
            if rest:
                break
        return position

    def _header(self, position: int) -> _Header | None:
        data = self._read(position, HEADER_LIMIT)
        if _WARC_LINE.match(data):
            return _warc_header(data)
        header = _arc_header(data)
        self._arc = self._arc or header is not None
        return header

    def _record(self, position: int, header: _Header) -> Iterator[Record | Loss]:
        """Yield the record or why it is lost; ``_next`` is then where to go on."""
        start = position + header.size
        url = _target(header.headers)
        page = header.kind in _PAGE_KINDS
        if header.declared is not None and self._is_framed(start + header.declared):
            self._next, length, reason = start + header.declared, header.declared, ""
        else:
            self._next, length, reason = self._repair(start, header)
            if not reason:
                yield self._loss(position, "wrong length, mended", url, note=True)
        if not reason and page and length > self._limit:
            reason = "too large"
        if reason:
            yield self._loss(position, reason, url, note=not page)
            return
        block = self._read(start, length) if page else b""
        if page and not self._member.sound and not _digest_holds(header.headers, block):
            yield self._loss(position, "damaged", url)
            return
        yield Record(self._offset(position), header.kind, header.headers, block)

    def _is_framed(self, end: int) -> bool:
        """Return whether a record that ends here is followed by another or by the end."""
        if end > self._size:
            return False
        following = self._read(self._skip_newlines(end), HEAD_SIZE)
        return not following or starts_record(following)

    def _repair(self, start: int, header: _Header) -> tuple[int, int, str]:
        """Return end, block length and reason of loss for a record whose length is wrong."""
        following = self._find_header(start)
        end = self._size if following is None else following
        declared = header.declared
        beyond = declared is not None and start + declared > self._size
        if beyond and following is not None:
            # A length that claims the rest of the file cannot be told from a lost middle.
            return end, 0, self._damage()
        if end - start > self._limit + 4:
            return end, 0, "too large"
        written = self._read(start, end - start)
        block = _without_terminator(written)
        for candidate in _endings(written):
            if _is_whole(header.headers, candidate):
                return end, len(candidate), ""
        if declared is not None and declared < len(block):
            rest = self._read(start + declared, 4)
            if rest == b"\r\n\r\n" and _is_whole(header.headers, block[:declared]) is not False:
                return start + declared, declared, ""
        return end, 0, self._damage() if beyond else "wrong length"

    def _find_header(self, start: int) -> int | None:
        mark = _ARC_MARK if self._arc else _WARC_MARK
        position = max(start - 1, 0)
        while data := self._read(position, SCAN + HEADER_LIMIT):
            for found in mark.finditer(data):
                if position + found.start() >= start:
                    return position + found.start()
            if len(data) < SCAN + HEADER_LIMIT:
                return None
            position += SCAN
        return None


def _warc_header(data: bytes) -> _Header | None:
    end = _END_OF_HEADER.search(data)
    if not end:
        return None
    headers = parse_headers(data[: end.start()].splitlines()[1:])
    if "warc-type" not in headers:
        return None
    length = headers.get("content-length", "")
    declared = int(length) if length.isascii() and length.isdigit() and len(length) < 19 else None
    return _Header(headers["warc-type"].lower(), headers, end.end(), declared)


def _arc_header(data: bytes) -> _Header | None:
    """Return the header in an ARC line: URL, address, date, type, [five more,] length."""
    line, newline, _ = data.partition(b"\n")
    fields = header_text(line).split(" ") if newline else []
    for date in (-3, -8):
        if len(fields) >= 2 - date and _ARC_DATE.fullmatch(fields[date]):
            url = " ".join(fields[: date - 1])
            length = fields[-1]
            headers = {
                "warc-target-uri": url,
                "warc-date": fields[date],
                "content-type": fields[date + 1],
            }
            kind = "warcinfo" if url.startswith("filedesc:") else "response"
            declared = int(length) if length.isascii() and length.isdigit() else None
            return _Header(kind, headers, len(line) + 1, declared)
    return None


def _without_terminator(block: bytes) -> bytes:
    for ending in (b"\r\n\r\n", b"\n\n", b"\r\n", b"\n"):
        if block.endswith(ending):
            return block[: -len(ending)]
    return block


def _endings(written: bytes) -> Iterator[bytes]:
    """Yield the data without its last four, three, ... no newline characters."""
    for cut in range(4, -1, -1):
        kept = len(written) - cut
        if kept >= 0 and not written[kept:].strip(_NEWLINES):
            yield written[:kept]


def _is_whole(headers: dict[str, str], block: bytes) -> bool | None:
    """Return whether the block is proven whole (True), proven cut (False) or neither (None)."""
    if _digest_holds(headers, block):
        return True
    message = parse_message(block)
    if message is None or message.length is None or "transfer-encoding" in message.headers:
        return None
    if len(message.body) == message.length:
        return True
    return False if len(message.body) < message.length else None


def _digest_holds(headers: dict[str, str], block: bytes) -> bool:
    """Return whether the record's block or payload digest is given, known, and right."""
    algorithm, _, written = headers.get("warc-block-digest", "").partition(":")
    if algorithm.lower().replace("-", "") not in {"sha1", "sha256", "md5"} or not written:
        return False
    digest = hashlib.new(algorithm.lower().replace("-", ""), block, usedforsecurity=False)
    encoded = base64.b32encode(digest.digest()).decode("ascii").rstrip("=")
    return written.strip().upper().rstrip("=") in {encoded, digest.hexdigest().upper()}
