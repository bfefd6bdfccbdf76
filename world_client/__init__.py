"""The thin client that trainers plug in; httpx and pydantic, nothing else."""

from world_client.client import WorldClient
from world_client.errors import (
    BadRequestError,
    CallFailedError,
    ClientError,
    ClientTimeoutError,
    ConnectionFailedError,
    DeadlineError,
    OverloadedError,
    ProtocolError,
    ServerFailedError,
    TransportError,
    UnauthorizedError,
)
from world_client.local import local_client
from world_client.sync import SyncWorldClient
from world_client.wire import (
    FetchRequest,
    FetchResponse,
    SearchHit,
    SearchRequest,
    SearchResponse,
)

__all__ = [
    "BadRequestError",
    "CallFailedError",
    "ClientError",
    "ClientTimeoutError",
    "ConnectionFailedError",
    "DeadlineError",
    "FetchRequest",
    "FetchResponse",
    "OverloadedError",
    "ProtocolError",
    "SearchHit",
    "SearchRequest",
    "SearchResponse",
    "ServerFailedError",
    "SyncWorldClient",
    "TransportError",
    "UnauthorizedError",
    "WorldClient",
    "local_client",
]
