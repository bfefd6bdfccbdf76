"""A parsed HTML page: its base, links, title, canonical address, language and redirect."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from lxml import etree, html

from corpus_builder.nesting import within_depth
from corpus_builder.textclean import one_line
from world_core.types import Link
from world_core.urls import resolve

LINK_LIMIT = 5000
LINK_TEXT_LIMIT = 300
TITLE_LIMIT = 500
_REFRESH = re.compile(
    r"""\s*(\d{1,6})(?:\.\d*)?\s*[;,]\s*(?:url\s*=\s*)?["']?([^"']+)""", re.IGNORECASE
)
_STUB_DELAY = 2  # seconds before a refresh that is meant as a redirect
_STUB_TEXT = 400  # characters that such a page may show
_CONTROLS = re.compile("[\x00-\x08\x0b\x0e-\x1f]")


class TooDeepError(Exception):
    """The elements of a page nest deeper than any page would."""


@dataclass(frozen=True)
class HtmlPage:
    """A page's element tree and the address it was captured at."""

    root: html.HtmlElement
    url: str

    @cached_property
    def base(self) -> str:
        """The address that links are relative to."""
        for element in self.root.iter("base"):
            href = element.get("href")
            if href:
                return resolve(self.url, href) or self.url
        return self.url

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """The absolute web links of the page in order, each address once, with its first text."""
        targets: dict[str, str] = {}
        texts: dict[str, str] = {}
        for element in self.root.iter("a", "area"):
            href = element.get("href")
            if not href or href.startswith("#"):
                continue
            if href not in targets:
                if len(targets) == LINK_LIMIT:
                    break
                targets[href] = resolve(self.base, href)
            url = targets[href]
            if url and not texts.get(url):
                text = one_line(element.text_content() or element.get("title") or "")
                texts[url] = text[:LINK_TEXT_LIMIT]
        return tuple(Link(url, text) for url, text in texts.items())

    @cached_property
    def metas(self) -> dict[str, str]:
        """The contents of the meta elements by lower-case name or property, the first of each."""
        found: dict[str, str] = {}
        for element in self.root.iter("meta"):
            name = element.get("property") or element.get("name") or element.get("itemprop")
            content = element.get("content")
            if name and content:
                found.setdefault(name.strip().lower(), content)
        return found

    @property
    def title(self) -> str:
        """The title the page gives itself, else its first heading, else ""."""
        for name in ("og:title", "twitter:title"):
            if title := one_line(self.metas.get(name, "")):
                return title[:TITLE_LIMIT]
        for tag in ("title", "h1"):
            for element in self.root.iter(tag):
                parent = element.getparent()
                if parent is not None and parent.tag == "svg":
                    continue
                if title := one_line(element.text_content()):
                    return title[:TITLE_LIMIT]
        return ""

    @property
    def language(self) -> str:
        """The language tag the page declares, "" if none."""
        declared = self.root.get("lang") or self.root.get("xml:lang")
        return declared or self.metas.get("content-language", "")

    @property
    def canonical(self) -> str:
        """The absolute address the page names as its own, "" if none."""
        for element in self.root.iter("link"):
            href = element.get("href")
            if href and "canonical" in (element.get("rel") or "").lower().split():
                return resolve(self.base, href)
        return ""

    @property
    def refresh(self) -> str:
        """The target of a page that only sends its reader on at once, "" if it is a page."""
        for element in self.root.iter("meta"):
            if (element.get("http-equiv") or "").strip().lower() != "refresh":
                continue
            found = _REFRESH.match(element.get("content") or "")
            # A refresh for readers without scripts stands on a page that others see.
            if not found or int(found[1]) > _STUB_DELAY or _inside(element, "noscript"):
                continue
            if len(one_line(self.visible_text)) <= _STUB_TEXT:
                return resolve(self.base, found[2].strip())
        return ""

    @property
    def visible_text(self) -> str:
        """The text of the body without scripts and styles, unformatted."""
        body = self.root.find("body")
        pieces: list[str] = []
        for element in (self.root if body is None else body).iter():
            if isinstance(element.tag, str) and element.tag not in ("script", "style", "title"):
                pieces.append(element.text or "")
            pieces.append(element.tail or "")
        return " ".join(pieces)


def _inside(element: html.HtmlElement, tag: str) -> bool:
    return next(element.iterancestors(tag), None) is not None


def parse_html(text: str, url: str) -> HtmlPage | None:
    """Return the parsed page, None if there is no element in the text.

    Raises:
        TooDeepError: its elements nest deeper than any page would.
    """
    shallow = within_depth(_CONTROLS.sub("", text))
    if shallow is None:
        raise TooDeepError
    parser = html.HTMLParser(encoding="utf-8", remove_pis=True, huge_tree=True, collect_ids=False)
    try:
        root = html.document_fromstring(shallow.encode("utf-8", "replace"), parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):
        return None
    return HtmlPage(root, url) if isinstance(root, html.HtmlElement) else None
