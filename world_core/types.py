"""The values that travel between builder, engine and server.

Times are whole seconds since 1970-01-01 UTC as ``int``; ``None`` means unknown. Numbers of pages,
versions, passages and units are positions in canonical order (see ``docs/format.md``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

Instant = int  # seconds since 1970-01-01 UTC
Bitmap = NDArray[np.bool_]  # one flag a version, passage or unit
Numbers = NDArray[np.int64]  # positions in canonical order
Scores = NDArray[np.float64]
Vector = NDArray[np.float32]  # (dim,), length 1
Vectors = NDArray[np.float32]  # (n, dim), rows of length 1

FOREVER: Instant = 2**62
"""``valid_to`` of a version that no later capture has replaced."""


class Outcome(StrEnum):
    """What a call came to (contract: outcomes)."""

    OK = "ok"
    EMPTY = "empty"
    NOT_IN_WORLD = "not_in_world"
    DEAD_LINK = "dead_link"
    MASKED = "masked"
    NOT_YET_PUBLISHED = "not_yet_published"


class Mode(StrEnum):
    """Which indexes a search asks."""

    HYBRID = "hybrid"
    LEXICAL = "lexical"
    DENSE = "dense"


@dataclass(frozen=True, slots=True)
class Link:
    """A link of a page: its absolute target as written by the page, and its text."""

    url: str
    text: str


@dataclass(frozen=True, slots=True)
class VersionRecord:
    """A page's content from the capture that brought it to the next that changed it.

    ``text`` is Markdown without NUL, control characters or lone surrogates. ``valid_from`` is the
    time of the first capture with this content, ``valid_to`` that of the next one that differed.
    """

    title: str
    text: str
    language: str
    valid_from: Instant
    valid_to: Instant = FOREVER
    published: Instant | None = None
    modified: Instant | None = None
    links: tuple[Link, ...] = ()
    mime: str = "text/html"


@dataclass(frozen=True, slots=True)
class PageRecord:
    """One canonical address with its versions in time order.

    ``key`` is the canonical URL (``world_core.urls.canonical``) and decides identity; ``url`` is
    the stored spelling shown in results; ``aliases`` are other canonical URLs that lead here.
    """

    page_id: str
    key: str
    url: str
    versions: tuple[VersionRecord, ...]
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DeadLink:
    """An address for which the crawl itself recorded an HTTP error."""

    key: str
    url: str
    status: int
    time: Instant


@dataclass(frozen=True, slots=True)
class VersionMeta:
    """What a hit needs to know of a version without its text."""

    version: int
    page: int
    page_id: str
    url: str
    title: str
    language: str
    published: Instant | None
    modified: Instant | None
    valid_from: Instant
    valid_to: Instant
    characters: int


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """A version as the page store gives it back."""

    meta: VersionMeta
    text: str
    links: tuple[Link, ...]
    mime: str


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of characters of a text."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Candidates:
    """Units found by one index, best first, ties by unit number.

    ``units`` (k,) int64, ``scores`` (k,) float64; k may be smaller than asked, never padded.
    """

    units: Numbers
    scores: Scores


@dataclass(frozen=True, slots=True)
class SearchCall:
    """One search, whatever dialect it came in by.

    ``offset`` and ``count`` cut the ranked pages; ``published_from`` (inclusive) and
    ``published_to`` (exclusive) drop pages outside, and pages without a date when either is set.
    ``allow_lexical`` lets a hybrid search be answered by the lexical index alone while the encoder
    fails. ``sitelinks`` and ``explain`` ask for those parts of hits, which cost extra. Without
    ``rerank`` no reranker orders the answer.
    """

    query: str
    count: int = 10
    offset: int = 0
    mode: Mode = Mode.HYBRID
    published_from: Instant | None = None
    published_to: Instant | None = None
    allow_lexical: bool = False
    sitelinks: bool = False
    explain: bool = False
    rerank: bool = True

    @property
    def needs_vector(self) -> bool:
        """True when the search cannot be answered as it was asked without a vector."""
        return self.mode is not Mode.LEXICAL

    @property
    def may_degrade(self) -> bool:
        """True when the search may be answered without a vector all the same."""
        return self.mode is Mode.HYBRID and self.allow_lexical


@dataclass(frozen=True, slots=True)
class ScoreParts:
    """Where a hit's score came from: completed raw scores and ranks in the candidate lists.

    A rank is the 1-based place in that index's list after grouping to versions, ``None`` if the
    index did not list it (its score was then completed). ``lexical`` 0.0 and ``dense`` -1.0 are the
    floors. ``sparse`` is ``None`` where no sparse index was asked, ``rerank`` (whole numbers, more
    is better) where no reranker scored the page.
    """

    lexical: float
    dense: float
    lexical_rank: int | None
    dense_rank: int | None
    sparse: float | None = None
    sparse_rank: int | None = None
    rerank: int | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a hit's score was put together, for those who ask.

    ``lexical``, ``dense`` and ``sparse`` are the completed scores stretched to [0, 1] by the best
    of all candidates, as they enter the mixture; ``None`` where an index was not asked. ``passage``
    is what the snippet was taken from and ``dense_passage`` the one nearest in meaning, both in the
    version's text.
    """

    lexical: float | None
    dense: float | None
    sparse: float | None
    passage: Span | None
    dense_passage: Span | None


