"""From an error to an outcome, in one place; each dialect gives it its own shape."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from world_client.wire import Outcome
from world_core.errors import BadInputError, CancelledCallError, WorldError
from world_server.errors import (
    BadFieldError,
    BodyTooLargeError,
    ClientLeftError,
    DeadlineError,
    NoRouteError,
    OverloadedError,
    RequestError,
    SlowBodyError,
    UnauthorizedError,
    UnknownWorldError,
    WrongMethodError,
)
from world_server.exchange import Reply, Request

_LOG = logging.getLogger(__name__)
_NOT_THE_MODELS = (NoRouteError, SlowBodyError, UnknownWorldError, WrongMethodError)
"""Bad requests that come of a wrong address or a bad line; no model writes those."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What a failed request came to; ``headers`` are those every dialect must send.

    ``of_model`` is false for a bad request that no model can have caused.
    """

    outcome: Outcome
    code: str
    status: int
    message: str
    hint: str = ""
    field: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    of_model: bool = True

    @property
    def retryable(self) -> bool:
        """True when the same request may succeed later."""
        return self.outcome in (Outcome.OVERLOADED, Outcome.DEADLINE, Outcome.INTERNAL)

    @property
    def trainable(self) -> bool:
        """True when a trainer may learn from it: the model itself wrote the request."""
        return self.outcome is Outcome.BAD_REQUEST and self.of_model


Renderer = Callable[[Problem, Request], Reply]
"""Gives a problem the shape of a dialect."""


def problem_of(error: WorldError) -> Problem:
    """Return the problem that an error of ours stands for."""
    outcome = _outcome_of(error)
    headers: tuple[tuple[str, str], ...] = ()
    if isinstance(error, OverloadedError):
        headers = (("Retry-After", str(error.retry_after)),)
    elif isinstance(error, BodyTooLargeError | SlowBodyError):
        headers = (("Connection", "close"),)
    elif isinstance(error, WrongMethodError):
        headers = (("Allow", ", ".join(error.allowed)),)
    return Problem(
        outcome=outcome,
        code=error.code,
        # Whatever a part of ours says of itself, its failure is never the caller's.
        status=error.status if outcome is not Outcome.INTERNAL else 503,
        message=error.sentence,
        hint=error.hint,
        field=error.field if isinstance(error, BadFieldError) else "",
        headers=headers,
        of_model=not isinstance(error, _NOT_THE_MODELS),
    )


async def answered(work: Awaitable[Reply], render: Renderer, request: Request) -> Reply | None:
    """Return the reply of the work, or the problem it ended in; ``None`` when the client left.

    This is the boundary of a request: nothing but a cancellation passes it.
    """
    try:
        return await work
    except ClientLeftError:
        return None
    except WorldError as error:
        problem = problem_of(error)
        if problem.outcome is Outcome.INTERNAL:
            _LOG.error("a part failed: %s: %s", problem.code, error)
    except Exception:  # noqa: BLE001 - the boundary of a request
        _LOG.exception("an error nobody foresaw")
        problem = Problem(Outcome.INTERNAL, "internal", 503, "The server failed.")
    reply = render(problem, request)
    return Reply(
        reply.body,
        reply.status,
        reply.media_type,
        {**reply.headers, **dict(problem.headers)},
        problem.outcome.value,
    )


async def contained(work: Awaitable[None], what: str) -> None:
    """Await the work of a task that must live on, and log what it failed with.

    This is the boundary of one look at the disk: nothing but a cancellation passes it.
    """
    try:
        await work
    except (WorldError, OSError) as error:
        _LOG.error("%s: %s", what, error)
    except Exception:  # noqa: BLE001 - the boundary of one look at the disk
        _LOG.exception("%s: an error nobody foresaw", what)


def _outcome_of(error: WorldError) -> Outcome:
    if isinstance(error, UnauthorizedError):
        return Outcome.UNAUTHORIZED
    if isinstance(error, RequestError | BadInputError):
        return Outcome.BAD_REQUEST
    if isinstance(error, OverloadedError):
        return Outcome.OVERLOADED
    if isinstance(error, DeadlineError | CancelledCallError):
        return Outcome.DEADLINE
    return Outcome.INTERNAL
