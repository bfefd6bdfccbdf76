"""The whole atlas of one seed: any block and any entity of it, made when asked for."""

from __future__ import annotations

from functools import lru_cache

from corpus_builder.atlas.cast import Cast, Identity
from corpus_builder.atlas.entities import Block, Entity

_BLOCKS_KEPT = 64


class Atlas:
    """A world without end; a size only says how much of it is looked at."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._cast = Cast(seed)
        self.block = lru_cache(_BLOCKS_KEPT)(self._block)
        """Return a block by number, from 0; the latest ones are kept."""

    def entity(self, identity: Identity) -> Entity:
        """Return the entity with its facts."""
        return self.block(identity.block).entities[identity.slot]

    def _block(self, number: int) -> Block:
        return Block(self._cast, number)
