"""Keep the nesting of a page within what the parsers bear, in time linear in its size."""

from __future__ import annotations

import re

DEPTH_LIMIT = 150
"""Open elements below which markup is left alone; the parser itself gives up at 256."""

REFUSED_DEPTH = 50_000

_TAG = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style|textarea|title|xmp)\b[^>]*>.*?(?:</\1\s*>|\Z)"
    r"|<(/?)([A-Za-z][A-Za-z0-9:-]*)((?:[^<>\"']|\"[^\"]*\"|'[^']*')*)>",
    re.DOTALL | re.IGNORECASE,
)
_VOID = frozenset(
    [
        "area", "base", "basefont", "br", "col", "embed", "hr", "img", "input", "link", "meta",
        "param", "source", "track", "wbr",
    ]
)  # fmt: skip
# Elements whose end tag may be left out never pile up, however many are opened.
_SELF_CLOSING = frozenset(
    [
        "p", "li", "dt", "dd", "tr", "td", "th", "thead", "tbody", "tfoot", "option", "optgroup",
        "colgroup", "rp", "rt", "html", "head", "body",
    ]
)  # fmt: skip
_HIDDEN = re.compile(r"\bhidden\b|display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)


_COUNTED = re.compile(
    r"<(/?)(?!(?:" + "|".join(sorted(_VOID | _SELF_CLOSING)) + r")[\s>/])[A-Za-z]", re.IGNORECASE
)


def within_depth(html: str, limit: int = DEPTH_LIMIT) -> str | None:
    """Return the markup without the tags that nest deeper than ``limit``; their content stays.

    A page that nests less is returned as it is, and None if it nests deeper than any page would.
    The content of deep hidden elements goes with them, since nothing later could tell that it was
    hidden.
    """
    depth = _depth(html)
    if depth > REFUSED_DEPTH:
        return None
    return _Flattener(limit).flatten(html) if depth > limit else html


def _depth(html: str) -> int:
    """Return about how many elements are open at once, counted cheaply."""
    depth = deepest = 0
    for found in _COUNTED.finditer(html):
        if found[1]:
            depth = max(0, depth - 1)
        else:
            depth += 1
            deepest = max(deepest, depth)
            if deepest > REFUSED_DEPTH:
                break
    return deepest


class _Flattener:
    """Walks the tags of a page and leaves out those that stand too deep."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._depth = 0
        self._hidden_at: int | None = None  # the depth around a deep hidden element

    def flatten(self, html: str) -> str:
        kept: list[str] = []
        position = 0
        for found in _TAG.finditer(html):
            self._keep(kept, html[position : found.start()])
            position = found.end()
            name = (found[3] or "").lower()
            if not name or name in _VOID or name in _SELF_CLOSING:
                self._keep(kept, found[0])
            elif found[2]:
                self._close(kept, found[0])
            else:
                self._open(kept, found[0], found[4])
        self._keep(kept, html[position:])
        return "".join(kept)

    def _keep(self, kept: list[str], piece: str) -> None:
        if self._hidden_at is None:
            kept.append(piece)

    def _open(self, kept: list[str], tag: str, attributes: str) -> None:
        if not attributes.endswith("/"):
            self._depth += 1
        if self._depth <= self._limit:
            kept.append(tag)
        elif self._hidden_at is None and _HIDDEN.search(attributes):
            self._hidden_at = self._depth - 1

    def _close(self, kept: list[str], tag: str) -> None:
        self._keep(kept, tag if self._depth <= self._limit else " ")
        self._depth = max(0, self._depth - 1)
        if self._hidden_at is not None and self._depth <= self._hidden_at:
            self._hidden_at = None