@dataclass(frozen=True, slots=True)
class Sitelink:
    """A page that a hit of the same host links to, as the view shows it."""

    title: str
    url: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A ranked page in an answer; the last two are there only when the call asked for them."""

    meta: VersionMeta
    snippet: str
    score: float
    parts: ScoreParts
    passage: int
    sitelinks: tuple[Sitelink, ...] = ()
    explanation: Explanation | None = None


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """The outcome of a search and its hits; ``hits`` is empty exactly when the outcome is EMPTY.

    ``degraded`` is the mode it was answered in, when the encoder failed and the call allowed that.
    """

    outcome: Outcome
    hits: tuple[Hit, ...]
    degraded: Mode | None = None


@dataclass(frozen=True, slots=True)
class FetchCall:
    """One fetch of an address as the agent wrote it."""

    url: str


@dataclass(frozen=True, slots=True)
class FetchAnswer:
    """The outcome of a fetch; ``version`` is set exactly when the outcome is OK.

    ``url`` is the stored spelling of the page (or the address as asked when there is none);
    ``status`` the recorded HTTP status of a dead link.
    """

    outcome: Outcome
    url: str
    version: StoredVersion | None = None
    status: int | None = None


@dataclass(frozen=True, slots=True)
class LexicalField:
    """Terms of one field of a query with the field's weight.

    ``factors`` multiply the weight term by term; without them every factor is 1.
    """

    name: str
    weight: float
    terms: tuple[str, ...]
    factors: tuple[float, ...] = ()


class Occur(StrEnum):
    """What a phrase of a query means for a unit."""

    SHOULD = "should"  # adds its score where it stands
    MUST = "must"  # the same, and without it nothing matches
    MUST_NOT = "must_not"  # where it stands nothing matches


@dataclass(frozen=True, slots=True)
class LexicalPhrase:
    """Terms in a row; stands in a unit where at least one of ``fields`` holds its terms in order.

    A phrase of one term is that term; one without terms, or of unknown fields, stands nowhere.
    """

    occur: Occur
    fields: tuple[LexicalField, ...]


@dataclass(frozen=True, slots=True)
class LexicalQuery:
    """A query as the lexical index sees it: fields of terms and phrases, summed; no text.

    A unit matches when a term or phrase of a weight above 0 scores there, every ``MUST`` phrase
    stands there and no ``MUST_NOT`` phrase does.
    """

    fields: tuple[LexicalField, ...]
    phrases: tuple[LexicalPhrase, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True when no field and no wanted phrase holds a term, so nothing can match."""
        wanted = (phrase for phrase in self.phrases if phrase.occur is not Occur.MUST_NOT)
        parts = (*self.fields, *(part for phrase in wanted for part in phrase.fields))
        return not any(part.terms for part in parts)


@dataclass(frozen=True, slots=True)
class Timings:
    """Seconds spent by step of one call; kept for metrics, never part of an answer."""

    seconds: dict[str, float] = field(default_factory=dict)

    def add(self, step: str, seconds: float) -> None:
        """Add ``seconds`` to the step's total."""
        self.seconds[step] = self.seconds.get(step, 0.0) + seconds


def as_numbers(values: Sequence[int]) -> Numbers:
    """Return the positions as an int64 array, shape (n,)."""
    return np.asarray(values, dtype=np.int64)
