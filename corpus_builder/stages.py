"""The first stage: every record of every shard becomes a draft or a counted loss.

This file is the boundary of a page in a build: whatever a page makes the extractor do, it costs
that page and nothing else.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from corpus_builder.capture import Capture, Draft, Loss, Shard, Source
from corpus_builder.cpu_limit import ENDED_BY, OverCpuError, cpu_limit
from corpus_builder.errors import BuilderError, StageFailedError
from corpus_builder.extract import DEFAULTS, ExtractSettings, extract, prepare
from corpus_builder.parts import PartFacts, PartWriter, drop_other_parts, whole_parts
from corpus_builder.textclean import path_text
from corpus_builder.workers import Tell, run_tasks
from corpus_builder.workspace import digest_of, kill_point
from world_core.errors import WorldError

FORMAT = 1
"""Raised when the drafts of equal input and settings change, so that old parts are not resumed."""

PART_DRAFTS = 5000
PART_CHARACTERS = 32_000_000
PART_SECONDS = 20.0
TOLD_EVERY = 64

NEAR_DEATHS = 3
"""How often a shard's process may die between two pages before the stage gives up."""


class Extractor(Protocol):
    """Turns captures into drafts; picklable, and its ``repr`` names all its settings."""

    def prepare(self) -> None:
        """Load what is needed, so that no page pays for it."""
        ...

    def __call__(self, capture: Capture) -> Draft | Loss:
        """Return the draft of a capture, or why there is none."""
        ...


@dataclass(frozen=True, slots=True)
class PageExtractor:
    """The extractor of every build."""

    settings: ExtractSettings = DEFAULTS

    def prepare(self) -> None:
        """Load the models."""
        prepare()

    def __call__(self, capture: Capture) -> Draft | Loss:
        """Extract the page."""
        return extract(capture, settings=self.settings)


@dataclass(frozen=True, slots=True)
class ReadTask:
    """One shard to read; ``skip`` holds items that are lost, with the reason."""

    number: int
    source: Source
    shard: Shard
    digest: str
    folder: Path
    extractor: Extractor
    cpu_seconds: float
    skip: tuple[tuple[int, str], ...] = ()

    @property
    def mark(self) -> Path:
        """The file that says which item is at work, for the case that the process dies."""
        return self.folder / f"{self.number:06d}.at"


@dataclass(slots=True)
class ReadFacts:
    """What the stage came to: the sorted files of drafts, and counts that add up to ``items``."""

    parts: list[Path] = field(default_factory=list)
    items: int = 0
    drafts: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    noted: Counter[str] = field(default_factory=Counter)
    losses: list[Loss] = field(default_factory=list)


def read_shards(
    sources: Sequence[Source],
    folder: Path,
    *,
    extractor: Extractor,
    cpu_seconds: float,
    workers: int,
    tell: Tell,
) -> tuple[ReadFacts, str]:
    """Read all shards of all sources into parts; return the facts and the digest of the input.

    Whole parts that are there already are kept if they come from the same input and settings.

    Raises:
        BuilderError: a source refuses its input, or a stage cannot go on.
        StageFailedError: a shard was not read to its end.
        OSError: a file cannot be read or written.
    """
    folder.mkdir(exist_ok=True)
    tasks: list[ReadTask] = []
    prints: dict[Path, str] = {}
    for source in sources:
        for shard in source.shards():
            state = prints.setdefault(shard.path, _fingerprint(shard.path))
            number = len(tasks)
            digest = digest_of(
                FORMAT,
                number,
                shard.kind,
                path_text(str(shard.path)),
                shard.arguments,
                state,
                repr(extractor),
                cpu_seconds,
            )
            tasks.append(ReadTask(number, source, shard, digest, folder, extractor, cpu_seconds))
    there = {task.number: _parts(task) for task in tasks}
    # Parts of other input or settings end elsewhere in a shard, and must not mix with new ones.
    drop_other_parts(folder, {part.name for parts in there.values() for part in parts})
    open_tasks = [task for task in tasks if not _finished(there[task.number])]
    mourner = _Mourner()
    for _ in run_tasks(read_shard, open_tasks, workers=workers, died=mourner.died, tell=tell):
        kill_point("shard")
    facts = ReadFacts()
    for task in tasks:
        parts = _parts(task)
        if not _finished(parts):
            raise StageFailedError(
                f"Of {task.shard.path} only {parts[-1].after if parts else 0} items were read, "
                "and no process failed.",
                hint="Run the same command again; if it ends here again, report it.",
            )
        _gather(facts, parts, folder)
    drop_other_parts(folder, {path.name.removesuffix(".jsonl.zst") for path in facts.parts})
    kill_point("read")
    return facts, digest_of([task.digest for task in tasks])


