"""The asynchronous client of the native routes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from types import TracebackType
from typing import Self, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from world_client.errors import (
    CALL_ERRORS,
    BadRequestError,
    ClientError,
    ClientTimeoutError,
    ConnectionFailedError,
    OverloadedError,
    ProtocolError,
    ServerFailedError,
)
from world_client.pools import Pools
from world_client.wire import (
    FetchRequest,
    FetchResponse,
    ProblemResponse,
    SearchBatchRequest,
    SearchBatchResponse,
    SearchRequest,
    SearchResponse,
)

DEFAULT_DEADLINE = 60.0
DEFAULT_POOLS = 16
LONGEST_WAIT = 5.0
OVERLOADED = 503

Answer = TypeVar("Answer", bound=BaseModel)


class WorldClient:
    """Searches and fetches over HTTP; every call ends in an answer or a typed error.

    A call that finds the server full is tried again after the time the server names, with jitter
    from a seeded source, until ``deadline`` seconds have passed. A connection that the server
    closed while it was idle is tried once more, since no request had been read. Nothing else is
    tried twice.

    Args:
        url: address of the server, such as ``http://127.0.0.1:8000``.
        key: API key, sent as ``X-API-KEY``.
        deadline: seconds a call may take in all.
        pools: number of connection pools of 16 connections each.
        seed: seed of the waiting times.
        transport: another way to reach the server, see :mod:`world_client.local`.

    Raises:
        ConnectionFailedError: the address has no ``http://`` or ``https://``.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str = "",
        deadline: float = DEFAULT_DEADLINE,
        pools: int = DEFAULT_POOLS,
        seed: int = 0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        if not url.lower().startswith(("http://", "https://")):
            raise ConnectionFailedError(
                f"{url!r} is no address: write http:// or https:// in front."
            )
        self._url = url.rstrip("/")
        self._headers = {"X-API-KEY": key} if key else {}
        self._deadline = deadline
        self._random = random.Random(seed)  # noqa: S311 - spreads retries, nothing secret
        self._transport = transport
        self._pools = Pools(self._make_client, size=pools)

    async def search(self, query: str, *, count: int = 10, offset: int = 0) -> SearchResponse:
        """Return ``count`` hits for the query from rank ``offset`` on.

        Raises:
            ClientError: see :mod:`world_client.errors`.
        """
        return await self.send_search(
            _checked(SearchRequest, query=query, count=count, offset=offset)
        )

    async def send_search(self, request: SearchRequest) -> SearchResponse:
        """Return the answer to a whole request, with every option of the contract."""
        return await self._post("/v1/search", request, SearchResponse)

    async def search_batch(self, requests: Sequence[SearchRequest]) -> list[SearchResponse]:
        """Return one answer a request, in order, each as if it had been asked alone."""
        batch = _checked(SearchBatchRequest, searches=list(requests))
        answer = await self._post("/v1/search/batch", batch, SearchBatchResponse)
        if len(answer.answers) != len(requests):
            raise ProtocolError(
                f"The batch had {len(requests)} searches, the answer has {len(answer.answers)}."
            )
        return answer.answers

    async def fetch(self, url: str) -> FetchResponse:
        """Return the page at the address, or the outcome that there is none."""
        return await self._post("/v1/fetch", _checked(FetchRequest, url=url), FetchResponse)

    async def close(self) -> None:
        """Close all connections."""
        await self._pools.close()

    async def __aenter__(self) -> Self:
        """Enter the context; nothing is opened before the first call."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close all connections."""
        await self.close()

    def _make_client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            base_url=self._url,
            headers=self._headers,
            timeout=None,  # noqa: S113 - the deadline around the call covers every phase
            transport=self._transport,
            trust_env=False,
            limits=httpx.Limits(max_connections=None, keepalive_expiry=4.0),
        )

    async def _post(self, path: str, message: BaseModel, kind: type[Answer]) -> Answer:
        body = message.model_dump_json(exclude_none=True).encode()
        try:
            async with asyncio.timeout(self._deadline) as limit:
                while True:
                    response = await self._send(path, body)
                    if response.status_code == httpx.codes.OK:
                        return _parsed(response, kind)
                    error = _error(response)
                    wait = self._wait(response)
                    if not isinstance(error, OverloadedError) or not _fits(wait, limit):
                        raise error
                    await asyncio.sleep(wait)
        except TimeoutError:
            raise ClientTimeoutError(
                f"POST {path} had no answer within {self._deadline:g} s."
            ) from None

    async def _send(self, path: str, body: bytes) -> httpx.Response:
        headers = {"Content-Type": "application/json"}
        for retried in (False, True):
            try:
                async with self._pools.client() as client:
                    return await client.post(path, content=body, headers=headers)
            except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError) as error:
                if retried:
                    raise ConnectionFailedError(f"POST {path} broke off: {error!r}.") from error
            except httpx.TransportError as error:
                raise ConnectionFailedError(
                    f"No connection to {self._url}: {error!r}.", hint="Is the server running?"
                ) from error
        raise AssertionError  # the loop returns or raises

    def _wait(self, response: httpx.Response) -> float:
        """Return seconds to wait: what the server names, spread by up to half."""
        named = response.headers.get("Retry-After", "1")
        seconds = float(named) if named.isdecimal() else 1.0
        return min(seconds, LONGEST_WAIT) * self._random.uniform(0.5, 1.0)


def _checked(kind: type[Answer], **fields: object) -> Answer:
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise BadRequestError(f"{place}: {first['msg']}.") from error


def _fits(wait: float, limit: asyncio.Timeout) -> bool:
    """Say whether another try after the wait would begin before the deadline."""
    end = limit.when()
    return end is None or asyncio.get_running_loop().time() + wait < end


def _parsed(response: httpx.Response, kind: type[Answer]) -> Answer:
    try:
        return kind.model_validate_json(response.content)
    except ValidationError as error:
        raise ProtocolError(
            f"The answer of {response.url.path} is no {kind.__name__}: {error.errors()[0]['msg']}."
        ) from error


def _error(response: httpx.Response) -> ClientError:
    try:
        problem = ProblemResponse.model_validate_json(response.content)
    except ValidationError:
        if response.status_code == OVERLOADED:
            return ServerFailedError(f"{response.url.path} answered 503 without a reason.")
        return ProtocolError(
            f"{response.url.path} answered {response.status_code} outside the contract."
        )
    kind = CALL_ERRORS.get(problem.outcome.value)
    if kind is None:
        return ProtocolError(f"{response.url.path} failed with the outcome {problem.outcome}.")
    return kind(problem.message, code=problem.code, hint=problem.hint, trainable=problem.trainable)
