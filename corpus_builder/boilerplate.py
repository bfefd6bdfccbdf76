"""Which parts of a page are not its content: hidden, or there on every page of the site."""

from __future__ import annotations

import re

from lxml import etree, html

_NEVER_TEXT = frozenset(
    [
        "script", "style", "template", "noscript", "iframe", "frame", "object", "embed", "applet",
        "svg", "canvas", "audio", "video", "map", "select", "datalist", "button", "input",
        "textarea", "dialog", "head",
    ]
)  # fmt: skip
# Their text is never a reader's, however much of the page it makes up.
_NEVER_SHOWN = frozenset(
    [
        "script", "style", "template", "iframe", "object", "embed", "applet", "svg", "canvas",
        "audio", "video",
    ]
)  # fmt: skip
_MOST = 0.6
_AROUND = frozenset(["nav", "aside", "footer", "menu"])
_ROLES = frozenset(
    ["navigation", "banner", "contentinfo", "search", "complementary", "menu", "menubar"]
)
_STYLE_HIDDEN = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![.\d])|opacity\s*:\s*0(?![.\d])",
    re.IGNORECASE,
)
_NAMES = re.compile(
    r"(?:^|[\s_-])(?:nav|navbar|navi|navigation|nav(?:header|footer)|menu|sidebar|sphinxsidebar"
    r"|breadcrumbs?|related|headerlink|skip-?(?:link|nav|to-content)|cookie|banner|advert"
    r"|footer|colophon|site-?header|page-?header|masthead|langs?|lang-?menu|toplang|bottomlang)"
    r"(?:$|[\s_-])",
    re.IGNORECASE,
)
_CLUTTER = re.compile(
    r"(?:^|[\s_-])(?:share|sharing|social|comments?|comment-?(?:list|form)|(?:post|entry)-?meta"
    r"|promo|advert(?:isement)?|ads?|newsletter"
    r"|subscri(?:be|ption)|cookie|paywall|teaser|recommend(?:ed|ation)?s?|trending|sponsored"
    r"|widget|outbrain|taboola|disqus|author-bio|related-(?:posts?|articles?|content))"
    r"(?:$|[\s_-])",
    re.IGNORECASE,
)
_TEXT_LENGTH = etree.XPath("string-length(normalize-space(.))")
_PARTS = re.compile(r"[^\s_-]+")
_SHORT_ID = 2
_MARKED = ("div", "section", "ul", "ol", "li", "aside", "ins", "form", "p", "h2", "h3", "h4")
_KEPT = frozenset(["html", "body", "main", "article", "h1"])


def remove_hidden(root: html.HtmlElement) -> None:
    """Remove what a reader never sees: scripts, form controls, elements hidden by attribute.

    An element that holds most of the page's text stays: it is one that was never closed, or that
    a script shows at once.
    """
    _drop([element for element in root.iter() if _is_never_shown(element)])
    doomed = [
        element
        for element in root.iter()
        if (element.tag in _NEVER_TEXT and element.tag != "head") or _is_hidden(element)
    ]
    if doomed:
        most = _MOST * _length(root)
        _drop([element for element in doomed if _length(element) <= most])


def remove_surroundings(root: html.HtmlElement) -> None:
    """Remove navigation, headers and footers, unless next to nothing would be left."""
    doomed = _surroundings(root)
    whole = _length(root)
    if whole - sum(_length(element) for element in doomed) >= 0.1 * whole:
        _drop(doomed)


def is_cluttered(root: html.HtmlElement) -> bool:
    """Return whether the page carries marks of news and shop pages: sharing, adverts, comments.

    On such pages content must be found among much else; on others all that is left is content.
    """
    for element in root.iter(*_MARKED):
        identifier = element.get("id") or ""
        # A longer id is made from a heading of the content.
        short = identifier if len(_PARTS.findall(identifier)) <= _SHORT_ID else ""
        if _CLUTTER.search(f"{element.get('class') or ''} {short}"):
            return True
    return False


def _surroundings(root: html.HtmlElement) -> list[html.HtmlElement]:
    """Return the outermost elements that surround the content."""
    found: list[html.HtmlElement] = []
    waiting = [root]
    while waiting:
        for child in waiting.pop():
            if not isinstance(child.tag, str):
                continue
            if child.tag not in _KEPT and _surrounds(child):
                found.append(child)
            else:
                waiting.append(child)
    return found


def _surrounds(element: html.HtmlElement) -> bool:
    if element.tag in _AROUND or (element.get("role") or "").lower() in _ROLES:
        return next(element.iterancestors("article"), None) is None or element.tag == "nav"
    if element.tag == "header":
        inside = next(element.iterancestors("article", "main"), None) is not None
        return not inside and next(element.iter("h1"), None) is None
    names = _names(element)
    if not names or not _NAMES.search(names):
        return False
    return next(element.iter("h1", "article", "main"), None) is None


def _names(element: html.HtmlElement) -> str:
    return f"{element.get('class') or ''} {element.get('id') or ''}".strip()


def _is_hidden(element: html.HtmlElement) -> bool:
    if element.tag in _KEPT:
        return False
    if element.get("hidden") is not None:
        return True
    style = element.get("style")
    return bool(style) and bool(_STYLE_HIDDEN.search(style or ""))


def _is_never_shown(element: html.HtmlElement) -> bool:
    return not isinstance(element.tag, str) or element.tag in _NEVER_SHOWN


def _length(element: html.HtmlElement) -> float:
    """Return how many characters of text an element holds, runs of white space as one."""
    return float(_TEXT_LENGTH(element))


def _drop(elements: list[html.HtmlElement]) -> None:
    for element in elements:
        parent = element.getparent()
        if parent is None:
            continue
        tail = element.tail
        if tail:
            before = element.getprevious()
            if before is not None:
                before.tail = (before.tail or "") + " " + tail
            else:
                parent.text = (parent.text or "") + " " + tail
        parent.remove(element)
