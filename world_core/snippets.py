"""Snippets: the part of a passage that answers the query, as one clean line of 20 to 30 words.

It shows the sentence that says most about the query, with the ones beside it where it is short, a
second sentence from elsewhere where that says what the first leaves out, and of a long sentence
the part with the query's words. What is cut inside a sentence says so by an ellipsis.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from world_core.cutting import cluster_start
from world_core.errors import BadInputError

LEAST: Final = 20
"""Words up to which whole sentences are added."""

ENOUGH: Final = 18
"""Words of whole sentences that need no part of another one beside them."""

AIM: Final = 28
"""Words of a snippet that must be cut."""

MOST: Final = 30
"""Words of a snippet at most, but for a rounding where a script has no spaces."""

# Characters that count as a word where no space comes, by terms a character: of scripts with spaces
# between words, and of those without, which are as wide as English at about this length.
_SPACED: Final = (0.25, 10.0)
_DENSE: Final = (0.6, 3.6)
_ELLIPSIS: Final = "..."
_FRAME: Final = 3 * (len(_ELLIPSIS) + 1) + 1  # an ellipsis at both ends and one between, spaces
_SHORTEST_LIMIT: Final = 32
_WORD_REACH: Final = 40  # characters in which a space must come, else a word is cut
_LEAD: Final = 0.05  # share of a window before its first match
_CLAUSE_REACH: Final = 0.4  # share of a window in which a clause may begin before its first match
_CLAUSES: Final = (", ", "; ", ": ", " - ", "\uff0c", "\uff1b", "\u3001")
_WORTH: Final = 0.5  # of the first sentence's weight, which a second one must add
_LEAST_PART: Final = 8  # words of a second part
_ROUNDING: Final = 1e-9  # below this two windows weigh the same


class Match(NamedTuple):
    """Where a term of the query begins in a passage, and which one it is."""

    start: int
    term: int


class _Part(NamedTuple):
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class _Line:
    """A shown passage: its sentences' begins and ends, and the words one character stands for."""

    text: str
    firsts: Sequence[int]
    ends: Sequence[int]
    rate: float
    room: int

    @classmethod
    def of(cls, text: str, begins: Sequence[int], terms: int, limit: int) -> _Line:
        firsts = begins or (0,)
        ends = [begin - (text[begin - 1] == " ") for begin in firsts[1:]]
        room = limit - _FRAME
        rate = 1 / _letters(terms / max(1, len(text)))
        return cls(text, firsts, [*ends, len(text)], max(rate, MOST / room), room)

    def words(self, first: int, end: int) -> float:
        """Return the words of a range, more where they are long."""
        return max(self.text.count(" ", first, end) + 1, (end - first) * self.rate)

    def letters(self, words: float, first: int, end: int) -> int:
        """Return about how many characters have as many words in a range."""
        return int(words * (end - first) / self.words(first, end))


@dataclass(frozen=True, slots=True)
class _Said:
    """What sentences say of the query: the matches of those that have any, and the weights."""

    matches: Mapping[int, Sequence[Match]]
    held: Mapping[int, frozenset[int]]
    weights: Sequence[float]

    @classmethod
    def of(cls, line: _Line, matches: Sequence[Match], weights: Sequence[float]) -> _Said:
        found: dict[int, list[Match]] = {}
        for match in matches:
            sentence = max(0, bisect_right(line.firsts, match.start) - 1)
            found.setdefault(sentence, []).append(match)
        held = {sentence: frozenset([m.term for m in some]) for sentence, some in found.items()}
        return cls(found, held, weights)

    def terms(self, sentence: int) -> frozenset[int]:
        """Return which terms stand in a sentence."""
        return self.held.get(sentence, frozenset())

    def gain(self, sentence: int, without: frozenset[int] = frozenset()) -> float:
        """Return the weight of what a sentence holds beside some terms."""
        new = self.terms(sentence) - without
        return sum([self.weights[term] for term in sorted(new)]) if new else 0.0


