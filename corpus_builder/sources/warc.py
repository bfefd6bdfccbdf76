"""Captures of WARC and ARC archives, plain, gzip or lz4."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from corpus_builder.capture import Capture, Loss, Shard
from corpus_builder.coding import BODY_LIMIT, decode_body
from corpus_builder.dates import instant
from corpus_builder.errors import BadSourceError
from corpus_builder.sources.http_message import HttpMessage, charset_of, parse_message
from corpus_builder.sources.members import holds_record
from corpus_builder.sources.records import Record, read_records
from corpus_builder.textclean import path_text
from world_core.types import Instant

KIND = "warc"
_BLOCK_LIMIT = BODY_LIMIT + 256 * 1024  # the body and its HTTP head
_WEB = re.compile(r"https?://", re.IGNORECASE)
_RANGE = re.compile(r"bytes\s+0-(\d+)/(\d+)")


@dataclass(frozen=True, slots=True)
class WarcSource:
    """Archive files, one shard each.

    ``default_time`` is given to a capture whose record has no usable date.
    """

    paths: Sequence[Path]
    default_time: Instant = 0

    def shards(self) -> list[Shard]:
        """Return one shard a file, in the order given.

        Raises:
            BadSourceError: a file is missing or is not a WARC.
        """
        for path in self.paths:
            check_archive(path)
        arguments = {"default_time": str(self.default_time)}
        return [Shard(KIND, path, dict(arguments)) for path in self.paths]

    def read(self, shard: Shard) -> Iterator[Capture | Loss]:
        """Yield the archive's captures and losses in file order."""
        with shard.path.open("rb") as file:
            yield from read_archive(
                file, path_text(shard.path.name), int(shard.arguments.get("default_time", "0"))
            )


def check_archive(path: Path) -> None:
    """Raise BadSourceError unless the file can be read and holds at least one record, or nothing.

    A damaged archive passes if a record can be found anywhere in it.
    """
    try:
        with path.open("rb") as file:
            if not file.read(1) or holds_record(file):
                return
    except OSError as error:
        raise BadSourceError(
            f"{path} cannot be read: {error.strerror}.", hint="Check the path and its permissions."
        ) from error
    raise BadSourceError(
        f"{path} is not a WARC.",
        hint="Give a .warc, .warc.gz, .arc, .arc.gz, .wacz or .jsonl file, or a folder of HTML.",
    )


def read_archive(
    file: BinaryIO, origin: str, default_time: Instant = 0
) -> Iterator[Capture | Loss]:
    """Yield captures and losses of an open archive; ``origin`` names it in both."""
    if not file.seek(0, 2):
        yield Loss(origin, 0, "empty file", note=True)
        return
    for item in read_records(file, origin, _BLOCK_LIMIT):
        if isinstance(item, Loss):
            # A cut image or DNS answer is told, but a loss is of the web only.
            yield item if _is_web(item.url) else replace(item, note=True)
        else:
            yield from _captures(item, origin, default_time)


def _is_web(url: str) -> bool:
    return not url or bool(_WEB.match(url))


def _captures(record: Record, origin: str, default_time: Instant) -> Iterator[Capture | Loss]:
    if record.kind == "metadata" and "json" in record.headers.get("content-type", ""):
        yield Loss(origin, record.offset, "metadata record", record.uri, note=True)
    reader = _READERS.get(record.kind)
    if reader is None:
        return
    if not record.uri:
        yield Loss(origin, record.offset, "no URI")
        return
    if not _WEB.match(record.uri):
        return
    item = _unusable(record, origin) or reader(record, origin)
    if isinstance(item, Capture) and not item.time:
        yield Loss(origin, record.offset, "no usable date", record.uri, note=True)
        item = replace(item, time=default_time)
    yield item


def _unusable(record: Record, origin: str) -> Loss | None:
    """Return a loss for a record that says of itself that it is not whole."""
    if record.headers.get("warc-truncated"):
        return _loss(record, origin, "cut short by the crawler")
    if "warc-segment-number" in record.headers:
        return _loss(record, origin, "segmented record")
    return None


def _loss(record: Record, origin: str, reason: str, *, note: bool = False) -> Loss:
    return Loss(origin, record.offset, reason, record.uri, note)


def _address(record: Record) -> str:
    return record.uri.replace(" ", "%20")


def _response(record: Record, origin: str) -> Capture | Loss:
    message = parse_message(record.block)
    if message is None:
        http = "application/http" in record.headers.get("content-type", "application/http")
        if http or not record.block:
            return _loss(record, origin, "no HTTP response")
        return _resource(record, origin)
    if message.status == 304:
        return _loss(record, origin, "unchanged", note=True)
    time = instant(record.headers.get("warc-date", "")) or instant(message.headers.get("date", ""))
    capture = Capture(
        url=_address(record),
        time=time or 0,
        origin=origin,
        offset=record.offset,
        status=message.status,
        mime=message.mime,
        charset=message.charset,
        location=message.headers.get("location", "") if message.status // 100 == 3 else "",
        body=b"",
    )
    return _with_body(capture, message, record) if message.status // 100 == 2 else capture


def _with_body(capture: Capture, message: HttpMessage, record: Record) -> Capture | Loss:
    """Return the capture of a successful answer with its decoded body."""
    if message.status == 206 and not _is_whole_range(message):
        return _loss(record, capture.origin, "part of a body")
    body = decode_body(message.headers, message.body)
    return (
        _loss(record, capture.origin, body.flaw) if body.flaw else replace(capture, body=body.data)
    )


def _is_whole_range(message: HttpMessage) -> bool:
    found = _RANGE.match(message.headers.get("content-range", ""))
    return found is not None and int(found[1]) + 1 == int(found[2])


def _resource(record: Record, origin: str) -> Capture | Loss:
    if len(record.block) > BODY_LIMIT:
        return _loss(record, origin, "too large")
    content_type = record.headers.get("content-type", "")
    return Capture(
        url=_address(record),
        time=instant(record.headers.get("warc-date", "")) or 0,
        origin=origin,
        offset=record.offset,
        mime=content_type.partition(";")[0].strip().lower(),
        charset=charset_of(content_type),
        body=record.block,
    )


def _conversion(record: Record, origin: str) -> Capture | Loss:
    """Return a text that a crawler extracted (WET), always UTF-8."""
    item = _resource(record, origin)
    return item if isinstance(item, Loss) else replace(item, charset="utf-8")


def _revisit(record: Record, origin: str) -> Capture | Loss:
    """Return a note, or a redirect to the address whose content was found here again.

    An unchanged capture of the same address adds nothing to the world. Equal content under another
    address makes that address an alias, which is written as a permanent redirect.
    """
    target = record.headers.get("warc-refers-to-target-uri", "").strip("<> ")
    if not target or target == record.uri or not _WEB.match(target):
        return _loss(record, origin, "unchanged", note=True)
    return Capture(
        url=_address(record),
        time=instant(record.headers.get("warc-date", "")) or 0,
        origin=origin,
        offset=record.offset,
        status=308,
        location=target.replace(" ", "%20"),
        body=b"",
    )


def _continuation(record: Record, origin: str) -> Capture | Loss:
    return _loss(record, origin, "segmented record")


_READERS = {
    "response": _response,
    "resource": _resource,
    "conversion": _conversion,
    "revisit": _revisit,
    "continuation": _continuation,
}
