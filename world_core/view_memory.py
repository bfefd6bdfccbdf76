"""The views of one world that were compiled before, and what compiling them shares."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cached_property
from threading import Lock
from typing import Any, Generic, Protocol, TypeVar

from numpy.typing import NDArray

from world_core.hosts import HostTree
from world_core.types import Bitmap

FLAG_LIMIT = 256_000_000
"""Flags, a byte each, that remembered views may hold together."""


class Sized(Protocol):
    """What a memory needs to know of a view."""

    @property
    def versions(self) -> Bitmap:
        """The visible versions."""
        ...


Known = TypeVar("Known", bound=Sized)


class ViewMemory(Generic[Known]):
    """Remembers views by what they were made of, least recently used dropped first.

    Safe under threads; two may compile the same view at once, and then both get the first.
    """

    def __init__(self, hosts: Sequence[str], limit: int = FLAG_LIMIT) -> None:
        """Take the world's host names, and how many flags may be held."""
        self._hosts = hosts
        self._limit = limit
        self._lock = Lock()
        self._known: OrderedDict[bytes, Known] = OrderedDict()
        self._held = 0

    @cached_property
    def hosts(self) -> HostTree:
        """The world's hosts by site, sorted when a site is first asked for."""
        return HostTree(self._hosts)

    def get(self, key: bytes, compile_view: Callable[[], Known]) -> Known:
        """Return the view of a key, compiling it when it is not remembered."""
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
                return known
        made = compile_view()
        with self._lock:
            known = self._known.setdefault(key, made)
            if known is made:
                self._held += made.versions.size
            while self._held > self._limit and len(self._known) > 1:
                _, dropped = self._known.popitem(last=False)
                self._held -= dropped.versions.size
        return known

    def forget(self) -> None:
        """Drop every remembered view; views hold their memory, so they would keep each other."""
        with self._lock:
            self._known.clear()
            self._held = 0


def digest_of(*parts: bytes | NDArray[Any]) -> bytes:
    """Return a digest of a list of parts, each taken with its length."""
    total = hashlib.blake2b(digest_size=20)
    for part in parts:
        data = part if isinstance(part, bytes) else part.tobytes()
        total.update(len(data).to_bytes(8, "little"))
        total.update(data)
    return total.digest()
