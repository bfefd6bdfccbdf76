"""The tables of the page store, the same in SQLite and PostgreSQL, and what their rows hold."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
import zstandard

from world_core.errors import BadInputError, PageStoreError
from world_core.types import Link, StoredVersion, VersionMeta, VersionRecord

LAYOUT = 1
"""Raised when the tables change; written into ``summary`` last, so it also marks completion."""

_LEVEL = 9
_LINKS_LIMIT = 1 << 30
_INT64 = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class PageCounts:
    """How much a page store holds; ``links`` and ``characters`` are over all versions."""

    pages: int
    versions: int
    aliases: int
    dead_links: int
    links: int
    characters: int


@dataclass(frozen=True, slots=True)
class PageTables:
    """The tables of one page store.

    Keys are found by their page id (``world_core.urls.page_id``), which keeps the indexes small
    and free of the length limit that PostgreSQL puts on indexed text.
    """

    pages: sa.Table
    aliases: sa.Table
    versions: sa.Table
    dead: sa.Table
    summary: sa.Table

    @property
    def all(self) -> tuple[sa.Table, ...]:
        """The tables in the order they are made."""
        return (self.pages, self.aliases, self.versions, self.dead, self.summary)


def page_tables(schema: str | None = None) -> PageTables:
    """Return the tables; ``schema`` tells the worlds in one PostgreSQL database apart.

    Columns with bulk stand last in ``versions``, so that reading the others never touches them.
    """
    data = sa.MetaData(schema=schema)
    return PageTables(
        pages=_pages(data),
        aliases=_aliases(data),
        versions=_versions(data),
        dead=_dead(data),
        summary=sa.Table(
            "summary", data, sa.Column("name", sa.Text, primary_key=True), _number("value")
        ),
    )


def _pages(data: sa.MetaData) -> sa.Table:
    return sa.Table(
        "pages",
        data,
        _number("number", primary_key=True),
        _text("page_id"),
        _text("key"),
        _text("url"),
        _number("first_version"),
        _number("version_count"),
        sa.Index("pages_by_id", "page_id", unique=True),
    )


def _aliases(data: sa.MetaData) -> sa.Table:
    return sa.Table(
        "aliases",
        data,
        _text("key_id"),
        _text("key"),
        _number("page"),
        sa.Index("aliases_by_id", "key_id", unique=True),
        sa.Index("aliases_by_page", "page"),
    )


def _versions(data: sa.MetaData) -> sa.Table:
    return sa.Table(
        "versions",
        data,
        _number("number", primary_key=True),
        _number("page"),
        _text("title"),
        _text("language"),
        _number("published", nullable=True),
        _number("modified", nullable=True),
        _number("valid_from"),
        _number("valid_to"),
        _text("mime"),
        _number("characters"),
        *(
            sa.Column(name, sa.LargeBinary, nullable=False)
            for name in ("text_digest", "links", "text")
        ),
    )


def _dead(data: sa.MetaData) -> sa.Table:
    return sa.Table(
        "dead",
        data,
        _number("number", primary_key=True),
        _text("key_id"),
        _text("key"),
        _text("url"),
        _number("status"),
        _number("time"),
        sa.Index("dead_by_id", "key_id", unique=True),
    )


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def _number(name: str, *, primary_key: bool = False, nullable: bool = False) -> sa.Column[int]:
    """Return a 64-bit column; SQLite wants INTEGER for a key that is the row's own place."""
    kind = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    return sa.Column(name, kind, primary_key=primary_key, nullable=nullable, autoincrement=False)


def checked_text(what: str, text: str) -> str:
    """Return the text if a database can hold it.

    Raises:
        BadInputError: it holds NUL or half a surrogate pair.
    """
    if "\0" in text:
        raise BadInputError(
            f"The {what} {text[:80]!a} holds NUL at character {text.index(chr(0))}.",
            hint="Remove control characters before pages are stored.",
        )
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadInputError(
            f"The {what} {text[:80]!a} holds half a surrogate pair at character {error.start}.",
            hint="Replace lone surrogates before pages are stored.",
        ) from error
    return text


def checked_number(what: str, number: int | None) -> int | None:
    """Return the number if it fits 64 bits.

    Raises:
        BadInputError: it does not.
    """
    if number is not None and number not in _INT64:
        raise BadInputError(f"The {what} {number} does not fit 64 bits.")
    return number


def packer() -> zstandard.ZstdCompressor:
    """Return the compressor of ``version_row``; one serves one thread."""
    return zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True, write_content_size=True)


def version_row(
    number: int, page: int, version: VersionRecord, compressor: zstandard.ZstdCompressor
) -> dict[str, object]:
    """Return the row of a version; text and links are compressed, each with a checksum.

    Raises:
        BadInputError: a value that no database can hold.
    """
    text = checked_text("text", version.text).encode("utf-8")
    links = [
        [checked_text("link", link.url), checked_text("link text", link.text)]
        for link in version.links
    ]
    pairs = json.dumps(links, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    return {
        "number": number,
        "page": page,
        "title": checked_text("title", version.title),
        "language": checked_text("language", version.language),
        "published": checked_number("publication time", version.published),
        "modified": checked_number("modification time", version.modified),
        "valid_from": checked_number("capture time", version.valid_from),
        "valid_to": checked_number("capture time", version.valid_to),
        "mime": checked_text("MIME type", version.mime),
        "characters": len(version.text),
        "text_digest": hashlib.sha256(text).digest(),
        "links": compressor.compress(pairs),
        "text": compressor.compress(text),
    }


def meta_columns(tables: PageTables) -> tuple[sa.Column[Any], ...]:
    """Return the columns of a ``VersionMeta`` in the order of its fields."""
    versions, pages = tables.versions.c, tables.pages.c
    return (
        versions.number,
        versions.page,
        pages.page_id,
        pages.url,
        versions.title,
        versions.language,
        versions.published,
        versions.modified,
        versions.valid_from,
        versions.valid_to,
        versions.characters,
    )


def body_columns(tables: PageTables) -> tuple[sa.Column[Any], ...]:
    """Return the columns that ``stored_version`` reads after those of the meta."""
    columns = tables.versions.c
    return (columns.mime, columns.text_digest, columns.links, columns.text)


def stored_version(row: Sequence[Any]) -> StoredVersion:
    """Return the version of a row of ``meta_columns`` and ``body_columns``.

    Raises:
        PageStoreError: text or links are torn.
    """
    meta = VersionMeta(*row[:11])
    mime, digest, links, text = row[11:]
    raw = _unpacked(meta, text, 4 * meta.characters)
    if hashlib.sha256(raw).digest() != digest:
        raise _torn(meta, "its text differs from its digest")
    try:
        pairs = json.loads(_unpacked(meta, links, _LINKS_LIMIT))
        return StoredVersion(
            meta, raw.decode("utf-8"), tuple(Link(url, label) for url, label in pairs), mime
        )
    except (ValueError, TypeError) as error:
        raise _torn(meta, str(error)) from error


def _unpacked(meta: VersionMeta, blob: bytes, limit: int) -> bytes:
    """Return the bytes of a frame that may not claim more than ``limit`` bytes."""
    try:
        size = zstandard.frame_content_size(blob)
        if not 0 <= size <= limit:
            raise _torn(meta, f"a frame claims {size} bytes")
        return zstandard.ZstdDecompressor().decompress(blob, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise _torn(meta, str(error)) from error


def _torn(meta: VersionMeta, what: str) -> PageStoreError:
    return PageStoreError(
        f"Version {meta.version} of {meta.url} is damaged in the page store: {what}.",
        hint="Check the world: world-server check PATH.",
    )
