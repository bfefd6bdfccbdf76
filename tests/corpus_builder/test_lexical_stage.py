"""The lexical stage: units with their anchors, written by an engine that can score them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from corpus_builder import snapshot as snapshots
from corpus_builder.errors import BadRecipeError
from corpus_builder.lexical_stage import (
    check_lexical,
    constants,
    lexical_files_depend_on,
    unit_terms,
    write_lexical,
)
from corpus_builder.passage_blocks import read_terms
from corpus_builder.recipe import LexicalRecipe, PassagesRecipe
from corpus_builder.snapshot import read_pages
from tests.corpus_builder.samples import Sample, drafts, sample
from world_core.analysis import Analyzer
from world_core.indexes.tantivy import TantivyIndex
from world_core.types import Link


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    root = tmp_path_factory.mktemp("lexical-stage")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshots, "BLOCK_PAGES", 4)
        return sample(root, drafts(10, versions=2))


def test_the_lexical_index_holds_every_unit(made: Sample, tmp_path: Path) -> None:
    told: list[int] = []
    analyzer = Analyzer(made.languages)
    count = write_lexical(
        tmp_path / "lexical",
        LexicalRecipe("tantivy"),
        analyzer.fields,
        read_terms(made.blocks.term_files),
        told.append,
    )
    assert count == sum(told) == 20
    index = TantivyIndex.open(tmp_path / "lexical")
    for number, page in enumerate(read_pages(made.pages)):
        found = index.search(analyzer.query(page.versions[0].title), 1)
        assert found.units[0] // 2 == number
    index.close()


def test_an_unknown_engine_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRecipeError, match="'solr'"):
        write_lexical(tmp_path / "l", LexicalRecipe("solr"), ["body"], [], lambda count: None)


@pytest.mark.parametrize(
    ("lexical", "complaint"),
    [
        (LexicalRecipe("tantivy", k1=0.9), r"k1 = 0.9 .* 1.2 only"),
        (LexicalRecipe("tantivy", b=0.4), r"b = 0.4 .* 0.75 only"),
        (LexicalRecipe("tantivy", scoring="bm25f"), "'bm25f'"),
        (LexicalRecipe("solr"), "'solr'"),
    ],
)
def test_what_an_engine_cannot_score_is_refused_before_a_build(
    lexical: LexicalRecipe, complaint: str
) -> None:
    with pytest.raises(BadRecipeError, match=complaint):
        check_lexical(lexical)


def test_an_engine_takes_its_own_constants() -> None:
    check_lexical(LexicalRecipe("tantivy"))
    check_lexical(LexicalRecipe("tantivy", k1=1.2, b=0.75))
    assert constants(LexicalRecipe("tantivy")) == (1.2, 0.75)
    assert constants(LexicalRecipe("lucene")) == (0.9, 0.4)
    assert constants(LexicalRecipe("lucene", b=0.7)) == (0.9, 0.7)


def test_the_engine_and_the_rules_of_anchors_decide_the_files() -> None:
    recipes = [
        LexicalRecipe("lucene"),
        LexicalRecipe("tantivy"),
        LexicalRecipe("lucene", field_weights={"anchor": 0.0}),
    ]
    depends = [lexical_files_depend_on(lexical) for lexical in recipes]
    assert len({tuple(part) for part in depends}) == 3
    same = LexicalRecipe("lucene", field_weights={"anchor": 2.0}, k1=3.0)
    assert lexical_files_depend_on(same) == depends[0]


@pytest.mark.parametrize("unit", ["version", "passage"])
def test_units_carry_the_anchors_of_their_version(tmp_path: Path, unit: str) -> None:
    pages = drafts(4, versions=2, length=9)
    named = [
        replace(page, links=(Link(pages[0].url, "the oldest pier"),)) if page.offset == 3 else page
        for page in pages
    ]
    made = sample(tmp_path, named, unit=unit, passages=PassagesRecipe(target=100, limit=150))
    lexical = LexicalRecipe("tantivy", unit=unit)
    analyzer = Analyzer(made.languages)
    units = list(unit_terms(made.blocks, lexical, made.pages, tmp_path / "links", analyzer))
    plain = list(read_terms(made.blocks.term_files))
    assert [{**each, "anchor": []} for each in plain] == [{**each, "anchor": []} for each in units]
    called = [each["title"][-1] for each in units if each["anchor"]]
    count = sum(each["title"][-1] == "0" for each in units)
    assert called == ["0"] * count
    assert (count > 2) == (unit == "passage")
    off = LexicalRecipe("tantivy", unit=unit, field_weights={"anchor": 0.0})
    assert list(unit_terms(made.blocks, off, made.pages, tmp_path / "links", analyzer)) == plain
