"""Rows of page dumps: one JSON object a line, plain or packed with gzip or zstd.

Known row forms: ``url, title, text``; LiteResearcher's ``url, title, doc``; Dolma's nested form,
with ``metadata``. With a URL template the address comes from other fields, for instance an id.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

from corpus_builder.capture import Capture, Loss, Shard
from corpus_builder.dates import instant
from corpus_builder.decoders import PackedError, gzip_decoder, unpacked, zstd_decoder
from corpus_builder.errors import BadSourceError
from corpus_builder.textclean import path_text
from world_core.types import Instant

KIND = "jsonl"
LINE_LIMIT = 64 * 1024 * 1024
_PROBED_LINES = 100
_TEXT = ("text", "doc", "content", "contents", "body")
_TITLE = ("title", "name")
_URL = ("url", "link", "uri")
_LANGUAGE = ("language", "lang")
_CAPTURED = ("timestamp", "crawl_date", "fetched", "warc_date", "added", "date", "published")
_PUBLISHED = ("published", "published_date", "publish_date", "date_published", "created", "date")
_MODIFIED = ("modified", "updated", "last_modified")
_FIELD = re.compile(r"\{([^{}]+)\}")
_PACKED = {b"\x1f\x8b": gzip_decoder, b"\x28\xb5\x2f\xfd": zstd_decoder}

Row = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class JsonlSource:
    """Dump files, one shard each.

    ``default_time`` is the capture time of rows without a date of their own; ``url_template``, such
    as ``https://cacm.example/{id}``, makes the address of rows that have none.
    """

    paths: Sequence[Path]
    default_time: Instant = 0
    url_template: str = ""

    def shards(self) -> list[Shard]:
        """Return one shard a file.

        Raises:
            BadSourceError: a file is missing, or its first lines hold no JSON object.
        """
        arguments = {"default_time": str(self.default_time), "url_template": self.url_template}
        for path in self.paths:
            _check(path)
        return [Shard(KIND, path, dict(arguments)) for path in self.paths]

    def read(self, shard: Shard) -> Iterator[Capture | Loss]:
        """Yield the file's captures and losses in order; ``offset`` is the line number from 1."""
        origin = path_text(shard.path.name)
        number = 0
        with shard.path.open("rb") as file:
            try:
                for number, line in enumerate(_lines(file), start=1):
                    if line is None:
                        yield Loss(origin, number, "line too long")
                    elif line.strip():
                        yield _read_row(line, origin, number, shard.arguments)
            except PackedError as error:
                yield Loss(origin, number + 1, str(error))
        if not number:
            yield Loss(origin, 0, "empty file", note=True)


def _check(path: Path) -> None:
    try:
        with path.open("rb") as file:
            found = _holds_objects(file)
    except OSError as error:
        raise BadSourceError(
            f"{path} cannot be read: {error.strerror}.", hint="Check the path and its permissions."
        ) from error
    if not found:
        raise BadSourceError(
            f"{path} is not JSONL: its first lines hold no JSON object.",
            hint='Each line must be an object such as {"url": ..., "title": ..., "text": ...}.',
        )


def _holds_objects(file: BinaryIO) -> bool:
    """Return whether one of the first lines is a JSON object, or the file is empty."""
    seen = 0
    try:
        for line in _lines(file):
            if line is None or not line.strip():
                continue
            if isinstance(_parse(line), dict):
                return True
            seen += 1
            if seen == _PROBED_LINES:
                return False
    except PackedError:
        return False
    return not seen


def _lines(file: BinaryIO) -> Iterator[bytes | None]:
    """Yield the lines without their ends, None for one that is too long to hold."""
    head = file.read(4)
    file.seek(0)
    for magic, factory in _PACKED.items():
        if head.startswith(magic):
            yield from _split(unpacked(file, factory))
            return
    yield from _split(iter(lambda: file.read(256 * 1024), b""))


def _split(pieces: Iterator[bytes]) -> Iterator[bytes | None]:
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        first, *others = piece.split(b"\n")
        held.append(first if size <= LINE_LIMIT else b"")
        size += len(first)
        for line in others:
            yield b"".join(held) if size <= LINE_LIMIT else None
            held, size = [line], len(line)
    if size:
        yield b"".join(held) if size <= LINE_LIMIT else None


def _parse(line: bytes) -> object:
    """Return the line's value, or the reason why there is none; NaN and infinities become null."""
    try:
        text = line.decode("utf-8-sig")
    except UnicodeDecodeError:
        return "not UTF-8"
    try:
        return json.loads(text, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return "invalid JSON"


def _read_row(
    line: bytes, origin: str, number: int, arguments: Mapping[str, str]
) -> Capture | Loss:
    row = _parse(line)
    if not isinstance(row, dict):
        known = isinstance(row, str) and row in ("not UTF-8", "invalid JSON")
        return Loss(origin, number, str(row) if known else "not an object")
    nested = row.get("metadata")
    places: tuple[Row, ...] = (row, nested) if isinstance(nested, dict) else (row,)
    url = _text(places, _URL) or _from_template(row, arguments.get("url_template", ""))
    if not url:
        return Loss(origin, number, "no URL")
    text = _text(places, _TEXT)
    if not text.strip():
        return Loss(origin, number, "no text", url)
    default = int(arguments.get("default_time", "0"))
    captured = _time(places, _CAPTURED)
    # A crawl dump's plain date is the day of the crawl.
    names = _PUBLISHED[:-1] if "dump" in row else _PUBLISHED
    return Capture(
        url=url,
        time=default if captured is None else captured,
        origin=origin,
        offset=number,
        mime="text/plain",
        text=text,
        title=_text(places, _TITLE),
        language=_text(places, _LANGUAGE)[:35],
        published=_time(places, names),
        modified=_time(places, _MODIFIED),
    )


def _text(places: Sequence[Row], names: Sequence[str]) -> str:
    """Return the first non-empty text among the names, "" if there is none."""
    for place in places:
        for name in names:
            value = place.get(name)
            if isinstance(value, str) and value:
                return value
    return ""


def _time(places: Sequence[Row], names: Sequence[str]) -> Instant | None:
    for place in places:
        for name in names:
            found = instant(place.get(name))
            if found is not None:
                return found
    return None


def _from_template(row: Row, template: str) -> str:
    """Return the address made from the row's fields, "" if one of them is missing."""
    missing = False

    def value(found: re.Match[str]) -> str:
        nonlocal missing
        field = row.get(found[1])
        missing = missing or not isinstance(field, (str, int)) or not str(field)
        return quote(str(field).encode("utf-8", "replace"), safe="")

    url = _FIELD.sub(value, template)
    return "" if missing else url
