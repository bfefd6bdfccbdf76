"""JSON bytes of answers."""

from __future__ import annotations

import orjson

from world_server.exchange import Reply


def json_reply(value: object, *, status: int = 200, outcome: str = "ok") -> Reply:
    """Return a reply with the value as JSON; equal values give equal bytes."""
    return Reply(orjson.dumps(value), status=status, outcome=outcome)