def snippet(
    text: str,
    begins: Sequence[int],
    *,
    chosen: int = 0,
    matches: Sequence[Match] = (),
    weights: Sequence[float] = (),
    terms: int = 0,
    limit: int = 320,
) -> str:
    """Return one line of at most ``limit`` characters from a passage.

    Args:
        text: the passage as it is shown, a line with single spaces.
        begins: where its sentences begin, ascending.
        chosen: the sentence that is shown whatever else is; 0 shows the opening.
        matches: where the query's terms begin, ascending.
        weights: weight of each of the query's terms.
        terms: how many terms the passage has; tells scripts without spaces.
        limit: characters at most, ellipses included.

    Raises:
        BadInputError: the limit is too small to show anything.
    """
    if limit < _SHORTEST_LIMIT:
        raise BadInputError(f"A snippet needs at least {_SHORTEST_LIMIT} characters, not {limit}.")
    line = _Line.of(text, begins, terms, limit)
    said = _Said.of(line, matches, weights)
    first, end = line.firsts[chosen], line.ends[chosen]
    if line.words(first, end) > MOST:
        parts = [_inside(line, chosen, said, AIM)]
    else:
        second = _second(line, chosen, said)
        parts = [_around(line, chosen, said)] if second is None else [_Part(first, end), second]
    return _joined(line, sorted(parts))


def _letters(density: float) -> float:
    """Return the characters that count as a word at so many terms a character."""
    (low, most), (high, least) = _SPACED, _DENSE
    share = (min(max(density, low), high) - low) / (high - low)
    return most + share * (least - most)


def _joined(line: _Line, parts: Sequence[_Part]) -> str:
    """Return the parts as one line, with an ellipsis wherever text is missing."""
    words: list[str] = []
    for place, (first, end) in enumerate(parts):
        if place or first not in line.firsts:
            words.append(_ELLIPSIS)
        words += line.text[first:end].split()
    if parts[-1].end not in line.ends:
        words.append(_ELLIPSIS)
    return " ".join(words)


def _second(line: _Line, chosen: int, said: _Said) -> _Part | None:
    """Return the part elsewhere that says what the chosen sentence leaves out, if that is much."""
    room = MOST - line.words(line.firsts[chosen], line.ends[chosen])
    if room < _LEAST_PART:
        return None
    held = said.terms(chosen)
    most, best = _WORTH * said.gain(chosen), -1
    for sentence in said.matches:
        gain = said.gain(sentence, held)
        if gain > most + _ROUNDING:
            most, best = gain, sentence
    if not held or best < 0 or abs(best - chosen) == 1:
        return None
    first, end = line.firsts[best], line.ends[best]
    return _Part(first, end) if line.words(first, end) <= room else _inside(line, best, said, room)


def _around(line: _Line, chosen: int, said: _Said) -> _Part:
    """Return the sentence with as many beside it as make a snippet, better ones first."""
    low = high = chosen
    first, end = line.firsts[low], line.ends[high]
    held = said.terms(chosen)
    while line.words(first, end) < LEAST:
        sides: list[tuple[float, int]] = []
        if high + 1 < len(line.firsts) and line.words(first, line.ends[high + 1]) <= MOST:
            sides.append((-said.gain(high + 1, held), high + 1))
        if low and line.words(line.firsts[low - 1], end) <= MOST:
            sides.append((-said.gain(low - 1, held), low - 1))
        if not sides:
            enough = line.words(first, end) >= ENOUGH
            return _Part(first, end) if enough else _filled(line, first, end)
        # Of equal ones the sentence after: ``min`` takes the first.
        _, side = min(sides, key=lambda pair: pair[0])
        low, high = min(low, side), max(high, side)
        first, end = line.firsts[low], line.ends[high]
        held |= said.terms(side)
    return _Part(first, end)


