"""The encoders of one process: each is loaded once, for all worlds that were built with it."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from world_core.encoders.base import Encoder
from world_core.encoders.invariance import check_queries, repeatable
from world_core.encoders.loading import load
from world_core.errors import ForeignWorldError
from world_core.manifest import Manifest
from world_server.batching import MicroBatcher
from world_server.encoder_client import RemoteEncoder
from world_server.encoder_process import Spec
from world_server.query_cache import QueryCache
from world_server.query_encoder import QueryEncoder
from world_server.settings import Settings

_OWN_PROCESS = frozenset({"flag"})
"""Kinds that have a process of their own unless told otherwise, see the setting."""


@dataclass(slots=True)
class _Shared:
    encoder: QueryEncoder
    users: int = 0


class QueryEncoders:
    """Opens encoders by what a world's manifest says; safe for several threads."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._shared: dict[tuple[Spec, bool], _Shared] = {}

    def take(self, manifest: Manifest) -> QueryEncoder:
        """Return the encoder of a world with vectors; to be given back once.

        Raises:
            ForeignWorldError: the world has no encoder.
            MissingPartError, EncoderError: the encoder cannot be loaded.
        """
        key = self._key(manifest)
        with self._lock:  # whoever comes meanwhile waits for the same model
            if key not in self._shared:
                self._shared[key] = _Shared(self._opened(*key))
            self._shared[key].users += 1
            return self._shared[key].encoder

    def give_back(self, encoder: QueryEncoder) -> None:
        """Close the encoder if nobody else uses it."""
        with self._lock:
            key, shared = next(
                (key, shared) for key, shared in self._shared.items() if shared.encoder is encoder
            )
            shared.users -= 1
            if shared.users:
                return
            del self._shared[key]
        encoder.close()

    def _key(self, manifest: Manifest) -> tuple[Spec, bool]:
        """Return what is to be loaded, and whether in a process of its own."""
        chosen = manifest.encoder
        if chosen is None:
            raise ForeignWorldError(f"The world {manifest.name} has no encoder.")
        settings = self._settings
        spec = Spec(
            kind=chosen.kind,
            arguments=tuple(sorted(chosen.arguments.items())),
            threads=settings.encoder_threads,
            expected_id=manifest.encoder_id,
            limit=settings.batch_limit,
            wait_s=settings.batch_wait_ms / 1e3,
        )
        # A model that gives dense vectors and sparse weights is not loaded twice.
        shares = manifest.sparse is not None and manifest.sparse.kind == chosen.kind
        automatic = chosen.kind in _OWN_PROCESS and not shares
        own = {"auto": automatic, "always": True, "never": False}[settings.encoder_process]
        return spec, own

    def _opened(self, spec: Spec, own_process: bool) -> QueryEncoder:  # noqa: FBT001 - a pair
        encoder: QueryEncoder
        if own_process:
            encoder = RemoteEncoder(spec)
        else:
            model: Encoder = load(
                spec.kind, dict(spec.arguments), threads=spec.threads, expected_id=spec.expected_id
            )
            model = repeatable(model, check=check_queries)
            encoder = MicroBatcher(model, limit=spec.limit, wait_s=spec.wait_s)
        return QueryCache(encoder, capacity=self._settings.query_cache_mb << 20)


class EncoderLease:
    """The encoder of one world while that is open."""

    def __init__(self, encoders: QueryEncoders) -> None:
        self._encoders = encoders
        self.encoder: QueryEncoder | None = None

    def open(self, manifest: Manifest) -> QueryEncoder:
        """Take the world's encoder; raises as :meth:`QueryEncoders.take` does."""
        self.encoder = self._encoders.take(manifest)
        return self.encoder

    def close(self) -> None:
        """Give it back, if there is one."""
        if self.encoder is not None:
            encoder, self.encoder = self.encoder, None
            self._encoders.give_back(encoder)
