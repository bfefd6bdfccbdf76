"""From a capture to a draft: decode, parse, take the text, title, language, dates and links."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from corpus_builder.capture import Capture, Draft, Loss
from corpus_builder.charset import decode
from corpus_builder.html_page import TITLE_LIMIT, HtmlPage, TooDeepError, parse_html
from corpus_builder.language import language_of
from corpus_builder.main_text import main_text
from corpus_builder.media import Media, media_of
from corpus_builder.page_dates import page_dates
from corpus_builder.quality import drop_reason
from corpus_builder.textclean import clean, one_line, tidy
from world_core.types import Instant, Link
from world_core.urls import canonical, display, resolve

_REDIRECTS = frozenset({300, 301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True)
class ExtractSettings:
    """``least_words`` is the number of words below which a page is dropped as too short."""

    least_words: int = 1


DEFAULTS = ExtractSettings()


def extract(capture: Capture, *, settings: ExtractSettings = DEFAULTS) -> Draft | Loss:
    """Return the draft of a capture, or why it gives none. Never raises on a bad page.

    Equal captures give equal drafts. The time a page takes grows with its size only; a caller that
    wants a hard limit runs this in a process of its own.
    """
    key = canonical(capture.url)
    if not key:
        return _loss(capture, "not a web address")
    draft = Draft(
        key=key,
        url=display(capture.url),
        time=capture.time,
        origin=capture.origin,
        offset=capture.offset,
        mime=capture.mime or "text/html",
    )
    if capture.text is not None:
        return _row(draft, capture, settings)
    if capture.status in _REDIRECTS and capture.location:
        target = resolve(capture.url, capture.location)
        if not target:
            return _loss(capture, "redirect to no web address", note=True)
        return replace(draft, status=capture.status, redirect=target)
    if not 200 <= capture.status < 300:
        return replace(draft, status=capture.status)
    return _response(draft, capture, settings)


def prepare() -> None:
    """Load the models that extraction needs, so that the first page of a process costs no more."""
    language_of("This sentence only makes the language model load before the first page is read.")


def _loss(capture: Capture, reason: str, *, note: bool = False) -> Loss:
    return Loss(capture.origin, capture.offset, reason, capture.url, note)


def _row(draft: Draft, capture: Capture, settings: ExtractSettings) -> Draft | Loss:
    """Return the draft of a dump row, whose text is taken as it is."""
    text = clean(capture.text or "").strip("\n")
    title = one_line(capture.title)[:TITLE_LIMIT]
    return _checked(
        replace(
            draft,
            title=title,
            text=text,
            language=language_of(f"{title}\n{text}", capture.language),
            published=_bounded(capture.published, capture.time),
            modified=_bounded(capture.modified, capture.time),
            links=_cleaned(capture.links),
            declared=True,
        ),
        capture,
        settings,
    )


def _response(draft: Draft, capture: Capture, settings: ExtractSettings) -> Draft | Loss:
    body = capture.body or b""
    media = media_of(capture.mime, body)
    if media is Media.PDF:
        return _loss(capture, "no text in PDF")
    if media is Media.OTHER:
        # Pictures, styles and scripts of a page are no pages, so nothing is lost.
        return _loss(capture, "not a text type", note=True)
    draft = replace(
        draft,
        status=200,
        modified=_bounded(capture.modified, capture.time),
        links=_cleaned(capture.links),
    )
    if media is Media.TEXT:
        return _plain(draft, capture, settings, decode(body, capture.charset, html=False))
    try:
        page = parse_html(decode(body, capture.charset), capture.url)
    except TooDeepError:
        return _loss(capture, "too deep")
    return _loss(capture, "no text") if page is None else _page(draft, capture, settings, page)


def _plain(draft: Draft, capture: Capture, settings: ExtractSettings, text: str) -> Draft | Loss:
    """Return the draft of a text that is no markup; its first line stands for a title."""
    text = tidy(text)
    first = one_line(text.lstrip().partition("\n")[0])
    titled = draft.mime == "text/plain" and bool(re.search(r"\w", first))
    title = one_line(capture.title) or (first[:200] if titled else "")
    draft = replace(draft, title=title, text=text, language=language_of(text, capture.language))
    return _checked(draft, capture, settings)


def _page(
    draft: Draft, capture: Capture, settings: ExtractSettings, page: HtmlPage
) -> Draft | Loss:
    target = page.refresh
    if target and canonical(target) != draft.key:
        return replace(draft, redirect=target)
    dates = page_dates(page, capture.time)
    links = page.links
    title = page.title or one_line(capture.title)
    declared = page.language
    own = canonical(page.canonical)
    text = main_text(page.root)
    draft = replace(
        draft,
        canonical="" if own == draft.key else own,
        title=title,
        text=text,
        language=language_of(text, declared or capture.language),
        published=dates.published or _bounded(capture.published, capture.time),
        modified=dates.modified or draft.modified,
        links=links or draft.links,
    )
    return _checked(draft, capture, settings)


def _checked(draft: Draft, capture: Capture, settings: ExtractSettings) -> Draft | Loss:
    reason = drop_reason(draft.text, least_words=settings.least_words)
    return _loss(capture, reason) if reason else draft


def _bounded(date: Instant | None, captured: Instant) -> Instant | None:
    """Return the date unless it is later than the capture, whose time may be unknown (0)."""
    return None if date is None or 0 < captured < date else date


def _cleaned(links: tuple[Link, ...]) -> tuple[Link, ...]:
    return tuple(Link(clean(link.url), one_line(link.text)) for link in links)
