"""Cutting a text into sentences and passages: exact offsets, linear time, every script."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from world_core.errors import BadInputError
from world_core.types import Span

# Marks that end a sentence before white space, and those that end it without.
_STOPS: Final = ".!?\u2026\u061f\u06d4\u0589\u1362"
_FULL_STOPS: Final = "\u3002\uff01\uff1f\uff61\u0964\u0965\u17d4\u17d5\u104b"
_CLOSERS: Final = r"\"'\u201d\u2019\u00bb\u203a)\]*_`\uff09\u300d\u300f\u3011\u300b\u3009"
# Each alternative is tried only where a run begins and takes the run as a whole, so the time stays
# linear in a text of stops alone.
_BREAK: Final = re.compile(
    r"(?m:^)[ \t]*+\#{1,6}[ \t][^\n]*+"  # a heading is a sentence
    rf"|(?<![{_STOPS}])(?P<stop>[{_STOPS}]++)[{_CLOSERS}]*+(?=\s)"
    rf"|(?<![{_FULL_STOPS}])[{_FULL_STOPS}]++[{_CLOSERS}]*+"
    r"|\n(?:[ \t]*+\n)++"  # a paragraph
    r"|\n(?=[ \t]*+(?:[\#>|*+\u2022-]|\d{1,3}[.)]\s))"  # a list item, a table row
)
_ABBREVIATIONS: Final = frozenset(
    {
        "mr",
        "mrs",
        "ms",
        "dr",
        "prof",
        "st",
        "vs",
        "e.g",
        "i.e",
        "cf",
        "fig",
        "vol",
        "nr",
        "z.b",
        "d.h",
    }
)
_VISIBLE: Final = re.compile(r"\S")
_WORD_LOOKBACK: Final = 12  # characters before a full stop that are searched for an abbreviation
_CLUSTER_LIMIT: Final = 64  # characters that one cluster may plausibly have
_JOINER: Final = "\u200d"
# Low surrogates, medial and final jamo, half-width voicing marks, skin tones, tags.
_JOINS: Final = re.compile(
    "[\udc00-\udfff\u1160-\u11ff\ud7b0-\ud7fb\uff9e\uff9f\u200d\U0001f3fb-\U0001f3ff"
    "\U000e0020-\U000e007f]"
)


def cluster_start(text: str, at: int, lowest: int = 0) -> int:
    """Return the nearest offset <= ``at`` (and > ``lowest``) that splits no character of a reader.

    A base and its combining marks, an emoji sequence and a syllable of jamo stay together. Where
    that would take more than a plausible cluster, ``at`` itself comes back.
    """
    place = at
    floor = max(lowest, at - _CLUSTER_LIMIT)
    while place > floor and place < len(text) and _joins(text, place):
        place -= 1
    return place if place > floor or place == at else at


def sentences(text: str) -> list[Span]:
    """Return the sentences of a text without white space at their ends, in order.

    Every character that is not white space stands in exactly one. A heading, a list item and a
    table row count as sentences.
    """
    found: list[Span] = []
    start = 0
    for match in _BREAK.finditer(text):
        if match["stop"] != "." or _ends_sentence(text, match.start(), match.end()):
            found.extend(_trimmed(text, start, match.end()))
            start = match.end()
    found.extend(_trimmed(text, start, len(text)))
    return found


def cut(text: str, *, target: int = 1000, limit: int = 1500) -> list[Span]:
    """Cut a text into passages of about ``target`` and at most ``limit`` characters.

    Cuts fall between paragraphs where one ends in the second half of the passage, else between
    sentences; only a sentence longer than ``limit`` is cut inside, between words where it has any.
    Spans are exact, in order and disjoint, and hold every character that is not white space.

    Raises:
        BadInputError: not ``0 < target <= limit``.
    """
    if not 0 < target <= limit:
        raise BadInputError(f"Passages need 0 < target <= limit, not {target} and {limit}.")
    pieces = [
        piece for sentence in sentences(text) for piece in _split(text, sentence, target, limit)
    ]
    if not pieces:
        return []
    breaks = [0, *_passage_breaks(text, pieces, target, limit), len(pieces)]
    spans = [Span(pieces[first].start, pieces[last - 1].end) for first, last in pairwise(breaks)]
    tail = spans[-1]
    if len(spans) > 1 and tail.end - tail.start < target // 4:
        joined = Span(spans[-2].start, tail.end)
        if joined.end - joined.start <= limit:
            spans[-2:] = [joined]
    return spans


def _joins(text: str, at: int) -> bool:
    """Tell whether the character belongs to the one before it."""
    character = text[at]
    return (
        unicodedata.category(character).startswith("M")
        or _JOINS.match(character) is not None
        or text[at - 1] == _JOINER
    )


def _ends_sentence(text: str, start: int, end: int) -> bool:
    """Tell whether a full stop at ``start`` ends a sentence; the next word begins after ``end``."""
    following = text[end : end + _WORD_LOOKBACK].lstrip()[:1]
    if following.islower():
        return False
    before = text[max(0, start - _WORD_LOOKBACK) : start]
    word = before.split()[-1] if before and not before[-1].isspace() else ""
    if word.isdigit():  # the number of a list item, else the end of a sentence
        first = start - len(word)
        return bool(text[max(0, first - _WORD_LOOKBACK) : first].rsplit("\n", 1)[-1].strip())
    word = word.lstrip("(\"'").lower()
    return word not in _ABBREVIATIONS and not (len(word) == 1 and word.isalpha())


def _trimmed(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield the range without white space at its ends, nothing where it has no other."""
    piece = text[start:end]
    left = piece.lstrip()
    if left:
        yield Span(end - len(left), start + len(piece.rstrip()))


def _split(text: str, span: Span, target: int, limit: int) -> Iterator[Span]:
    """Yield a sentence as it is, or cut to ``target`` characters where it is over ``limit``."""
    start = span.start
    if span.end - start <= limit:
        yield span
        return
    while span.end - start > target:
        window = text[start : start + target + 1]
        # The last white space of the window, unless that leaves too little before it.
        end = start + target + 1 - len(window.rsplit(None, 1)[-1])
        if window[-1].isspace():
            end = start + target
        elif end - start <= target // 2:
            end = cluster_start(text, start + target, start)
        yield from _trimmed(text, start, end)
        following = _VISIBLE.search(text, end)
        start = following.start() if following else span.end
    yield Span(start, span.end)


def _passage_breaks(text: str, pieces: list[Span], target: int, limit: int) -> Iterator[int]:
    """Yield the numbers of the pieces that begin a passage, without the first."""
    first = paragraph = 0
    for number, piece in enumerate(pieces):
        if number and _is_heading(text, piece):
            paragraph = number
        elif number and text.count("\n", pieces[number - 1].end, piece.start) > 1:
            # The text under a heading stays with it.
            paragraph = paragraph if _is_heading(text, pieces[number - 1]) else number
        while number > first and piece.end - pieces[first].start > target:
            at = number
            if at - 1 == first and _is_heading(text, pieces[first]):
                if piece.end - pieces[first].start <= limit:
                    break  # better a little long than a heading alone
            elif (
                paragraph > first and pieces[paragraph - 1].end - pieces[first].start >= target // 2
            ):
                at = paragraph
            elif at - 1 > first and _is_heading(text, pieces[at - 1]):
                at -= 1
            yield at
            first = at


def _is_heading(text: str, piece: Span) -> bool:
    return text[piece.start] == "#"
