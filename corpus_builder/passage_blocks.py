"""Passages and lexical terms, one block of pages a task, in as many processes as there are.

A block's output is a passage file with the numbers of the world, the terms of its units, and a
marker; the blocks are joined afterwards, so the number of processes leaves no trace.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from corpus_builder.recipe import PassagesRecipe
from corpus_builder.rows import read_rows, write_rows
from corpus_builder.snapshot import read_pages
from corpus_builder.workers import Tell, run_tasks, second_chance
from corpus_builder.workspace import digest_of, kill_point, sync, write_durably
from world_core.analysis import Analyzer
from world_core.passages import PassageWriter, cut
from world_core.types import VersionRecord

FORMAT = 2
"""Raised when the output of equal pages and settings changes."""


@dataclass(frozen=True, slots=True)
class BlockTask:
    """A block of pages whose first version has the number ``first_version``."""

    number: int
    pages: Path
    first_version: int
    folder: Path
    digest: str
    languages: tuple[str, ...]
    passages: PassagesRecipe
    unit: str

    @property
    def passage_file(self) -> Path:
        """Where the block's passages go."""
        return self.folder / f"{self.number:05d}.passages"

    @property
    def term_file(self) -> Path:
        """Where the terms of the block's units go: one row a unit, fields of joined terms."""
        return self.folder / f"{self.number:05d}.terms.zst"

    @property
    def marker(self) -> Path:
        """Written last."""
        return self.folder / f"{self.number:05d}.done.json"


@dataclass(frozen=True, slots=True)
class Blocks:
    """The finished blocks in order; ``passages`` counts those of all blocks together."""

    passage_files: tuple[Path, ...]
    term_files: tuple[Path, ...]
    passages: int
    digest: str


def write_blocks(
    pages: Sequence[tuple[Path, int]],
    folder: Path,
    *,
    input_digest: str,
    languages: Sequence[str],
    passages: PassagesRecipe,
    unit: str,
    workers: int,
    tell: Tell,
) -> Blocks:
    """Write all blocks that are not finished yet.

    Args:
        pages: file and number of versions of each block of pages, in order.
        folder: where the blocks' output goes.
        input_digest: stands for the pages.
        languages: languages of the whole world.
        passages: how versions are cut.
        unit: ``version`` or ``passage``: what a row of terms is.
        workers: number of processes.
        tell: gets the number of versions done.

    Raises:
        StageFailedError: a process died twice at one block.
    """
    folder.mkdir(exist_ok=True)
    analyzer_id = Analyzer(languages).id
    digest = digest_of(
        FORMAT, input_digest, analyzer_id, passages.target, passages.limit, unit, len(pages)
    )
    tasks = []
    version = 0
    for number, (path, versions) in enumerate(pages):
        tasks.append(
            BlockTask(number, path, version, folder, digest, tuple(languages), passages, unit)
        )
        version += versions
    waiting = [task for task in tasks if _outcome(task) is None]
    for _ in run_tasks(
        write_block, waiting, workers=workers, died=second_chance("passages"), tell=tell
    ):
        kill_point("block")
    kept = {path for task in tasks for path in (task.passage_file, task.term_file, task.marker)}
    for path in sorted(set(folder.iterdir()) - kept):
        path.unlink()
    return Blocks(
        tuple(task.passage_file for task in tasks),
        tuple(task.term_file for task in tasks),
        sum(_outcome(task) or 0 for task in tasks),
        digest,
    )


def write_block(task: BlockTask, tell: Tell) -> int:
    """Cut and analyse the versions of a block; return the number of its passages."""
    task.marker.unlink(missing_ok=True)  # no old marker may vouch for a new block
    analyzer = Analyzer(task.languages)
    count = 0
    part = task.passage_file.with_suffix(".part")
    with PassageWriter(part, analyzer) as writer:

        def units() -> Iterator[dict[str, str]]:
            nonlocal count
            for number, version in _versions(task):
                spans = cut(version.text, target=task.passages.target, limit=task.passages.limit)
                for span in spans:
                    writer.add(number, version.text, span)
                count += len(spans)
                texts = [version.text]
                if task.unit == "passage":
                    texts = [version.text[span.start : span.end] for span in spans]
                for text in texts:
                    fields = analyzer.document(version.title, text, version.language)
                    yield {name: " ".join(terms) for name, terms in fields.items()}
                tell(1)

        write_rows(task.term_file, units())
    sync(part)
    part.replace(task.passage_file)
    marker = json.dumps({"digest": task.digest, "passages": count})
    write_durably(task.marker, marker.encode("utf-8"))
    return count


def read_terms(files: Sequence[Path]) -> Iterator[dict[str, list[str]]]:
    """Yield the terms of each unit by field, in the order of the units."""
    for file in files:
        for row in read_rows(file):
            if isinstance(row, dict):
                yield {name: str(terms).split() for name, terms in row.items()}


def _versions(task: BlockTask) -> Iterator[tuple[int, VersionRecord]]:
    number = task.first_version
    for page in read_pages([task.pages]):
        for version in page.versions:
            yield number, version
            number += 1


def _outcome(task: BlockTask) -> int | None:
    """Return the passages of a finished block, None if it is not finished."""
    if not task.marker.exists():
        return None
    saved = json.loads(task.marker.read_text("utf-8"))
    return int(saved["passages"]) if saved["digest"] == task.digest else None
