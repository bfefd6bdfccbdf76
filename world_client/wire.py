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
    fails, and the answer says so; without it such a search fails.
    """

    query: Annotated[str, Field(min_length=1, max_length=MAX_QUERY_CHARACTERS)]
    count: Annotated[int, Field(ge=1, le=MAX_COUNT)] = 10
    offset: Annotated[int, Field(ge=0, le=MAX_OFFSET)] = 0
    mode: Literal["hybrid", "lexical", "dense"] = "hybrid"
    published_from: str | None = None
    published_to: str | None = None
    explain: bool = False
    allow_lexical: bool = False


class ScoreParts(_Message):
    """Completed raw scores of both indexes and the ranks in their lists; sent for ``explain``."""

    lexical: float
    dense: float
    lexical_rank: int | None = None
    dense_rank: int | None = None


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
