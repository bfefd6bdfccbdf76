"""What a reader is shown of a text: one clean line without Markdown's marks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from world_core.types import Span

# Bars and emphasis, rules, and what stands before a heading, a quotation or a list item.
_MARK: Final = (
    r"[*|`]|(?<![\w:-])(?:-{3,}+:?|:-{2,}+:?)|={3,}+"
    r"|(?<=\n)[ \t]*+(?:\#{1,6}|>+|[-+\u2022])(?=\s)"
)
# The pattern begins with one class, by which the search skips; a single space, the most frequent
# of its characters, is a gap only where marks may follow.
_MARKUP: Final = re.compile(
    r"[\s*|`!\[\]\\](?:"
    rf"(?<=[\s*|`])(?:(?<![ ])|(?=[\s*|`:=-]))(?:{_MARK}|\s)*+"
    r"|(?P<link>(?<=!)\[(?=[^\[\]]*+\]\()"  # the head of an image
    r"|(?<=\[)(?=[^\[\]]*+\]\(|!\[)"  # the head of a link, also around an image
    r"|(?<=\])\((?:[^()\s]|\([^()\s]*+\))*+(?:\s++\"[^\"]*+\")?\)"  # the tail with the target
    r"|(?<=\\)(?=[*_`\#|\[\]()>~+.!-])))"  # the backslash of an escaped mark
)


def shown(text: str, sentences: Sequence[Span]) -> tuple[str, list[int]]:
    """Return the text as one line without marks, and where its sentences begin in that line.

    White space runs become one space, targets of links and images go, their words stay. The first
    sentence begins at 0; one of which nothing is shown is left out. An empty line has none.

    Args:
        text: Markdown.
        sentences: its sentences, in order.
    """
    line, marks = _without_marks(text)
    starts = _moved([sentence.start for sentence in sentences], marks)
    edges = [0, *dict.fromkeys(start for start in starts if start), len(line)]
    pieces: list[str] = []
    begins: list[int] = []
    length = 0
    spaced = False
    for first, last in pairwise(edges):
        part = line[first:last]
        # Replaced marks side by side may have left two spaces.
        words = " ".join(part.split())
        if words:
            if length and (spaced or part[0].isspace()):
                pieces.append(" ")
                length += 1
            begins.append(length)
            pieces.append(words)
            length += len(words)
            spaced = part[-1].isspace()
        elif part:
            spaced = True
    return "".join(pieces), begins


def _without_marks(text: str) -> tuple[str, list[tuple[int, int, int]]]:
    """Take white space runs and marks out.

    Returns:
        The line, and of each replaced range its begin, its end and the characters lost up to there.
    """
    parts: list[str] = []
    ranges: list[tuple[int, int, int]] = []
    done = gone = 0
    # Marks that need a line's begin find one at the text's begin, too.
    for match in _MARKUP.finditer(f"\n{text}"):
        first, last = max(0, match.start() - 1), match.end() - 1
        gap = " " if first and match["link"] is None and _is_gap(text, first, last) else ""
        parts += (text[done:first], gap)
        gone += last - first - len(gap)
        ranges.append((first, last, gone))
        done = last
    parts.append(text[done:])
    return "".join(parts), ranges


def _is_gap(text: str, first: int, last: int) -> bool:
    """Tell whether words stand apart without these marks; of ``2*3`` the digits must."""
    marks = text[first:last]
    if marks.strip("*`"):
        return True
    return marks == "*" and text[first - 1].isalnum() and text[last : last + 1].isalnum()


def _moved(offsets: Sequence[int], ranges: Sequence[tuple[int, int, int]]) -> list[int]:
    """Return where ascending offsets stand in the line; inside a replaced range, at its end."""
    moved: list[int] = []
    at = 0
    last = lost = 0
    for offset in offsets:
        while at < len(ranges) and ranges[at][0] <= offset:
            _, last, lost = ranges[at]
            at += 1
        moved.append(max(offset, last) - lost)
    return moved
