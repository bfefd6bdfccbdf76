"""Snippets: the part of a passage that answers the query, as one clean line.

The window is the one that covers the most query weight, each distinct term counted once; of equal
ones the first. It begins and ends with a sentence where that fits, else between words (in scripts
without spaces between characters) and says so by an ellipsis.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from world_core.cutting import cluster_start
from world_core.errors import BadInputError
from world_core.passages import PassageFile
from world_core.types import Numbers, Span

_SPACED_AIM: Final = 165  # characters, about 26 English words
_DENSE_AIM: Final = 105
_DENSE: Final = 0.45  # terms a character, above which the script has no spaces between words
_ELLIPSIS: Final = "..."
_FRAME: Final = 2 * (len(_ELLIPSIS) + 1)  # an ellipsis and a space at both ends
_SHORTEST_LIMIT: Final = 32
_WORD_REACH: Final = 40  # characters in which a space must come, else a word is cut
_ROUNDING: Final = 1e-9  # below this two windows weigh the same

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


@dataclass(frozen=True, slots=True)
class _Query:
    """The query's terms: ``hashes`` (q,) uint32 ascending, ``weights`` (q,) float64, all > 0."""

    hashes: NDArray[np.uint32]
    weights: NDArray[np.float64]

    @classmethod
    def of(cls, weights: Mapping[int, float]) -> _Query:
        """Sort the terms that have a weight."""
        terms = sorted(term for term, weight in weights.items() if weight > 0)
        return cls(
            np.array(terms, dtype=np.uint32),
            np.array([weights[term] for term in terms], dtype=np.float64),
        )

    def find(self, hashes: NDArray[np.uint32]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return where in ``hashes`` a query term stands, and which one, each (m,)."""
        if not len(self.hashes):
            return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp)
        terms = np.searchsorted(self.hashes[:-1], hashes)
        places = np.flatnonzero(self.hashes[terms] == hashes)
        return places, terms[places]


@dataclass(frozen=True, slots=True)
class _Shown:
    """The passage without marks, and the way from its offsets to the shown ones.

    ``firsts``, ``lasts`` and ``lost`` (c,) int64: the ranges of the passage that were replaced, the
    first of them at 0 (it may be empty), and the characters lost up to the end of each.
    """

    text: str
    firsts: NDArray[np.int64]
    lasts: NDArray[np.int64]
    lost: NDArray[np.int64]

    def places(self, offsets: Sequence[int] | NDArray[np.uint32]) -> NDArray[np.int64]:
        """Return the shown offset of each offset, (n,); inside a replaced range that of its end."""
        given = np.asarray(offsets, dtype=np.int64)
        before = np.searchsorted(self.firsts, given, side="right") - 1
        moved: NDArray[np.int64] = np.maximum(given, self.lasts[before]) - self.lost[before]
        return moved

    def hidden(self, offsets: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """Tell of each offset whether it lies inside a replaced range, (n,)."""
        before = np.searchsorted(self.firsts, offsets, side="right") - 1
        inside: NDArray[np.bool_] = offsets < self.lasts[before]
        return inside


@dataclass(frozen=True, slots=True)
class _Layout:
    """The shown text, begins and ends of its sentences, and the lengths a snippet should have."""

    text: str
    firsts: list[int]
    lasts: list[int]
    aim: int
    room: int


def snippet(
    text: str,
    sentences: Sequence[Span],
    hashes: NDArray[np.uint32],
    starts: NDArray[np.uint32],
    weights: Mapping[int, float],
    *,
    limit: int = 320,
) -> str:
    """Return one line of at most ``limit`` characters from a passage, chosen for the query.

    Args:
        text: the passage.
        sentences: its sentences.
        hashes: its terms' hashes, (T,) uint32.
        starts: where each term begins, (T,) uint32.
        weights: weight of each query term by hash; without a match the passage's opening is shown.
        limit: characters at most, ellipses included.

    Raises:
        BadInputError: the limit is too small to show anything.
    """
    if limit < _SHORTEST_LIMIT:
        raise BadInputError(f"A snippet needs at least {_SHORTEST_LIMIT} characters, not {limit}.")
    shown = _shown(text)
    room = limit - _FRAME
    dense = len(starts) > _DENSE * len(text)
    layout = _Layout(
        text=shown.text,
        firsts=shown.places([sentence.start for sentence in sentences]).tolist() or [0],
        lasts=shown.places([sentence.end for sentence in sentences]).tolist(),
        aim=min(_DENSE_AIM if dense else _SPACED_AIM, room * 4 // 5),
        room=room,
    )
    query = _Query.of(weights)
    places, terms = query.find(hashes)
    seen = ~shown.hidden(starts[places])
    matches = shown.places(starts[places[seen]]).tolist()
    begin, need = _best_window(layout, matches, terms[seen].tolist(), query.weights.tolist())
    end = _window_end(layout, begin, need)
    begin = _window_begin(layout, begin, end)
    # Replaced marks side by side may have left two spaces.
    words = layout.text[begin:end].split()
    if begin not in (0, *layout.firsts):
        words.insert(0, _ELLIPSIS)
    if end not in (len(layout.text), *layout.lasts):
        words.append(_ELLIPSIS)
    return " ".join(words)


def best_passage(
    passages: PassageFile, numbers: Sequence[int] | Numbers, weights: Mapping[int, float]
) -> int:
    """Return the passage that covers the most query weight, each distinct term counted once.

    Of equal ones the first in ``numbers`` is returned.

    Raises:
        BadInputError: there is no passage to choose from.
    """
    if not len(numbers):
        raise BadInputError("There is no passage to choose from.")
    query = _Query.of(weights)
    best, most = int(numbers[0]), -1.0
    for number in numbers:
        _, terms = query.find(passages.terms(int(number))[0])
        covered = float(query.weights[np.unique(terms)].sum())
        if covered > most:
            best, most = int(number), covered
    return best


def _shown(text: str) -> _Shown:
    """Take white space runs and Markdown marks out of a passage."""
    parts: list[str] = []
    ranges: list[tuple[int, int, int]] = []
    done = gone = 0
    # Marks that need a line's begin find one at the passage's begin, too.
    for match in _MARKUP.finditer(f"\n{text}"):
        first, last = max(0, match.start() - 1), match.end() - 1
        gap = " " if first and match["link"] is None and _is_gap(text, first, last) else ""
        parts += (text[done:first], gap)
        gone += last - first - len(gap)
        ranges.append((first, last, gone))
        done = last
    parts.append(text[done:])
    columns = np.array(ranges, dtype=np.int64).T
    return _Shown("".join(parts), columns[0], columns[1], columns[2])


def _is_gap(text: str, first: int, last: int) -> bool:
    """Tell whether words stand apart without these marks; of ``2*3`` the digits must."""
    marks = text[first:last]
    if marks.strip("*`"):
        return True
    return marks == "*" and text[first - 1].isalnum() and text[last : last + 1].isalnum()


def _best_window(
    layout: _Layout, matches: Sequence[int], terms: Sequence[int], weights: Sequence[float]
) -> tuple[int, int]:
    """Return the begin of the heaviest window and the offset up to which it must reach.

    Every match proposes a window: from its sentence's begin, or where that is far, from a few
    words before it. Begins ascend with the matches, so two marks run over them.
    """
    counts = [0] * len(weights)
    total = most = 0.0
    best = (0, 0, 0)
    low = high = 0
    for place in matches:
        sentence = bisect_right(layout.firsts, place) - 1
        begin = layout.firsts[max(0, sentence)]
        if not 0 <= place - begin <= layout.aim // 2:
            begin = _word_begin(layout.text, place - layout.aim // 4, place)
        while high < len(matches) and matches[high] < begin + layout.aim * 11 // 12:
            total += 0.0 if counts[terms[high]] else weights[terms[high]]
            counts[terms[high]] += 1
            high += 1
        while matches[low] < begin:
            counts[terms[low]] -= 1
            total -= 0.0 if counts[terms[low]] else weights[terms[low]]
            low += 1
        if total > most + _ROUNDING:
            most, best = total, (begin, low, high)
    begin, low, high = best
    # The last place at which a term of the window appears for the first time.
    earliest = {terms[at]: matches[at] for at in reversed(range(low, high))}
    return begin, max(earliest.values(), default=begin)


def _window_end(layout: _Layout, begin: int, need: int) -> int:
    """Return the end: of a sentence near the aim, else of the last word before it."""
    text, aim = layout.text, layout.aim
    shortest = max(begin + aim * 3 // 5, need + 1)
    near = [last for last in layout.lasts if shortest <= last <= begin + aim * 5 // 4]
    inside = [last for last in near if last <= begin + aim]
    if near:
        return inside[-1] if inside else near[0]
    if len(text) <= begin + aim:
        return len(text)
    end = _word_end(text, begin + aim, begin)
    if end > need:
        return end
    space = text.find(" ", need, begin + layout.room)
    return space if space >= 0 else cluster_start(text, begin + layout.room, need)


def _window_begin(layout: _Layout, begin: int, end: int) -> int:
    """Move the begin back where the end of the passage left room before it."""
    if end - begin >= layout.aim * 3 // 4:
        return begin
    earlier = [first for first in layout.firsts if end - layout.aim <= first <= begin]
    if earlier:
        return earlier[0]
    return min(begin, _word_begin(layout.text, end - layout.aim, begin))


def _word_begin(text: str, at: int, highest: int) -> int:
    """Return the begin of the first word from ``at`` on, or of a character where no space comes."""
    if at <= 0:
        return 0
    space = text.find(" ", at - 1, min(highest, at + _WORD_REACH))
    return space + 1 if space >= 0 else cluster_start(text, at)


def _word_end(text: str, at: int, lowest: int) -> int:
    """Return the end of the last word up to ``at``, or of a character where no space comes."""
    space = text.rfind(" ", max(lowest + 1, at - _WORD_REACH), at + 1)
    return space if space >= 0 else cluster_start(text, at, lowest)
