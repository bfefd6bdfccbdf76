"""Text to terms: the same for documents and queries, so the engines see terms only.

A **word** is a run of letters, digits and combining marks; its term is NFKC, case folded and
without diacritics. In scripts that are written without spaces a run gives the pairs of its
neighbouring characters instead, or the character itself where it stands alone. Everything else
(punctuation, symbols, NUL, lone surrogates) separates and never becomes part of a term, so no
character of a query has the meaning of an operator.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice, pairwise
from threading import Lock
from typing import Final, NamedTuple

import Stemmer

from world_core.errors import BadInputError
from world_core.scripts import PAIRED, PAIRED_RUN, SIMPLE_RUN, UNIT
from world_core.types import LexicalField, LexicalQuery

RULES: Final = 1
"""Version of the rules in this file; a change of any term raises it."""

TERM_LIMIT: Final = 64
"""Characters of a term; a longer word is known by its first ones."""

QUERY_LIMIT: Final = 1000
"""Distinct terms of a query that each field is asked for; the first ones, in text order."""

DEFAULT_WEIGHTS: Final = {"title": 0.8, "body": 0.4, "anchor": 0.2, "stem": 1.0}
"""Field weights that were best on the judged sets together (``benchmarks/README.md``)."""

FOLDED: Final = ("title", "body", "anchor")
"""The fields of folded terms; the others hold stems."""

Weigh = Callable[[Sequence[str]], Mapping[str, float]]
"""Says by what factor each folded term of a query counts; 1 for those it does not name."""

_MEMO_LIMIT: Final = 100_000  # words remembered by one analyser and language
_SNOWBALL: Final[Mapping[str, str]] = {
    "ar": "arabic",
    "ca": "catalan",
    "cs": "czech",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "eo": "esperanto",
    "es": "spanish",
    "et": "estonian",
    "eu": "basque",
    "fa": "persian",
    "fi": "finnish",
    "fr": "french",
    "ga": "irish",
    "hi": "hindi",
    "hu": "hungarian",
    "hy": "armenian",
    "id": "indonesian",
    "it": "italian",
    "lt": "lithuanian",
    "nb": "norwegian",
    "ne": "nepali",
    "nl": "dutch",
    "nn": "norwegian",
    "no": "norwegian",
    "pl": "polish",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sr": "serbian",
    "st": "sesotho",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
    "yi": "yiddish",
}

# Marks that a reader may leave out. Marks of Indic and other scripts are vowels and stay.
_DIACRITICS: Final = re.compile(
    "[\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a"
    "\u0640\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f\U000e0100-\U000e01ef]+"
)
# Plane 1 without kana and emoji, and variation selectors: a class of all its ranges is slow.
_ASTRAL: Final = "\U00010000-\U0001afff\U0001b170-\U0001efff\U000e0100-\U000e01ef"
# Letters that Unicode does not take apart into a base and a mark.
_LETTERS: Final = str.maketrans(
    {
        "ø": "o",
        "ł": "l",
        "đ": "d",
        "ð": "d",
        "þ": "th",
        "æ": "ae",
        "œ": "oe",
        "\u0131": "i",
        "ħ": "h",
    }
)
_SOFT_HYPHEN: Final = "\u00ad"
_ASCII_WORD: Final = re.compile(f"([a-z0-9]{{1,{TERM_LIMIT}}})[a-z0-9]*")


class Token(NamedTuple):
    """A term and where it stands: ``text[start:end]`` is what it was made of."""

    term: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Patterns:
    """Patterns whose character classes are computed from the Unicode tables."""

    word: re.Pattern[str]  # one group: the first characters of a word outside paired scripts
    token: re.Pattern[str]  # two groups: the same, or a run of a paired script
    foreign: re.Pattern[str]  # what may not stand in a term


class _Memo(dict[str, str]):
    """Remembers a pure function of a word; forgets everything when full, so memory is bounded."""

    def __init__(self, function: Callable[[str], str]) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, word: str) -> str:
        value = self._function(word)
        if len(self) >= _MEMO_LIMIT:
            self.clear()
        self[word] = value
        return value


class _Stem:
    """Stems words of one language; a Snowball stemmer serves one thread at a time."""

    def __init__(self, algorithm: str, patterns: _Patterns) -> None:
        self._stemmer = Stemmer.Stemmer(algorithm, 0)
        self._lock = Lock()
        self._patterns = patterns

    def __call__(self, word: str) -> str:
        """Return the folded stem. The stemmer itself needs the accents: its suffixes have them."""
        lower = word.replace(_SOFT_HYPHEN, "")
        lower = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", lower).casefold())
        lower = self._patterns.foreign.sub("", lower)
        with self._lock:
            stem = self._stemmer.stemWord(lower)
        return _fold(stem, self._patterns) or _fold(word, self._patterns)


class Analyzer:
    """The rules for one world's languages; safe to use from several threads.

    Args:
        languages: codes of the world's languages, in any order; only the part before a hyphen
            counts. A language without a Snowball stemmer (``und``, ``zh``) adds no field.
        weights: weight of the fields ``title``, ``body``, ``anchor`` and ``stem`` in a query, or
            of one language by ``stem_xx``; a field of weight 0 is not asked.

    Raises:
        BadInputError: a weight is negative or belongs to no field.
    """

    def __init__(
        self, languages: Sequence[str], *, weights: Mapping[str, float] | None = None
    ) -> None:
        self._languages = sorted({_primary(language) for language in languages})
        self._patterns = _patterns()
        self._fold = _Memo(lambda word: _fold(word, self._patterns))
        available = Stemmer.algorithms()
        self._stems = {
            f"stem_{language}": _Memo(_Stem(_SNOWBALL[language], self._patterns))
            for language in self._languages
            if _SNOWBALL.get(language) in available
        }
        self._weights = self._checked(weights or {})

    @property
    def id(self) -> str:
        """Names the rules, the stemmer library, the Unicode tables and the languages."""
        return (
            f"searchworld-terms-{RULES};pystemmer-{Stemmer.version()};"
            f"unicode-{unicodedata.unidata_version};languages-{','.join(self._languages)}"
        )

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of all fields a document may have: those of ``FOLDED``, then the stem fields."""
        return (*FOLDED, *self._stems)

    def tokens(self, text: str) -> list[Token]:
        """Return the folded terms of a text in order, with their character offsets.

        Tokens of a paired script overlap: each begins one character after the one before.
        """
        if text.isascii():
            matches = _ASCII_WORD.finditer(text.lower())
            return [Token(match[1], *match.span()) for match in matches]
        found: list[Token] = []
        fold = self._fold
        for match in self._patterns.token.finditer(text):
            if match.lastindex == 1:
                term = fold[match[1]]
                if term:
                    found.append(Token(term, match.start(), match.end()))
            else:
                found.extend(_pairs(match[0], match.start()))
        return found

    def document(self, title: str, text: str, language: str) -> dict[str, list[str]]:
        """Return the terms of each field of a version in text order.

        ``title`` and ``body`` hold folded terms. The stem field of the version's language holds the
        stems of title and text; it is absent where there is no stemmer.
        """
        title_words, title_terms = self._words_and_terms(title)
        words, terms = self._words_and_terms(text)
        fields = {"title": title_terms, "body": terms}
        name = f"stem_{_primary(language)}"
        stem = self._stems.get(name)
        if stem is not None:
            fields[name] = [*_known(stem, title_words), *_known(stem, words)]
        return fields

    def query(self, text: str, weigh: Weigh | None = None) -> LexicalQuery:
        """Return the query that asks every field, each for the query's terms in text order.

        A repeated term counts as often as it stands there. Each field is asked for at most
        ``QUERY_LIMIT`` distinct terms. A stem counts by the factor of its word's term. A query
        mostly in a paired script asks no stem field: its pages have none, so that pages of other
        languages would come first by the names and numbers in it.
        """
        words, terms = self._words_and_terms(text)
        factors = weigh(terms) if weigh else {}
        folded = [(term, factors.get(term, 1.0)) for term in terms]
        asked = dict.fromkeys(FOLDED, folded)
        for name, stem in self._stems.items():
            asked[name] = [(stem[w], factors.get(self._fold[w], 1.0)) for w in words if stem[w]]
        return LexicalQuery(
            tuple(
                _field(name, self._weights[name], asked[name], weighed=bool(factors))
                for name in (FOLDED if 2 * len(words) < len(terms) else self.fields)
                if self._weights[name] > 0
            )
        )

    def _words_and_terms(self, text: str) -> tuple[list[str], list[str]]:
        """Return the words outside paired scripts as written, and all folded terms."""
        if text.isascii():
            words = _ASCII_WORD.findall(text.lower())
            return words, words
        if PAIRED_RUN.search(text) is None:
            words = self._patterns.word.findall(text)
            return words, _known(self._fold, words)
        words, terms = [], []
        for match in self._patterns.token.finditer(text):
            if match.lastindex == 1:
                words.append(match[1])
                terms.append(self._fold[match[1]])
            else:
                terms.extend(token.term for token in _pairs(match[0], 0))
        return words, list(filter(None, terms))

    def _checked(self, weights: Mapping[str, float]) -> dict[str, float]:
        """Return the weight of every field."""
        stem = weights.get("stem", DEFAULT_WEIGHTS["stem"])
        known = DEFAULT_WEIGHTS | dict.fromkeys(self._stems, stem)
        for name, weight in weights.items():
            if name not in known:
                raise BadInputError(
                    f"Field weight {name!r} belongs to no field.",
                    hint=f"Fields are {', '.join(known)}.",
                )
            if not weight >= 0:  # NaN is no weight either
                raise BadInputError(f"Field weight {name!r} is {weight}, it must not be negative.")
        return known | dict(weights)


