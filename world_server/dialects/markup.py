"""Markdown as plain text, and texts cut to a number of tokens."""

from __future__ import annotations

import re

BYTES_A_TOKEN = 4
"""UTF-8 bytes counted as one token: an estimate that needs no tokenizer and never changes."""

_LINK = re.compile(r"!?\[([^\[\]\n]{0,1000})\]\([^()\s]{0,2000}(?: \"[^\"\n]{0,200}\")?\)")
_HEADING = re.compile(r"^#{1,6} +", re.MULTILINE)
_QUOTE = re.compile(r"^(?:> ?)+", re.MULTILINE)
_STRONG = re.compile(r"(\*\*|__)(?=\S)([^*_\n]{1,500})(?<=\S)\1")
_CODE = re.compile(r"`{1,3}([^`\n]{1,500})`{1,3}")
_FENCE = re.compile(r"^```[^\n]{0,80}\n?", re.MULTILINE)


def plain_text(markdown: str) -> str:
    """Return the text without Markdown's marks: links and images keep their words.

    Every pattern is bounded, so the time is linear in the length of the text.
    """
    text = _LINK.sub(r"\1", markdown)
    text = _FENCE.sub("", text)
    text = _HEADING.sub("", text)
    text = _QUOTE.sub("", text)
    text = _STRONG.sub(r"\2", text)
    return _CODE.sub(r"\1", text)


def count_tokens(text: str) -> int:
    """Return the tokens of a text, by :data:`BYTES_A_TOKEN`, rounded up."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_A_TOKEN)


def cut_to_tokens(text: str, tokens: int) -> str:
    """Return the longest beginning of the text that counts at most ``tokens``."""
    return text.encode("utf-8", "replace")[: max(0, tokens) * BYTES_A_TOKEN].decode(
        "utf-8", "ignore"
    )
