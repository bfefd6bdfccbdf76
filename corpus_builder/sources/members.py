"""Members of an archive file: the compressed pieces it was written in, each with its soundness.

A well-made archive holds one record a gzip member (or lz4 frame), so that damage stays in one
member. A member is inflated as a whole before anything of it is handed on, because its checksum
stands at its end.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, cast

from corpus_builder.decoders import Decoder, DecoderFactory, gzip_decoder, lz4_decoder

GZIP_MAGIC = b"\x1f\x8b\x08"
LZ4_MAGIC = b"\x04\x22\x4d\x18"
CHUNK = 64 * 1024
HEAD_SIZE = 4096
IN_MEMORY = 8 * 1024 * 1024
MEMBER_LIMIT = 4 * 1024**3
"""Inflated bytes of one member that are kept; what is beyond counts as cut off."""

# Coded bytes that surely give the head of a record; an lz4 block comes out only as a whole.
_PROBE = {GZIP_MAGIC: HEAD_SIZE, LZ4_MAGIC: 4 * 1024 * 1024 + 64}
_WARC_START = re.compile(rb"WARC/\d+\.\d+[ \t]*\r?\n", re.IGNORECASE)
_ARC_START = re.compile(rb"[a-z][a-z0-9+.-]{1,20}:[^\n]* \d{12,18} [^\s]+(?: [^\s]+)*\r?\n")


@dataclass(slots=True)
class Member:
    """A piece of an archive, inflated.

    ``offset`` is where it starts in the file. ``sound`` is False when a checksum or the coding
    failed, ``whole`` is False when the file ended inside it. ``packed`` is False for a plain
    archive, whose only member is the file itself.
    """

    offset: int
    stream: BinaryIO
    sound: bool = True
    whole: bool = True
    packed: bool = True


def starts_record(head: bytes) -> bool:
    """Return whether the bytes begin like a WARC or ARC record, blank lines aside."""
    text = head.lstrip(b"\r\n")
    return bool(_WARC_START.match(text) or _ARC_START.match(text))


def holds_record(file: BinaryIO) -> bool:
    """Return whether the file begins with a record, or, if it is packed, holds one anywhere."""
    head = _at(file, 0, HEAD_SIZE)
    for magic, decoder in ((GZIP_MAGIC, gzip_decoder), (LZ4_MAGIC, lz4_decoder)):
        if head.startswith(magic):
            return _next_member(file, 0, magic, decoder) is not None
    return starts_record(head)


def members(file: BinaryIO) -> Iterator[Member]:
    """Yield the file's members in order; after a damaged one go on at the next that can be read.

    A member that does not begin like a record continues the one before it (some writers flush in
    the middle of a record), and is appended to it. An unpacked member is closed when the next is
    asked for.
    """
    head = _at(file, 0, len(LZ4_MAGIC))
    if head.startswith(GZIP_MAGIC):
        yield from _joined(_packed(file, GZIP_MAGIC, gzip_decoder))
    elif head.startswith(LZ4_MAGIC):
        yield from _joined(_packed(file, LZ4_MAGIC, lz4_decoder))
    else:
        file.seek(0)
        yield Member(0, file, packed=False)


def _joined(pieces: Iterator[Member]) -> Iterator[Member]:
    current: Member | None = None
    try:
        for piece in pieces:
            piece.stream.seek(0)
            fresh = starts_record(piece.stream.read(HEAD_SIZE))
            piece.stream.seek(0)
            # A damaged piece may have lost its head, so it is never glued to a sound neighbour.
            if current is not None and not fresh and piece.sound and current.sound:
                with piece.stream:
                    current.stream.seek(0, 2)
                    shutil.copyfileobj(piece.stream, current.stream)
                current.whole = piece.whole
                continue
            done, current = current, piece
            if done is not None:
                yield from _lent(done)
        if current is not None:
            yield from _lent(current)
    finally:
        if current is not None:
            current.stream.close()


def _lent(member: Member) -> Iterator[Member]:
    with member.stream:
        member.stream.seek(0)
        yield member


def _packed(file: BinaryIO, magic: bytes, start: DecoderFactory) -> Iterator[Member]:
    offset: int | None = 0
    while offset is not None:
        file.seek(offset)
        if not file.read(1):
            return
        member, end = _inflate(file, offset, start())
        yield member
        if end is None:
            offset = _next_member(file, offset + 1, magic, start)
        elif _at(file, end, len(magic)).startswith(magic):
            offset = end
        else:
            # Zero padding or junk stands after the member.
            offset = _next_member(file, end, magic, start)


def _inflate(file: BinaryIO, offset: int, decoder: Decoder) -> tuple[Member, int | None]:
    """Return the member at the offset and where it ends, None if that is not known."""
    spool = cast("BinaryIO", tempfile.SpooledTemporaryFile(max_size=IN_MEMORY))  # noqa: SIM115 - the member owns it
    member = Member(offset, spool)
    file.seek(offset)
    total = 0
    while not decoder.eof:
        data = file.read(CHUNK)
        if not data:
            member.whole = False
            return member, None
        try:
            for piece in decoder.feed(data):
                spool.write(piece)
                total += len(piece)
                if total > MEMBER_LIMIT:
                    member.whole = False
                    return member, None
        except decoder.errors:
            member.sound = False
            return member, None
    return member, file.tell() - decoder.unused


def _at(file: BinaryIO, offset: int, size: int) -> bytes:
    file.seek(offset)
    return file.read(size)


def _next_member(file: BinaryIO, start: int, magic: bytes, decoder: DecoderFactory) -> int | None:
    """Return the next offset from ``start`` whose data inflates to the head of a record."""
    position = start
    while True:
        window = _at(file, position, CHUNK)
        if len(window) < len(magic):
            return None
        found = window.find(magic)
        while found >= 0:
            if _inflates_to_record(_at(file, position + found, _PROBE[magic]), decoder()):
                return position + found
            found = window.find(magic, found + 1)
        position += len(window) - len(magic) + 1


def _inflates_to_record(data: bytes, decoder: Decoder) -> bool:
    head = b""
    try:
        for piece in decoder.feed(data):
            head += piece
            if len(head) >= HEAD_SIZE:
                break
    except decoder.errors:
        pass  # the head that came out before the damage decides
    return starts_record(head)
