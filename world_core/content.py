"""The world id: one sha256 over a world's content, fed line by line in canonical order."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from enum import IntEnum

from world_core.errors import BadInputError
from world_core.types import DeadLink, PageRecord, Span, VersionRecord

DIGEST_FORMAT = 1
"""Raised when the lines below change, so that old and new ids cannot be taken for each other."""


def canonical_json(value: object) -> bytes:
    """Return the value as canonical JSON: sorted keys, no spaces, UTF-8, no line feed.

    Raises:
        BadInputError: the value holds NaN, infinity, half a surrogate pair or an unknown type.
    """
    try:
        text = json.dumps(
            value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        )
        return text.encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInputError(
            f"This {type(value).__name__} cannot be written as canonical JSON: {error}.",
            hint="Clean the text (no half surrogates) and the numbers (no NaN) first.",
        ) from error


class _Part(IntEnum):
    """The parts of the content in the order they must be fed."""

    NOTHING = 0
    HEADER = 1
    PAGES = 2
    DEAD_LINKS = 3
    PASSAGES = 4


class ContentDigest:
    """Computes the world id of ``docs/format.md``.

    Call ``header`` once, then ``page`` in ascending page id, ``dead`` in ascending key, and
    ``passage`` in ascending (version, start). Memory does not grow with the world; the id depends
    on nothing but what is fed. Aliases are a set: their order in the record does not matter.
    """

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._part = _Part.NOTHING
        self._page_id = ""
        self._dead_key = ""
        self._passage = (-1, -1)

    def header(self, *, recipe: Mapping[str, object], encoder_id: str, analyzer_id: str) -> None:
        """Feed what determines the content besides the captures.

        ``recipe`` is the content-determining part of the recipe, of JSON types.

        Raises:
            BadInputError: the header was fed before, or the recipe is no JSON.
        """
        if self._part is not _Part.NOTHING:
            raise BadInputError("The header of a world id was fed twice; it comes first and once.")
        self._part = _Part.HEADER
        self._line({"format": DIGEST_FORMAT})
        self._line({"recipe": dict(recipe)})
        self._line({"encoder": encoder_id})
        self._line({"analyzer": analyzer_id})

    def page(self, page: PageRecord) -> None:
        """Feed a page with its versions, aliases and links.

        Raises:
            BadInputError: out of order, or a text holds half a surrogate pair.
        """
        self._enter(_Part.PAGES)
        if page.page_id <= self._page_id:
            raise _disorder("page", page.page_id, self._page_id)
        self._page_id = page.page_id
        self._line(
            {
                "aliases": sorted(page.aliases),
                "key": page.key,
                "page_id": page.page_id,
                "url": page.url,
                "versions": [_version(version) for version in page.versions],
            }
        )

    def dead(self, link: DeadLink) -> None:
        """Feed a dead link.

        Raises:
            BadInputError: out of order, or a text holds half a surrogate pair.
        """
        self._enter(_Part.DEAD_LINKS)
        if link.key <= self._dead_key:
            raise _disorder("dead link", link.key, self._dead_key)
        self._dead_key = link.key
        self._line({"key": link.key, "status": link.status, "time": link.time, "url": link.url})

    def passage(self, version: int, span: Span) -> None:
        """Feed a passage by its version number and its characters.

        Raises:
            BadInputError: out of order.
        """
        self._enter(_Part.PASSAGES)
        if (version, span.start) <= self._passage:
            raise _disorder("passage", f"{version}, {span.start}", f"{self._passage}")
        self._passage = (version, span.start)
        # Passages outnumber pages by far: the same line as _line would write, without the encoder.
        self._hash.update(b"[%d,%d,%d]\n" % (version, span.start, span.end))

    def hexdigest(self) -> str:
        """Return the world id of what was fed so far, 64 hex digits.

        Raises:
            BadInputError: there was no header yet.
        """
        if self._part is _Part.NOTHING:
            raise BadInputError("A world id was asked for before its header was fed.")
        return self._hash.hexdigest()

    def _enter(self, part: _Part) -> None:
        """Refuse a part before the header or after a later part."""
        if self._part is _Part.NOTHING or part < self._part:
            raise BadInputError(
                f"The world id was fed {part.name.lower()} after {self._part.name.lower()}; "
                "the order is header, pages, dead links, passages."
            )
        self._part = part

    def _line(self, value: object) -> None:
        self._hash.update(canonical_json(value))
        self._hash.update(b"\n")


def _disorder(kind: str, found: str, before: str) -> BadInputError:
    return BadInputError(
        f"The {kind} {found!a} was fed to the world id after {before!a}; "
        "the order is strictly ascending."
    )


def _version(version: VersionRecord) -> dict[str, object]:
    return {
        "language": version.language,
        "links": [[link.url, link.text] for link in version.links],
        "mime": version.mime,
        "modified": version.modified,
        "published": version.published,
        "text": version.text,
        "title": version.title,
        "valid_from": version.valid_from,
        "valid_to": version.valid_to,
    }
