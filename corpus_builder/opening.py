"""The opening of a text, measured in tokens that need no model."""

from __future__ import annotations

import re

_IDEOGRAPHS = "\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
_TOKEN = re.compile(rf"[{_IDEOGRAPHS}]|[^\W{_IDEOGRAPHS}]+|[^\w\s]")
"""A character of Chinese, Japanese or Korean, a word, or any other visible character."""


def opening(text: str, tokens: int) -> int:
    """Return where the first so many tokens of a text end, its length where it has no more.

    Encoders cut words into more tokens than these, and stop at a limit of their own.
    """
    for count, match in enumerate(_TOKEN.finditer(text), start=1):
        if count == tokens:
            return match.end()
    return len(text)
