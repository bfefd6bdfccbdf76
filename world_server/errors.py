"""The error tree of the server, below the core's.

WorldError (world_core.errors)
├── SettingsError           a setting is missing, unknown or out of range
├── RequestError            the request is at fault
│   ├── BadFieldError       a field of the request cannot be used
│   ├── BodyTooLargeError   the body passes the limit
│   ├── SlowBodyError       the body did not arrive in time
│   ├── BudgetError         the page is larger than the request allows
│   ├── NoRouteError        nothing is served at this path
│   ├── WrongMethodError    the path is served, the method is not
│   ├── UnknownWorldError   no world of that name is served
│   └── UnauthorizedError   the key is missing or not known
├── OverloadedError         waited to the deadline, or the queue is full
├── DeadlineError           our own work did not end in time
├── EngineLostError         the engine process has ended
├── EncoderDownError        the encoder's process does not work
├── FrameError              a message between two of our processes cannot be used
└── ClientLeftError         the client closed the connection; nobody reads an answer
"""

from __future__ import annotations

from world_core.errors import EncoderError, WorldError


class SettingsError(WorldError):
    """A setting is missing, unknown or out of range; the server does not start."""

    code = "settings"


class RequestError(WorldError):
    """The request is at fault, not the server."""

    code = "bad_request"
    status = 400


class BadFieldError(RequestError):
    """A field of the request cannot be used; ``field`` names it ("" for the body itself)."""

    def __init__(self, sentence: str, *, field: str = "", hint: str = "") -> None:
        super().__init__(sentence, hint=hint)
        self.field = field


class BodyTooLargeError(RequestError):
    """The body passes the limit; the rest is not kept and the connection is closed."""

    code = "body_too_large"
    status = 413


class SlowBodyError(RequestError):
    """The body did not arrive in time; the connection is closed."""

    code = "slow_body"
    status = 408


class BudgetError(RequestError):
    """The page holds more tokens than the request allows."""

    code = "token_budget"
    status = 409


class NoRouteError(RequestError):
    """Nothing is served at this path."""

    code = "no_route"
    status = 404


class WrongMethodError(RequestError):
    """The path is served, but not for this method; ``allowed`` lists those it is served for."""

    code = "wrong_method"
    status = 405

    def __init__(self, sentence: str, *, allowed: tuple[str, ...]) -> None:
        super().__init__(sentence, hint=f"Use {' or '.join(allowed)}.")
        self.allowed = allowed


class UnknownWorldError(RequestError):
    """No world of that name is served."""

    code = "unknown_world"
    status = 404


class UnauthorizedError(RequestError):
    """The key is missing or not known."""

    code = "unauthorized"
    status = 401


class OverloadedError(WorldError):
    """The call waited to its deadline, or the queue is full.

    ``retry_after`` is the number of seconds after which trying again makes sense, 1 to 5.
    """

    code = "overloaded"
    status = 503

    def __init__(self, sentence: str, *, retry_after: int) -> None:
        super().__init__(sentence, hint=f"Try again in {retry_after} s.")
        self.retry_after = retry_after


class DeadlineError(WorldError):
    """Our own work on the call did not end in time."""

    code = "deadline"
    status = 504


class EngineLostError(WorldError):
    """The engine process has ended or cannot be reached; nothing is known of the answer."""

    code = "engine_lost"


class EncoderDownError(EncoderError):
    """The encoder's process ended, stands still, or may not be started again yet."""


class FrameError(WorldError):
    """A message between two of our own processes is damaged, cut off or too large."""

    code = "frame"


class ClientLeftError(WorldError):
    """The client closed the connection; nobody reads an answer."""

    code = "client_left"
    status = 499
