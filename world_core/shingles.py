"""The shingles of a text: what two texts have in common, whatever their spelling and marks.

A shingle is a window of five folded words, or of nine characters in scripts that are written
without spaces, which are eight pairs of neighbours; a window that holds both is full by shares.
Markdown, case, punctuation, diacritics and white space leave no trace: the terms are those of
``analysis.py``, with the characters of its pairs in place of the pairs, so that a line's end or a
comma between two characters does not matter either.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from world_core.analysis import Analyzer
from world_core.scripts import PAIRED_RUN, SIMPLE_RUN, UNIT
from world_core.shown import shown

RULES: Final = 1
"""Version of the rules in this file; a change of any shingle raises it."""

WORDS: Final = 5
"""Words of a window."""

CHARACTERS: Final = 9
"""Characters of a window in a script without spaces."""

_FULL: Final = WORDS * CHARACTERS  # a word counts for CHARACTERS of it, a character for WORDS
_BASE: Final = np.uint64(0x9E3779B97F4A7C15)
_MIXERS: Final = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_LAST_SHIFT: Final = np.uint64(31)
_KNOWN_TERMS: Final = 500_000
# Marks right between two characters that may be of one word; others part words, shown or not.
_BETWEEN: Final = r"\s!-/:-@\[-`{-~"
_INSIDE: Final = re.compile(rf"[*`](?<=[^{_BETWEEN}][*`])[*`]*[^{_BETWEEN}]")


class Shingler:
    """Makes shingles; remembers the numbers of terms, up to a limit. Not for several threads."""

    def __init__(self) -> None:
        self._analyzer = Analyzer(())
        self._numbers = _TermNumbers()

    def shingles(self, text: str) -> NDArray[np.uint64]:
        """Return the distinct shingles of a text, ascending; shape (n,).

        A text of fewer terms than a window has one shingle of all its terms, one without terms has
        none. Equal texts give equal numbers everywhere; they are spread evenly over 64 bits.
        """
        terms, shares = self._terms(shown(text, ())[0] if _needs_reading(text) else text)
        if not terms:
            return np.zeros(0, np.uint64)
        numbers = np.fromiter(map(self._numbers.__getitem__, terms), np.uint64, len(terms))
        found = np.sort(_windows(numbers, shares))
        return found[np.concatenate(([True], found[1:] != found[:-1]))]

    def _terms(self, line: str) -> tuple[list[str], NDArray[np.int64]]:
        """Return the terms in text order, and how much of a window each fills."""
        if line.isascii() or PAIRED_RUN.search(line) is None:
            words = self._words(line)
            return words, np.full(len(words), CHARACTERS, np.int64)
        terms: list[str] = []
        shares: list[int] = []
        runs = [match.span() for match in PAIRED_RUN.finditer(line)]
        for (_, begin), (start, end) in pairwise([(0, 0), *runs, (len(line), len(line))]):
            words = self._words(line[begin:start])
            characters = _characters(line[start:end])
            terms += words
            terms += characters
            shares += [CHARACTERS] * len(words) + [WORDS] * len(characters)
        return terms, np.array(shares, np.int64)

    def _words(self, text: str) -> list[str]:
        return self._analyzer.document("", text, "")["body"]


class _TermNumbers(dict[str, int]):
    """The 64-bit number of each term: the first eight bytes of its BLAKE2b, little-endian."""

    def __missing__(self, term: str) -> int:
        digest = hashlib.blake2b(term.encode(), digest_size=8).digest()
        if len(self) >= _KNOWN_TERMS:
            self.clear()
        return self.setdefault(term, int.from_bytes(digest, "little"))


def _needs_reading(text: str) -> bool:
    """Tell whether a text's marks change its words: links, escapes, emphasis inside of a word.

    Reading Markdown takes longer than all the rest, and two of three pages do not need it.
    """
    return "](" in text or "\\" in text or _INSIDE.search(text) is not None


def _characters(run: str) -> list[str]:
    """Return the characters of a run of a script without spaces, as a reader counts them."""
    if SIMPLE_RUN.fullmatch(run):
        return list(run)
    return [unicodedata.normalize("NFKC", unit[0]) for unit in UNIT.finditer(run)]


def _windows(numbers: NDArray[np.uint64], shares: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return the hash of every full window, of all terms together if there is none."""
    filled = np.concatenate(([0], np.cumsum(shares)))
    ends = np.searchsorted(filled, filled[:-1] + _FULL)
    count = int(np.searchsorted(ends, filled.size))  # later windows are not full
    if not count:
        count, ends = 1, np.array([numbers.size])
    lengths = ends[:count] - np.arange(count)
    sums = np.zeros(count, np.uint64)
    for place in range(int(lengths.max())):
        longer = place < lengths
        terms = numbers[np.arange(count)[longer] + place]
        sums[longer] = sums[longer] * _BASE + terms  # modulo 2^64
    return _mixed(sums)


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the numbers spread evenly, one to one (the finalizer of SplitMix64)."""
    for shift, factor in _MIXERS:
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * np.uint64(factor)
    return numbers ^ (numbers >> _LAST_SHIFT)
