"""The HTTP contract of the native routes: what is sent and what comes back.

``POST /v1/search`` takes a :class:`SearchRequest` and gives a :class:`SearchResponse`;
``POST /v1/search/batch`` takes a :class:`SearchBatchRequest` and gives a
:class:`SearchBatchResponse`; ``POST /v1/fetch`` takes a :class:`FetchRequest` and gives a
:class:`FetchResponse`. Every other status carries a :class:`ProblemResponse`. Dates are ISO 8601
days (``2024-05-01``) or instants (``2024-05-01T10:00:00Z``).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

MAX_COUNT = 100
MAX_OFFSET = 10_000
MAX_QUERY_CHARACTERS = 100_000
MAX_BATCH = 100


class Outcome(StrEnum):
    """What a call came to (contract: outcomes)."""

    OK = "ok"
    EMPTY = "empty"
    NOT_IN_WORLD = "not_in_world"
    DEAD_LINK = "dead_link"
    BAD_REQUEST = "bad_request"
    UNAUTHORIZED = "unauthorized"
    OVERLOADED = "overloaded"
    DEADLINE = "deadline"
    INTERNAL = "internal"


class _Message(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class SearchRequest(_Message):
    """One search: ``count`` hits from rank ``offset`` on.

    With ``allow_lexical`` a hybrid search is answered by the lexical index alone while the encoder
    fails, and the answer says so; without it such a search fails. ``explain`` adds ``parts`` to
    each hit, ``sitelinks`` the pages of its host that a root or section start leads to.
    """

    query: Annotated[str, Field(min_length=1, max_length=MAX_QUERY_CHARACTERS)]
    count: Annotated[int, Field(ge=1, le=MAX_COUNT)] = 10
    offset: Annotated[int, Field(ge=0, le=MAX_OFFSET)] = 0
    mode: Literal["hybrid", "lexical", "dense"] = "hybrid"
    published_from: str | None = None
    published_to: str | None = None
    explain: bool = False
    sitelinks: bool = False
    allow_lexical: bool = False


class CharacterRange(_Message):
    """A half-open range of characters of a page's text as ``/v1/fetch`` gives it."""

    start: int
    end: int


class ScoreParts(_Message):
    """How a hit's score came about; sent for ``explain``.

    ``lexical`` (BM25, from 0 on), ``dense`` (cosine, from -1 on) and ``sparse`` are the raw scores
    of the page, completed where its index did not list it; the ``_rank`` fields are the places in
    the indexes' own lists, ``null`` where it is not in them. The ``_share`` fields are the scores
    stretched to [0, 1] by the best candidate, which the fused score mixes; ``null`` where an index
    was not asked. ``rerank`` is the reranker's score. ``passage`` is what the snippet was taken
    from, ``dense_passage`` the one nearest in meaning.
    """

    lexical: float
    dense: float
    lexical_rank: int | None = None
    dense_rank: int | None = None
    sparse: float | None = None
    sparse_rank: int | None = None
    rerank: int | None = None
    lexical_share: float | None = None
    dense_share: float | None = None
    sparse_share: float | None = None
    passage: CharacterRange | None = None
    dense_passage: CharacterRange | None = None


class Sitelink(_Message):
    """A page of the same host that a hit leads to."""

    title: str
    url: str


class SearchHit(_Message):
    """A ranked page."""

    rank: int
    page_id: str
    url: str
    title: str
    snippet: str
    language: str
    published: str | None = None
    score: float
    parts: ScoreParts | None = None
    sitelinks: list[Sitelink] | None = None


class SearchResponse(_Message):
    """The hits of one search; ``hits`` is empty exactly when the outcome is ``empty``.

    ``degraded`` is sent only where the search was answered in another mode than it asked for.
    """

    outcome: Literal["ok", "empty"]
    query: str
    hits: list[SearchHit]
    degraded: Literal["lexical"] | None = None


class SearchBatchRequest(_Message):
    """Several searches, answered in order, each as if it had been asked alone."""

    searches: Annotated[list[SearchRequest], Field(min_length=1, max_length=MAX_BATCH)]


class SearchBatchResponse(_Message):
    """The answers of a batch, in the order of its searches."""

    answers: list[SearchResponse]


class FetchRequest(_Message):
    """One fetch of an address as an agent writes it."""

    url: Annotated[str, Field(min_length=1, max_length=100_000)]


class PageLink(_Message):
    """A link of a page."""

    url: str
    text: str


class FetchResponse(_Message):
    """A page version, or the outcome that there is none."""

    outcome: Literal["ok", "not_in_world", "dead_link"]
    url: str
    page_id: str | None = None
    title: str = ""
    text: str = ""
    language: str | None = None
    published: str | None = None
    modified: str | None = None
    valid_from: str | None = None
    links: list[PageLink] = []
    status: int | None = None


class ProblemResponse(_Message):
    """An error of a native route: the outcome, a stable code, a sentence and the next step."""

    outcome: Outcome
    code: str
    message: str
    hint: str = ""
    retryable: bool = False
    trainable: bool = False