def term_hash(term: str) -> int:
    """Return the 32-bit number that stands for a term in the passage file (CRC-32 of its UTF-8)."""
    return zlib.crc32(term.encode())


def _known(memo: _Memo, words: Sequence[str]) -> list[str]:
    """Return the memo's value of each word, without empty ones."""
    return list(filter(None, map(memo.__getitem__, words)))


def _field(
    name: str, weight: float, asked: Sequence[tuple[str, float]], *, weighed: bool
) -> LexicalField:
    """Return the field without the terms beyond the first ``QUERY_LIMIT`` distinct ones."""
    if len(asked) > QUERY_LIMIT:
        kept = frozenset(islice(dict.fromkeys(term for term, _ in asked), QUERY_LIMIT))
        asked = [pair for pair in asked if pair[0] in kept]
    factors = tuple(factor for _, factor in asked) if weighed else ()
    return LexicalField(name, weight, tuple(term for term, _ in asked), factors)


def _primary(language: str) -> str:
    return language.partition("-")[0].lower()


def _fold(word: str, patterns: _Patterns) -> str:
    """Return a word's term; "" for marks that stand alone."""
    if word.isascii():
        return word.lower()[:TERM_LIMIT]
    text = unicodedata.normalize("NFKC", word).casefold()
    text = _DIACRITICS.sub("", unicodedata.normalize("NFKD", text)).translate(_LETTERS)
    text = patterns.foreign.sub("", unicodedata.normalize("NFKC", text))
    # A term of marks alone (vowel signs, say) is none: nobody searches for it.
    return text[:TERM_LIMIT] if any(map(str.isalnum, text)) else ""


