"""The worlds a server serves: opened, proved, and switched while calls are running."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from world_core import manifest as manifests
from world_core.errors import BadWorldError, ForeignWorldError, WorldError
from world_core.manifest import Manifest
from world_server import canary, room
from world_server.counts import Counts
from world_server.engine_client import EngineClient, LocalEngine
from world_server.errors import SettingsError, UnknownWorldError
from world_server.pointer import WorldFolder
from world_server.query_encoders import EncoderLease, QueryEncoders
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


RETRY_S = 30.0
"""Seconds after which a version that could not be served is tried again, changed or not."""


@dataclass(frozen=True, slots=True)
class _Refusal:
    """A version that was tried in vain: its folder, its manifest then, and when that was."""

    target: Path
    stamp: tuple[int, int] | None
    tried: float

    def holds(self, target: Path, stamp: tuple[int, int] | None, now: float) -> bool:
        """True while trying that folder again would most likely end as before."""
        return (self.target, self.stamp) == (target, stamp) and now - self.tried < RETRY_S


@dataclass(slots=True)
class Slot:
    """A name under which a world is served, and where its next version comes from.

    ``fault`` says why there is no world.
    """

    world: ServedWorld | None
    folder: WorldFolder | None = None
    target: Path | None = None
    fault: WorldError | None = None
    refusal: _Refusal | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Worlds:
    """Worlds by name; the first is the one plain requests meet.

    A world that could not be opened keeps its place, so that no other one answers for it.

    Attributes:
        changes: counts what may make an earlier report on the worlds untrue.
    """

    def __init__(
        self, opener: Opener | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Take what opens the worlds; without it they are opened elsewhere."""
        self.changes = 0
        self._opener = opener or _refuse_opening
        self._clock = clock
        self._slots: dict[str, Slot] = {}
        self._closing: set[asyncio.Task[None]] = set()

    @classmethod
    def of(cls, *served: ServedWorld) -> Worlds:
        """Return a registry of worlds that are open already and never switched."""
        worlds = cls()
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
        self._slots[name] = Slot(world, folder, target)

    def add_failed(self, name: str, fault: WorldError, folder: WorldFolder) -> None:
        """Keep the place of a world that could not be opened: its calls fail until it can be."""
        self._slots[name] = Slot(None, folder, fault=fault)

    @property
    def names(self) -> list[str]:
        """Names of the worlds, the first one first, those that could not be opened included."""
        return list(self._slots)

    @property
    def opened(self) -> list[ServedWorld]:
        """The worlds that are open, in the order of their names."""
        return [slot.world for slot in self._slots.values() if slot.world is not None]

    def get(self, name: str = "") -> ServedWorld:
        """Return the world of a name, the first for "".

        Raises:
            UnknownWorldError: no world of that name is served.
            BadWorldError: the world of that name could not be opened.
        """
        name = name or next(iter(self._slots))
        slot = self._slot(name)
        if slot.world is None:
            code = "" if slot.fault is None else f" ({slot.fault.code})"
            raise BadWorldError(
                f"The world {name!r} cannot be served{code}.", hint="The server's log says why."
            )
        return slot.world

    def fault(self, name: str) -> WorldError | None:
        """Return why the world of a name could not be opened, ``None`` for one that is open."""
        return self._slot(name).fault

    async def start(self) -> None:
        """Wait until the worlds are known: at once, for they were opened here."""

    async def totals(self, counts: Counts) -> Counts:
        """Return the counts of all processes over these worlds: those given, for there is one."""
        return counts

    async def refresh(self, name: str, *, again: bool = False) -> bool:
        """Switch to the version that the world's pointer names, if it is another; say whether.

        The new version is opened and proved beside the old one; calls that are inside the old one
        end there, then it is closed. A version that was tried in vain is passed over until its
        manifest changes or ``RETRY_S`` are over, unless ``again`` is true.

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
                slot.refusal = None
                return False
            now, stamp, last = self._clock(), _stamp(target), slot.refusal
            if not again and last is not None and last.holds(target, stamp, now):
                return False
            # Remembered before it is opened, so that any error counts.
            slot.refusal = _Refusal(target, stamp, now)
            fresh = await asyncio.to_thread(self._opener, target)
            if fresh.manifest.name != name:
                await fresh.engine.close()
                raise ForeignWorldError(
                    f"{target} holds the world {fresh.manifest.name!r}, not {name!r}.",
                    hint="Let the pointer name a version of the same world.",
                )
            old, slot.world, slot.target = slot.world, fresh, target
            slot.fault = slot.refusal = None
            self.changes += 1
            _LOG.info("switched %s to %s", name, fresh.manifest.world_id)
        if old is not None:
            self._retire(old)
        return True

    async def close(self) -> None:
        """Close all worlds, each after its last call."""
        await asyncio.gather(*self._closing, *(world.close() for world in self.opened))

    def _retire(self, world: ServedWorld) -> None:
        """Close a world that is served no more, after its last call."""
        closing = asyncio.create_task(world.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    def _slot(self, name: str) -> Slot:
        slot = self._slots.get(name)
        if slot is None:
            raise UnknownWorldError(
                f"No world named {name[:80]!a} is served.", hint="See GET /info for those that are."
            )
        return slot


def open_worlds(arguments: Sequence[str], opener: Opener) -> Worlds:
    """Open the worlds of the command line; a bad one is reported and only keeps its place.

    Raises:
        SettingsError: no world is named, or two have one name.
        WorldError: not one of them can be served; the first fault.
    """
    if not arguments:
        raise SettingsError(
            "No world to serve.", hint="Name a world folder, or try: world-server demo."
        )
    worlds = Worlds(opener)
    folders = [WorldFolder(Path(argument)) for argument in arguments]
    found = [_try(folder, opener) for folder in folders]
    faults = [one for one in found if isinstance(one, WorldError)]
    for argument, one in zip(arguments, found, strict=True):
        if isinstance(one, WorldError) and len(arguments) > 1:  # a single one is the caller's
            _LOG.error("world %s is not served: %s", argument, one)
    if len(faults) == len(found):
        raise faults[0]
    taken = {one[0].manifest.name for one in found if not isinstance(one, WorldError)}
    for folder, one in zip(folders, found, strict=True):
        if isinstance(one, WorldError):
            name = _free_name(_name_of(folder), taken)
            taken.add(name)
            worlds.add_failed(name, one, folder)
        else:
            world, target = one
            worlds.add(world, folder, target)
    return worlds


def _stamp(target: Path) -> tuple[int, int] | None:
    """Return what tells one manifest of a folder from another, ``None`` if it has none."""
    try:
        found = (target / manifests.MANIFEST_NAME).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _try(folder: WorldFolder, opener: Opener) -> tuple[ServedWorld, Path] | WorldError:
    try:
        target = folder.target()
        return opener(target), target
    except WorldError as error:
        return error


def _name_of(folder: WorldFolder) -> str:
    """Return the name of a world that could not be opened, the folder's if it cannot be read."""
    try:
        return manifests.read(folder.target()).name
    except WorldError:
        return folder.path.resolve().name