def read_shard(task: ReadTask, tell: Tell) -> int:
    """Read one shard from its first item that is in no whole part; return the number of items.

    Raises:
        StageFailedError: the source broke its promise to report bad records as losses.
    """
    task.extractor.prepare()
    parts = _parts(task)
    start = parts[-1].after if parts else 0
    writer = PartWriter(task.folder, task.number, start, task.digest)
    began = time.monotonic()
    told = 0
    for item, found in _items(task, start):
        writer.add(found)
        if (item + 1) % TOLD_EVERY == 0:
            tell(TOLD_EVERY)
            told += TOLD_EVERY
        if _is_full(writer, began):
            writer.commit(last=False)
            writer = PartWriter(task.folder, task.number, item + 1, task.digest)
            began = time.monotonic()
    writer.commit(last=True)
    task.mark.unlink(missing_ok=True)
    tell(max(0, writer.facts.after - start - told))
    return writer.facts.after


def draft_of(capture: Capture, extractor: Extractor, cpu_seconds: float) -> Draft | Loss:
    """Extract a page; whatever goes wrong with it is a loss with a reason."""
    over = Loss(capture.origin, capture.offset, f"over {cpu_seconds:g} s of CPU time", capture.url)
    try:
        with cpu_limit(cpu_seconds) as watch:
            found = extractor(capture)
    except OverCpuError:
        return over
    except Exception as error:  # noqa: BLE001  # the boundary: a page of a build costs itself only
        reason = f"extractor failed: {type(error).__name__}"
        return Loss(capture.origin, capture.offset, reason, capture.url)
    return over if watch.fired else found


def _items(task: ReadTask, start: int) -> Iterator[tuple[int, Draft | Loss]]:
    """Yield the shard's items from ``start`` on, marking each before it is worked on."""
    skip = dict(task.skip)
    mark = os.open(task.mark, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        for item, found in enumerate(_read(task)):
            if item < start:
                continue
            os.pwrite(mark, item.to_bytes(8, "big"), 0)
            if isinstance(found, Loss):
                yield item, found
            elif item in skip:
                yield item, Loss(found.origin, found.offset, skip[item], found.url)
            else:
                yield item, draft_of(found, task.extractor, task.cpu_seconds)
            os.pwrite(mark, (item + 1).to_bytes(8, "big"), 0)
    finally:
        os.close(mark)


def _read(task: ReadTask) -> Iterator[Capture | Loss]:
    try:
        yield from task.source.read(task.shard)
    except (BuilderError, WorldError, OSError):
        raise
    except Exception as error:
        raise StageFailedError(
            f"Reading {task.shard.path} failed: {type(error).__name__}: {error}.",
            hint="Leave this file out, and report it.",
        ) from error


def _is_full(writer: PartWriter, began: float) -> bool:
    return (
        writer.facts.drafts >= PART_DRAFTS
        or writer.characters >= PART_CHARACTERS
        or time.monotonic() - began >= PART_SECONDS
    )


def _parts(task: ReadTask) -> list[PartFacts]:
    return whole_parts(task.folder, task.number, task.digest)


def _finished(parts: Sequence[PartFacts]) -> bool:
    return bool(parts) and parts[-1].last


def _gather(facts: ReadFacts, parts: Sequence[PartFacts], folder: Path) -> None:
    for part in parts:
        if not part.balanced():
            raise StageFailedError(
                f"The part {part.name} does not account for its {part.after - part.first} items.",
                hint="Report this with the build's input.",
            )
        facts.parts.append(folder / f"{part.name}.jsonl.zst")
        facts.items += part.after - part.first
        facts.drafts += part.drafts
        facts.lost += part.lost
        facts.noted += part.noted
        facts.losses += part.losses


def _fingerprint(path: Path) -> str:
    """Return what changes when an input changes: sizes and times of the file, or of a tree."""
    if not path.is_dir():
        return _stamp(path) if path.exists() else ""
    stamps = []
    for root, folders, names in os.walk(path):
        folders.sort()
        stamps += [
            f"{path_text(f'{root}/{name}')} {_stamp(Path(root) / name)}" for name in sorted(names)
        ]
    return digest_of(stamps)


def _stamp(path: Path) -> str:
    status = path.lstat()
    return f"{status.st_size} {status.st_mtime_ns}"


class _Mourner:
    """Decides what becomes of a shard whose process died.

    The shard is read again; a page at which the process dies twice, or once for its CPU time, is
    lost. A process that dies between pages is given a few more chances.
    """

    def __init__(self) -> None:
        self._deaths: Counter[tuple[int, int]] = Counter()

    def died(self, task: ReadTask, code: int) -> ReadTask:
        mark = task.mark.read_bytes() if task.mark.exists() else b""
        item = int.from_bytes(mark, "big") if mark else -1
        self._deaths[task.number, item] += 1
        times = self._deaths[task.number, item]
        if code == ENDED_BY:
            reason = f"over {task.cpu_seconds:g} s of CPU time"
        elif code < 0 and item >= 0:
            if times < 2:
                return task
            reason = f"the process reading it died of signal {-code}"
        elif times < NEAR_DEATHS:
            return task
        else:
            raise StageFailedError(
                f"A process died {times} times (exit code {code}) while reading {task.shard.path}.",
                hint="Free memory or give fewer --workers, then run the same command again.",
            )
        if item in dict(task.skip):
            raise StageFailedError(
                f"A process died while reading item {item} of {task.shard.path}.",
                hint="Leave this file out, and report it.",
            )
        return replace(task, skip=(*task.skip, (item, reason)))
