"""Files of rows: one JSON value a line, compressed, read and written as a stream."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import orjson
import zstandard

from corpus_builder.capture import Draft
from world_core.types import Link, PageRecord, VersionRecord

LEVEL = 3
LINE_FEED = b"\n"


def write_rows(path: Path, rows: Iterable[object]) -> int:
    """Write the rows durably under their final name; return how many.

    Dataclasses become objects of their fields. A crash leaves no file of that name.
    """
    part = path.with_name(path.name + ".part")
    count = 0
    with part.open("wb") as file:
        with zstandard.ZstdCompressor(LEVEL).stream_writer(file, closefd=False) as stream:
            for row in rows:
                stream.write(orjson.dumps(row))
                stream.write(LINE_FEED)
                count += 1
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    return count


def read_rows(path: Path) -> Iterator[list[object] | dict[str, object]]:
    """Yield the rows of a file in order; memory does not grow with the file."""
    with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as stream:
        for line in io.BufferedReader(stream, 1 << 16):
            yield orjson.loads(line)


def draft_from(row: dict[str, object]) -> Draft:
    """Return the draft that a row was written from."""
    return Draft(**{**row, "links": _links(row["links"])})  # type: ignore[arg-type]  # written by us


def page_from(row: dict[str, object]) -> PageRecord:
    """Return the page that a row was written from."""
    versions = row["versions"]
    aliases = row["aliases"]
    if not isinstance(versions, list) or not isinstance(aliases, list):
        raise TypeError(f"a row without versions and aliases: {sorted(row)}")
    return PageRecord(
        page_id=str(row["page_id"]),
        key=str(row["key"]),
        url=str(row["url"]),
        versions=tuple(
            VersionRecord(**{**version, "links": _links(version["links"])}) for version in versions
        ),
        aliases=tuple(aliases),
    )


def _links(value: object) -> tuple[Link, ...]:
    if not isinstance(value, list):
        raise TypeError(f"links are a list, not {value!r}")
    return tuple(Link(link["url"], link["text"]) for link in value)
