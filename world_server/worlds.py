"""The worlds a server serves: opened, proved, and switched while calls are running."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from world_core import manifest as manifests
from world_core.errors import BadWorldError, ForeignWorldError, WorldError
from world_core.manifest import Manifest
from world_server import canary
from world_server.engine_client import EngineClient, LocalEngine
from world_server.errors import SettingsError, UnknownWorldError
from world_server.pointer import WorldFolder
from world_server.settings import Settings

_LOG = logging.getLogger(__name__)


class ServedWorld:
    """One open world: its manifest, its engine, and how many calls are inside."""

    def __init__(self, manifest: Manifest, engine: EngineClient) -> None:
        self.manifest = manifest
        self.engine = engine
        self._inside = 0
        self._empty = asyncio.Event()
        self._empty.set()

    @contextmanager
    def lease(self) -> Iterator[ServedWorld]:
        """Keep the world open while a call is inside."""
        self._inside += 1
        self._empty.clear()
        try:
            yield self
        finally:
            self._inside -= 1
            if not self._inside:
                self._empty.set()

    async def close(self) -> None:
        """Wait until the last call has left, then close the engine."""
        await self._empty.wait()
        await self.engine.close()


Opener = Callable[[Path], ServedWorld]
"""Opens and proves the world in a folder; blocks; raises WorldError when it cannot be served."""


@dataclass(slots=True)
class _Slot:
    """A name under which a world is served, and where its next version comes from."""

    world: ServedWorld
    folder: WorldFolder | None = None
    target: Path | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Worlds:
    """Served worlds by name; the first is the one plain requests meet."""

    def __init__(self, opener: Opener) -> None:
        self._opener = opener
        self._slots: dict[str, _Slot] = {}
        self._closing: set[asyncio.Task[None]] = set()

    @classmethod
    def of(cls, *served: ServedWorld) -> Worlds:
        """Return a registry of worlds that are open already and never switched."""
        worlds = cls(_refuse_opening)
        for world in served:
            worlds.add(world)
        return worlds

    def add(
        self, world: ServedWorld, folder: WorldFolder | None = None, target: Path | None = None
    ) -> None:
        """Serve a world under the name of its manifest.

        Raises:
            SettingsError: a world of that name is served already.
        """
        name = world.manifest.name
        if name in self._slots:
            raise SettingsError(
                f"Two worlds are named {name!r}.", hint="Serve each world of a name only once."
            )
        self._slots[name] = _Slot(world, folder, target)

    @property
    def names(self) -> list[str]:
        """Names of the served worlds, the first one first."""
        return list(self._slots)

    def get(self, name: str = "") -> ServedWorld:
        """Return the world of a name, the first for "".

        Raises:
            UnknownWorldError: no world of that name is served.
        """
        if not name:
            return next(iter(self._slots.values())).world
        return self._slot(name).world

    async def refresh(self, name: str) -> bool:
        """Switch to the version that the world's pointer names, if it is another; say whether.

        The new version is opened and proved beside the old one; calls that are inside the old one
        end there, then it is closed.

        Raises:
            UnknownWorldError: no world of that name is served.
            BadWorldError: the new version cannot be served; the old one still is.
        """
        slot = self._slot(name)
        async with slot.lock:
            if slot.folder is None:
                return False
            target = slot.folder.target()
            if target == slot.target:
                return False
            # Remembered before it is opened: a bad version is tried once, not every second.
            slot.target = target
            fresh = await asyncio.to_thread(self._opener, target)
            if fresh.manifest.name != name:
                await fresh.engine.close()
                raise ForeignWorldError(
                    f"{target} holds the world {fresh.manifest.name!r}, not {name!r}.",
                    hint="Let the pointer name a version of the same world.",
                )
            old, slot.world = slot.world, fresh
            _LOG.info("switched %s to %s", name, fresh.manifest.world_id)
        closing = asyncio.create_task(old.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        return True

    async def close(self) -> None:
        """Close all worlds, each after its last call."""
        await asyncio.gather(*self._closing, *(slot.world.close() for slot in self._slots.values()))

    def _slot(self, name: str) -> _Slot:
        slot = self._slots.get(name)
        if slot is None:
            raise UnknownWorldError(
                f"No world named {name[:80]!a} is served.", hint="See GET /info for those that are."
            )
        return slot


def open_worlds(arguments: Sequence[str], opener: Opener) -> Worlds:
    """Open the worlds of the command line; a bad one is reported and left out.

    Raises:
        SettingsError: no world is named, or two have one name.
        WorldError: not one of them can be served; the first fault.
    """
    if not arguments:
        raise SettingsError(
            "No world to serve.", hint="Name a world folder, or try: world-server demo."
        )
    worlds = Worlds(opener)
    faults: list[WorldError] = []
    for argument in arguments:
        folder = WorldFolder(Path(argument))
        try:
            target = folder.target()
            world = opener(target)
        except WorldError as error:
            faults.append(error)
            if len(arguments) > 1:  # a single one is the caller's to report
                _LOG.error("world %s is not served: %s", argument, error)
            continue
        worlds.add(world, folder, target)
    if not worlds.names:
        raise faults[0]
    return worlds


def opener_for(settings: Settings, *, verify: bool) -> Opener:
    """Return the opener of real worlds: verify, open, ask the canary queries."""

    def opener(folder: Path) -> ServedWorld:
        from world_core.engine import Engine
        from world_core.generation import Generation

        generation = Generation.open(folder, verify=verify, threads=settings.encoder_threads)
        engine = Engine(generation)
        try:
            canary.prove(engine, generation.manifest)
        except WorldError:
            engine.close()
            raise
        return ServedWorld(
            generation.manifest, LocalEngine(engine, threads=settings.engine_threads)
        )

    return opener


def check_folder(argument: str) -> Manifest:
    """Verify the files of a world against its manifest, and return that.

    Raises:
        BadWorldError: the folder is no world, is damaged, or was written by a newer program.
    """
    folder = WorldFolder(Path(argument)).target()
    manifest = manifests.read(folder)
    manifests.verify(folder, manifest)
    return manifest


def _refuse_opening(folder: Path) -> ServedWorld:
    raise BadWorldError(f"{folder} cannot be opened by a registry of open worlds.")