def _free_name(name: str, taken: set[str]) -> str:
    """Return the name, with a number that no path can hold where another world has it."""
    numbered = (f"{name}#{number}" for number in itertools.count(2))
    return next(one for one in itertools.chain((name,), numbered) if one not in taken)


def opener_for(settings: Settings, *, verify: bool) -> Opener:
    """Return the opener of real worlds: verify, open, ask the canary queries, warm up."""
    encoders = QueryEncoders(settings)

    def opener(folder: Path) -> ServedWorld:
        from world_core.engine import Engine
        from world_core.generation import Generation
        from world_core.warming import warm_up

        if settings.plan_check:
            room.check_one(folder)
        with ExitStack() as undo:
            lease = EncoderLease(encoders)
            undo.callback(lease.close)
            generation = Generation.open(
                folder,
                verify=verify,
                threads=settings.encoder_threads,
                dense_device=settings.dense_device,
                reranker=settings.reranker,
                rerank_top=settings.rerank_top,
                encoder_of=lease.open,
            )
            engine = Engine(generation)
            undo.callback(engine.close)
            canary.prove(engine, generation.manifest)
            warm_up(generation)
            undo.pop_all()
        local = LocalEngine(
            engine,
            threads=settings.engine_threads,
            encoder=lease.encoder,
            on_close=lease.close,
        )
        return ServedWorld(generation.manifest, local)

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