def _filled(line: _Line, first: int, end: int) -> _Part:
    """Return the range with a part of what follows it, or of what stands before it."""
    text = line.text
    if end < len(text):
        until = min(len(text), end + 1 + int((AIM - line.words(first, end)) / line.rate))
        aim = first + line.letters(AIM, first, until)
        return _Part(first, max(end, _word_end(text, min(aim, first + line.room), end)))
    since = max(0, first - 1 - int((AIM - line.words(first, end)) / line.rate))
    aim = end - line.letters(AIM, since, end)
    return _Part(min(first, _word_begin(text, max(aim, end - line.room), first)), end)


def _inside(line: _Line, sentence: int, said: _Said, words: float) -> _Part:
    """Return the part of a long sentence that holds most of what it says of the query."""
    text = line.text
    lowest, highest = line.firsts[sentence], line.ends[sentence]
    size = min(line.letters(words, lowest, highest), line.room, highest - lowest)
    begin, need = _heaviest(said.matches.get(sentence, ()), said.weights, lowest, size)
    if begin > lowest:
        begin = max(lowest, _clause_begin(line, begin, need, lowest, size))
    begin = min(begin, highest - size)
    if begin > lowest:
        begin = max(lowest, _word_begin(text, begin, max(begin, min(need, highest))))
    if highest <= begin + size:
        return _Part(begin, highest)
    end = _word_end(text, begin + size, begin)
    if end <= need:
        space = text.find(" ", need, begin + line.room)
        end = space if space >= 0 else cluster_start(text, begin + line.room, need)
    return _Part(begin, min(end, highest))


def _heaviest(
    matches: Sequence[Match], weights: Sequence[float], lowest: int, size: int
) -> tuple[int, int]:
    """Return begin and last needed character of the window with the most weight, the first one.

    Windows begin with the sentence or with a match; each distinct term counts once. Begins ascend
    with the matches, so two marks run over them.
    """
    best, most = (lowest, lowest), 0.0
    counts = dict.fromkeys((match.term for match in matches), 0)
    total = 0.0
    low = high = 0
    for begin in (lowest, *(match.start for match in matches)):
        while high < len(matches) and matches[high].start < begin + size * 11 // 12:
            term = matches[high].term
            total += 0.0 if counts[term] else weights[term]
            counts[term] += 1
            high += 1
        while low < high and matches[low].start < begin:
            term = matches[low].term
            counts[term] -= 1
            total -= 0.0 if counts[term] else weights[term]
            low += 1
        if total > most + _ROUNDING:
            most = total
            # The last place at which a term of the window appears for the first time.
            earliest = {match.term: match.start for match in reversed(matches[low:high])}
            best = (begin, max(earliest.values()))
    return best


def _clause_begin(line: _Line, begin: int, need: int, lowest: int, size: int) -> int:
    """Return where the clause of a match begins, else a little before the match."""
    reach = int(min(size * _CLAUSE_REACH, size * 11 / 12 - (need - begin)))
    if reach <= 0:
        return begin
    floor = max(lowest, begin - reach)
    found = max(
        (place + len(mark), mark)
        for mark in _CLAUSES
        for place in (line.text.rfind(mark, floor, begin),)
    )
    clause = found[0] if found[0] > floor else -1
    return clause if clause >= 0 else begin - min(reach, int(size * _LEAD))


def _word_begin(text: str, at: int, highest: int) -> int:
    """Return the begin of the first word from ``at`` on, or of a character where no space comes."""
    if at <= 0:
        return 0
    space = text.find(" ", at - 1, min(highest, at + _WORD_REACH))
    return space + 1 if space >= 0 else cluster_start(text, at)


def _word_end(text: str, at: int, lowest: int) -> int:
    """Return the end of the last word up to ``at``, or of a character where no space comes."""
    if at >= len(text):
        return len(text)
    space = text.rfind(" ", max(lowest + 1, at - _WORD_REACH), at + 1)
    return space if space >= 0 else cluster_start(text, at, lowest)