def _pairs(run: str, start: int) -> Iterator[Token]:
    """Yield the pairs of a run of a paired script; the run begins at ``start`` of the text."""
    if SIMPLE_RUN.fullmatch(run):
        if len(run) == 1:
            yield Token(run, start, start + 1)
        for at in range(len(run) - 1):
            yield Token(run[at : at + 2], start + at, start + at + 2)
        return
    units = [
        Token(
            unicodedata.normalize("NFKC", unit[0])[: TERM_LIMIT // 2],
            start + unit.start(),
            start + unit.end(),
        )
        for unit in UNIT.finditer(run)
    ]
    if len(units) == 1:
        yield units[0]
    for first, second in pairwise(units):
        yield Token(first.term + second.term, first.start, second.end)


@cache
def _patterns() -> _Patterns:
    """Compile the classes of this Python's Unicode tables; takes some tens of milliseconds."""
    plane = "".join(map(chr, range(0x10000)))
    paired = set("".join(PAIRED_RUN.findall(plane)))
    inside = [
        character
        for character in plane
        if character.isalnum() or unicodedata.category(character) in ("Mn", "Mc")
    ]
    words = _character_class(character for character in inside if character not in paired)
    word = f"([{words}{_SOFT_HYPHEN}{_ASTRAL}]{{1,{TERM_LIMIT}}})[{words}{_SOFT_HYPHEN}{_ASTRAL}]*"
    return _Patterns(
        word=re.compile(word),
        token=re.compile(f"{word}|([{PAIRED}]+)"),
        foreign=re.compile(f"[^{_character_class(inside)}{_ASTRAL}]+"),
    )


def _character_class(characters: Iterable[str]) -> str:
    """Return ascending characters as the inside of a character class."""
    ranges: list[list[str]] = []
    for character in characters:
        if ranges and ord(ranges[-1][1]) == ord(character) - 1:
            ranges[-1][1] = character
        else:
            ranges.append([character, character])
    return "".join(f"{first}-{last}" for first, last in ranges)
