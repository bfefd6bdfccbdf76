"""Page store, columns and world id, in one pass over the snapshot and one over the passages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from corpus_builder.passage_blocks import Blocks
from corpus_builder.site_links import PageNumbers, choose_sitelinks
from corpus_builder.snapshot import blocks_of, read_dead_links, read_pages
from world_core import urls
from world_core.analysis import Analyzer
from world_core.content import ContentDigest
from world_core.page_writer import PageWriter
from world_core.passages import PassageFile, PassageWriter
from world_core.sitelinks import write_sitelinks
from world_core.types import PageRecord
from world_core.views import UNKNOWN, Columns


@dataclass(slots=True)
class _Lists:
    """The values of the columns while pages go by."""

    page: list[int] = field(default_factory=list)
    valid_from: list[int] = field(default_factory=list)
    valid_to: list[int] = field(default_factory=list)
    published: list[int] = field(default_factory=list)
    language: list[int] = field(default_factory=list)
    host: list[str] = field(default_factory=list)

    def add(self, number: int, page: PageRecord, languages: Mapping[str, int]) -> None:
        host = urls.host_of(page.key)
        for version in page.versions:
            self.page.append(number)
            self.valid_from.append(version.valid_from)
            self.valid_to.append(version.valid_to)
            self.published.append(UNKNOWN if version.published is None else version.published)
            self.language.append(languages[version.language])
            self.host.append(host)

    def columns(self, passage_version: Sequence[int], groups: NDArray[np.int32]) -> Columns:
        hosts = sorted(set(self.host))
        places = {host: place for place, host in enumerate(hosts)}
        return Columns(
            version_page=np.array(self.page, np.int32),
            valid_from=np.array(self.valid_from, np.int64),
            valid_to=np.array(self.valid_to, np.int64),
            published=np.array(self.published, np.int64),
            language=np.array(self.language, np.int16),
            host=np.array([places[host] for host in self.host], np.int32),
            group=groups,
            passage_version=np.array(passage_version, np.int32),
            hosts=tuple(hosts),
        )


def write_tables(
    folder: Path,
    snapshot: Path,
    blocks: Blocks,
    *,
    languages: Sequence[str],
    recipe: Mapping[str, object],
    encoder_id: str,
    groups: NDArray[np.int32],
) -> str:
    """Write ``pages.sqlite``, ``passages.bin``, columns and sitelinks; return the world id.

    Args:
        folder: where they go.
        snapshot: the folder of the snapshot.
        blocks: the finished passages.
        languages: all languages of the world, sorted.
        recipe: the content-determining part of the recipe.
        encoder_id: "" for a world without vectors.
        groups: duplicate group of each version, -1 for none.

    Raises:
        WorldError: a file cannot be written, or the pages contradict each other.
    """
    digest = ContentDigest()
    analyzer = Analyzer(languages)
    digest.header(recipe=recipe, encoder_id=encoder_id, analyzer_id=analyzer.id)
    lists = _Lists()
    known = PageNumbers()
    numbers = {language: number for number, language in enumerate(languages)}
    with PageWriter(folder / "pages.sqlite") as writer:
        for number, page in enumerate(read_pages(blocks_of(snapshot))):
            writer.add(page)
            digest.page(page)
            lists.add(number, page, numbers)
            known.add(page)
        for link in read_dead_links(snapshot):
            writer.add_dead(link)
            digest.dead(link)
    passages = _join(folder / "passages.bin", blocks.passage_files, analyzer)
    try:
        versions = [passages.version(number) for number in range(passages.count)]
        for number, version in enumerate(versions):
            digest.passage(version, passages.span(number))
    finally:
        passages.close()
    lists.columns(versions, groups).write(folder)
    write_sitelinks(folder, choose_sitelinks(read_pages(blocks_of(snapshot)), known))
    return digest.hexdigest()


def _join(path: Path, files: Iterable[Path], analyzer: Analyzer) -> PassageFile:
    with PassageWriter(path, analyzer) as writer:
        for file in files:
            block = PassageFile.open(file)
            writer.append(block)
            block.close()
    return PassageFile.open(path)
