from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from corpus_builder import passage_blocks
from corpus_builder import snapshot as snapshots
from corpus_builder.errors import StageFailedError
from corpus_builder.passage_blocks import BlockTask, read_terms, write_block
from corpus_builder.recipe import PassagesRecipe
from corpus_builder.snapshot import read_pages
from corpus_builder.workers import second_chance
from tests.corpus_builder.samples import Sample, drafts, sample, snapshot_of
from world_core.analysis import Analyzer
from world_core.passages import PassageFile, cut

SHORT = PassagesRecipe(target=100, limit=150)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    root = tmp_path_factory.mktemp("blocks")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshots, "BLOCK_PAGES", 4)
        return sample(root, drafts(10, versions=2), passages=SHORT, workers=2)


def test_passages_are_those_of_cut_in_order(made: Sample) -> None:
    wanted = []
    number = 0
    for page in read_pages(made.pages):
        for version in page.versions:
            wanted += [(number, span) for span in cut(version.text, target=100, limit=150)]
            number += 1
    found = []
    for path in made.blocks.passage_files:
        file = PassageFile.open(path)
        found += [(file.version(n), file.span(n)) for n in range(file.count)]
        file.close()
    assert found == wanted
    assert made.blocks.passages == len(wanted)
    assert len(made.blocks.passage_files) == 3


def test_terms_are_those_of_the_analyser(made: Sample) -> None:
    analyzer = Analyzer(made.languages)
    wanted = [
        analyzer.document(version.title, version.text, version.language)
        for page in read_pages(made.pages)
        for version in page.versions
    ]
    assert list(read_terms(made.blocks.term_files)) == wanted


def block(tmp_path: Path, unit: str) -> BlockTask:
    made, folder = snapshot_of(tmp_path, drafts(3))
    (pages,) = snapshots.blocks_of(folder)
    out = tmp_path / "out"
    out.mkdir()
    return BlockTask(0, pages, 5, out, "d", tuple(sorted(made.languages)), SHORT, unit)


def test_units_may_be_passages_with_their_title(tmp_path: Path) -> None:
    task = block(tmp_path, "passage")
    told: list[int] = []
    count = write_block(task, told.append)
    terms = list(read_terms([task.term_file]))
    assert len(terms) == count > 3
    assert all(unit["title"][0] == "pier" for unit in terms)
    assert sum(told) == 3


def test_version_numbers_begin_where_the_block_does(tmp_path: Path) -> None:
    task = block(tmp_path, "version")
    write_block(task, lambda count: None)
    file = PassageFile.open(task.passage_file)
    assert sorted({file.version(n) for n in range(file.count)}) == [5, 6, 7]
    file.close()


def test_a_finished_block_is_kept_and_another_digest_is_not(tmp_path: Path) -> None:
    task = block(tmp_path, "version")
    assert passage_blocks._outcome(task) is None
    count = write_block(task, lambda count: None)
    assert passage_blocks._outcome(task) == count
    assert passage_blocks._outcome(replace(task, digest="other")) is None


def test_a_block_without_text_has_units_but_no_passages(tmp_path: Path) -> None:
    empty = [replace(item, text="") for item in drafts(2)]
    made = sample(tmp_path / "s", empty)
    assert made.blocks.passages == 0
    assert len(list(read_terms(made.blocks.term_files))) == 2


def test_no_pages_make_no_blocks(tmp_path: Path) -> None:
    made = sample(tmp_path / "s", [])
    assert made.blocks.passage_files == ()
    assert made.blocks.passages == 0


def test_a_second_death_at_a_block_stops_the_stage(tmp_path: Path) -> None:
    task = block(tmp_path, "version")
    died = second_chance("passages")
    assert died(task, -9) == task
    with pytest.raises(StageFailedError, match="block 0"):
        died(task, -9)
