"""Small snapshots and worlds made by the real parts, for tests of what comes after them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from corpus_builder.build import Options, build
from corpus_builder.capture import Draft
from corpus_builder.parts import PartWriter
from corpus_builder.passage_blocks import Blocks, write_blocks
from corpus_builder.recipe import (
    DenseRecipe,
    LexicalRecipe,
    PassagesRecipe,
    Recipe,
    SourceRecipe,
)
from corpus_builder.report import Report
from corpus_builder.snapshot import Snapshot, blocks_of, make_snapshot
from world_core import urls

SENTENCE = "The lighthouse keeper of pier {n} counts {n} ships on a calm morning. "


def drafts(count: int, *, versions: int = 1, length: int = 3) -> list[Draft]:
    """Return drafts of pages with equal numbers of versions and some sentences."""
    made = []
    for n in range(count):
        for version in range(versions):
            url = f"https://site{n % 3}.example/page/{n}"
            text = (SENTENCE.format(n=n) * length) + f"Edition {version} of page {n}."
            made.append(
                Draft(
                    urls.canonical(url),
                    url,
                    1000 + version,
                    "sample",
                    n,
                    title=f"Pier {n}",
                    text=text,
                    language=("en", "de")[n % 2],
                )
            )
    return made


@dataclass(frozen=True)
class Sample:
    """A snapshot with its passages."""

    snapshot: Snapshot
    folder: Path
    blocks: Blocks

    @property
    def pages(self) -> list[Path]:
        return blocks_of(self.folder)

    @property
    def languages(self) -> list[str]:
        return sorted(self.snapshot.languages)


def snapshot_of(root: Path, items: Sequence[Draft]) -> tuple[Snapshot, Path]:
    """Make a snapshot of the drafts below the folder."""
    writer = PartWriter(root, 0, 0, "d")
    for item in items:
        writer.add(item)
    writer.commit(last=True)
    folder = root / "snapshot"
    folder.mkdir()
    part = root / f"{writer.facts.name}.jsonl.zst"
    return make_snapshot([part], folder, exact_duplicates="auto"), folder


def sample(
    root: Path,
    items: Sequence[Draft],
    *,
    unit: str = "version",
    passages: PassagesRecipe | None = None,
    workers: int = 1,
) -> Sample:
    """Make a snapshot and its passages below the folder."""
    root.mkdir(exist_ok=True)
    snapshot, folder = snapshot_of(root, items)
    blocks = write_blocks(
        list(zip(blocks_of(folder), snapshot.block_versions, strict=True)),
        root / "passages",
        input_digest="d",
        languages=sorted(snapshot.languages),
        passages=passages or PassagesRecipe(),
        unit=unit,
        workers=workers,
        tell=lambda count: None,
    )
    return Sample(snapshot, folder, blocks)


def write_dump(path: Path, count: int = 6) -> Path:
    """Write a dump of some pages, one of them broken."""
    rows = [
        {
            "url": f"https://dump.example/{n}",
            "title": f"Harbour {n}",
            "text": SENTENCE.format(n=n) * 2,
            "published": "2020-01-0" + str(n % 9 + 1),
        }
        for n in range(count)
    ]
    lines = [json.dumps(row) for row in rows]
    path.write_text("\n".join([*lines, "{broken"]) + "\n")
    return path


def small_recipe(dump: Path, *, name: str = "small", engine: str = "tantivy") -> Recipe:
    """Return a recipe for a world of a dump and some atlas pages, quick to build."""
    return Recipe(
        name=name,
        sources=(
            SourceRecipe("jsonl", str(dump), dump.name),
            SourceRecipe("atlas", arguments={"preset": "atlas-toy", "size": 12}),
        ),
        lexical=LexicalRecipe(engine=engine),
        dense=DenseRecipe("tiny"),
        clock=1_780_000_000,
    )


def options(root: Path, *, workers: int = 1) -> Options:
    """Return options that keep a build below the folder."""
    return Options(root / "worlds", workers, root / "cache")


def build_small(root: Path, *, workers: int = 1, name: str = "small") -> Report:
    """Build and publish the small world below ``<root>/worlds``."""
    root.mkdir(exist_ok=True)
    dump = write_dump(root / "pages.jsonl")
    return build(small_recipe(dump, name=name), options(root, workers=workers))
