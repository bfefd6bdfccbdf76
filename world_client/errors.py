"""The error tree of the client.

ClientError
├── CallFailedError          a call came to an outcome that is no answer
│   ├── BadRequestError      bad_request: the request is malformed (trainable)
│   ├── UnauthorizedError    unauthorized: key or token refused
│   ├── OverloadedError      overloaded: the server had no room before the deadline
│   ├── DeadlineError        deadline: the server's work did not end in time
│   └── ServerFailedError    internal: a part of the server failed
└── TransportError           no usable answer arrived
    ├── ClientTimeoutError   client_timeout: the client's own deadline passed
    ├── ConnectionFailedError  connection_failed: no connection, or it broke
    └── ProtocolError        protocol_error: the answer was not of the contract
"""

from __future__ import annotations

from typing import ClassVar


class ClientError(Exception):
    """Base of every error the client raises.

    Attributes:
        outcome: name of the outcome (contract: outcomes).
        trainable: whether a trainer may learn from a rollout that met this.
    """

    outcome: ClassVar[str] = "internal"
    trainable: bool = False

    def __init__(
        self, sentence: str, *, code: str = "", hint: str = "", trainable: bool | None = None
    ) -> None:
        super().__init__(sentence)
        if trainable is not None:
            self.trainable = trainable
        self.sentence = sentence
        self.code = code or self.outcome
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.sentence} {self.hint}".strip()


class CallFailedError(ClientError):
    """The server answered with an outcome that is no answer to the call."""


class BadRequestError(CallFailedError):
    """The request is malformed; a trainer may learn from it unless the server says otherwise."""

    outcome = "bad_request"
    trainable = True


class UnauthorizedError(CallFailedError):
    """The key or token was refused."""

    outcome = "unauthorized"


class OverloadedError(CallFailedError):
    """The server was full until the deadline, also after the client's own tries."""

    outcome = "overloaded"


class DeadlineError(CallFailedError):
    """The server's work did not end in time."""

    outcome = "deadline"


class ServerFailedError(CallFailedError):
    """A part of the server failed; never to be read as an absent page or an empty result."""

    outcome = "internal"


class TransportError(ClientError):
    """No usable answer arrived."""


class ClientTimeoutError(TransportError):
    """The client's own deadline passed."""

    outcome = "client_timeout"


class ConnectionFailedError(TransportError):
    """No connection could be made, or it broke before the answer was whole."""

    outcome = "connection_failed"


class ProtocolError(TransportError):
    """An answer arrived that is not of the contract."""

    outcome = "protocol_error"


CALL_ERRORS: dict[str, type[CallFailedError]] = {
    kind.outcome: kind
    for kind in (
        BadRequestError,
        UnauthorizedError,
        OverloadedError,
        DeadlineError,
        ServerFailedError,
    )
}
"""Error class by outcome name."""
