"""The vectors of the queries of some searches, awaited before a thread of the engine is taken.

So searches that wait for the encoder, which batches the more the more they are, keep none of the
engine's threads from those that do not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from world_core.errors import EncoderError
from world_core.types import SearchCall, Vector
from world_server.query_encoder import QueryEncoder


async def query_vectors(encoder: QueryEncoder, calls: Sequence[SearchCall]) -> list[Vector | None]:
    """Return a vector for each call that needs one; ``None`` for the others.

    Where the encoder fails and all those calls may do without, none of them gets a vector.

    Raises:
        EncoderError: the encoder failed, and a call cannot do without.
    """
    vectors: list[Vector | None] = [None] * len(calls)
    wanted = [place for place, call in enumerate(calls) if call.needs_vector]
    try:
        begun = [asyncio.wrap_future(encoder.submit(calls[place].query)) for place in wanted]
        rows = await asyncio.gather(*begun)
    except EncoderError:
        if not all(calls[place].may_degrade for place in wanted):
            raise
        return vectors
    for place, row in zip(wanted, rows, strict=True):
        vectors[place] = row
    return vectors
