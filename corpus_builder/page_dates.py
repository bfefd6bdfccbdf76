"""When a page says it was published and changed, never later than it was captured."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from corpus_builder.dates import instant
from corpus_builder.html_page import HtmlPage
from world_core.types import Instant

_PUBLISHED = (
    "article:published_time",
    "og:published_time",
    "og:article:published_time",
    "datepublished",
    "citation_publication_date",
    "citation_date",
    "dc.date.issued",
    "dcterms.issued",
    "dc.date.created",
    "dcterms.created",
    "dc.date",
    "dcterms.date",
    "pubdate",
    "publishdate",
    "publish-date",
    "publish_date",
    "parsely-pub-date",
    "sailthru.date",
    "date",
)
_MODIFIED = (
    "article:modified_time",
    "og:updated_time",
    "og:modified_time",
    "datemodified",
    "dcterms.modified",
    "dc.date.modified",
    "last-modified",
    "revised",
)
_JSON_LD_LIMIT = 200_000
_JSON_DATE = re.compile(r'"(datePublished|dateModified)"\s*:\s*"([^"]{6,40})"')
_EARLIEST = int(datetime(1990, 1, 1, tzinfo=UTC).timestamp())
_DATED_TAGS = ("time", "abbr")
_DATED = re.compile(
    r"(?:^|[\s_-])(?:date|dateline|pubdate|published|posted|byline|timestamp|post-?meta"
    r"|entry-?(?:date|meta))(?:$|[\s_-])",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class PageDates:
    """Dates a page gives of itself; None where it gives none that can be believed."""

    published: Instant | None = None
    modified: Instant | None = None


def page_dates(page: HtmlPage, captured: Instant) -> PageDates:
    """Return the page's dates: from its metadata, its structured data, its time elements, its text.

    A date after ``captured`` is not believed; a capture time of 0 or less is unknown and bounds
    nothing.
    """
    published, modified = _json_ld(page)
    published += _metas(page, _PUBLISHED) + _time_elements(page)
    modified += _metas(page, _MODIFIED)
    first = next(_believable(published, captured), None)
    if first is None and not published and _names_a_date(page):
        first = next(_believable([_search(page, captured)], captured), None)
    return PageDates(first, next(_believable(modified, captured), None))


def _believable(dates: list[Instant | None], captured: Instant) -> Iterator[Instant]:
    for date in dates:
        if date is not None and date >= _EARLIEST and (captured <= 0 or date <= captured):
            yield date


def _metas(page: HtmlPage, names: tuple[str, ...]) -> list[Instant | None]:
    return [instant(page.metas[name]) for name in names if name in page.metas]


def _json_ld(page: HtmlPage) -> tuple[list[Instant | None], list[Instant | None]]:
    """Return the published and modified dates of the page's structured data, in order."""
    published: list[Instant | None] = []
    modified: list[Instant | None] = []
    for element in page.root.iter("script"):
        if (element.get("type") or "").strip().lower() != "application/ld+json":
            continue
        # The pattern also reads the many blocks that are not quite JSON.
        for name, value in _JSON_DATE.findall((element.text or "")[:_JSON_LD_LIMIT]):
            target = published if name == "datePublished" else modified
            target.append(instant(_unescaped(value)))
    return published, modified


def _unescaped(value: str) -> str:
    try:
        return str(json.loads(f'"{value}"'))
    except ValueError:
        return value


def _time_elements(page: HtmlPage) -> list[Instant | None]:
    """Return the dates of time elements that are marked as the publication's, or stand in a head.

    An article's other time elements may be those of comments or of what it writes about.
    """
    found: list[Instant | None] = []
    for element in page.root.iter("time"):
        names = " ".join(
            element.get(name) or "" for name in ("pubdate", "itemprop", "class", "property")
        ).lower()
        marked = element.get("pubdate") is not None or "publish" in names or "pubdate" in names
        if marked or next(element.iterancestors("header"), None) is not None:
            found.append(instant(element.get("datetime") or element.text_content()))
    return found


def _names_a_date(page: HtmlPage) -> bool:
    """Return whether some element is marked as one that holds the page's date.

    Without such a mark a date in the text is most likely one that the text is about.
    """
    return any(
        element.tag in _DATED_TAGS
        or _DATED.search(f"{element.get('class') or ''} {element.get('id') or ''}")
        for element in page.root.iter(*_DATED_TAGS, "div", "span", "p", "ul", "li", "td", "small")
    )


def _search(page: HtmlPage, captured: Instant) -> Instant | None:
    """Return the date that the page's text and markup give as that of publication."""
    from htmldate import find_date

    latest = (
        datetime.fromtimestamp(captured, UTC) if captured > 0 else datetime(2100, 1, 1, tzinfo=UTC)
    )
    found = find_date(
        page.root,
        extensive_search=False,
        original_date=True,
        url=page.url,
        max_date=latest.replace(tzinfo=None),
    )
    return instant(found) if found else None
