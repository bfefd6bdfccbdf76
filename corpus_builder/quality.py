"""Why an extracted page is dropped; kept thin, since every readable page belongs in the world."""

from __future__ import annotations

import re

_WORD = re.compile(r"\w")
_WORDS = re.compile(r"\w+")
_SHELL = re.compile(
    r"(?:enable|requires?|turn on|activate|need)[^.\n]{0,40}java ?script"
    r"|java ?script[^.\n]{0,60}(?:enabled?|disabled|required|turned off|necessary)",
    re.IGNORECASE,
)
_SHELL_WORDS = 60


def drop_reason(text: str, *, least_words: int = 1) -> str:
    """Return why a page with this text is left out, "" if it stays.

    ``no text``: nothing but marks; ``script shell``: nothing but the request to switch JavaScript
    on; ``too short``: fewer words than ``least_words``.
    """
    if not _WORD.search(text):
        return "no text"
    words = len(_WORDS.findall(text))
    if words < _SHELL_WORDS and _SHELL.search(text):
        return "script shell"
    return "too short" if words < least_words else ""
