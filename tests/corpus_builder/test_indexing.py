from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from corpus_builder import snapshot as snapshots
from corpus_builder.errors import BadRecipeError
from corpus_builder.indexing import (
    check_lexical,
    constants,
    dense_rows,
    lexical_files_depend_on,
    unit_terms,
    write_lexical,
    write_vectors,
)
from corpus_builder.passage_blocks import read_terms
from corpus_builder.recipe import DenseRecipe, LexicalRecipe, PassagesRecipe
from corpus_builder.snapshot import read_pages
from corpus_builder.tables import write_tables
from corpus_builder.vector_cache import VectorCache
from tests.corpus_builder.samples import Sample, drafts, sample
from world_core.analysis import Analyzer
from world_core.encoders.loading import load
from world_core.indexes.dense import DenseIndex
from world_core.indexes.tantivy import TantivyIndex
from world_core.passages import PassageFile
from world_core.types import Link, Vectors


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    root = tmp_path_factory.mktemp("indexing")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshots, "BLOCK_PAGES", 4)
        one = sample(root, drafts(10, versions=2), passages=PassagesRecipe(target=100, limit=150))
    write_tables(
        root, one.folder, one.blocks, languages=one.languages, recipe={}, encoder_id="tiny"
    )
    return one


@pytest.fixture
def passages(made: Sample) -> PassageFile:
    return PassageFile.open(made.folder.parent / "passages.bin")


class Counting:
    """The tiny encoder, counting what it is given."""

    def __init__(self) -> None:
        self.real = load("tiny", {})
        self.batches: list[int] = []

    @property
    def id(self) -> str:
        return self.real.id

    @property
    def dim(self) -> int:
        return self.real.dim

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        return self.real.encode_queries(texts)

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        self.batches.append(len(texts))
        return self.real.encode_passages(texts)


def numbers(made: Sample, passages: PassageFile, dense: DenseRecipe) -> list[int]:
    return [row.passage for block in dense_rows(made.pages, passages, dense) for row in block]


def test_all_passages_get_rows(made: Sample, passages: PassageFile) -> None:
    found = numbers(made, passages, DenseRecipe("tiny"))
    assert found == list(range(passages.count))


def test_lead_rows_are_the_first_passages(made: Sample, passages: PassageFile) -> None:
    found = numbers(made, passages, DenseRecipe("tiny", rows="lead"))
    versions = [passages.version(n) for n in range(passages.count)]
    assert found == [versions.index(v) for v in range(20)]


def test_only_listed_pages_get_rows(made: Sample, passages: PassageFile) -> None:
    pages = list(read_pages(made.pages))
    keys = frozenset(page.key for page in pages[3:5])
    dense = DenseRecipe("tiny", include_digest="x", include_keys=keys)
    versions = {passages.version(n) for n in numbers(made, passages, dense)}
    assert versions == {6, 7, 8, 9}


def test_listed_pages_come_before_the_first_by_id(made: Sample, passages: PassageFile) -> None:
    pages = list(read_pages(made.pages))
    dense = DenseRecipe("tiny", pages=3, include_digest="x", include_keys=frozenset({pages[9].key}))
    versions = {passages.version(n) for n in numbers(made, passages, dense)}
    assert versions == {0, 1, 2, 3, 18, 19}
    more = DenseRecipe("tiny", pages=1, include_digest="x", include_keys=dense.include_keys)
    assert {passages.version(n) for n in numbers(made, passages, more)} == {18, 19}


def test_titles_stand_before_passages(made: Sample, passages: PassageFile) -> None:
    first = next(iter(dense_rows(made.pages, passages, DenseRecipe("tiny"))))[0]
    assert first.text.partition("\n")[0].startswith("Pier ")
    bare = DenseRecipe("tiny", titles=False)
    assert next(iter(dense_rows(made.pages, passages, bare)))[0].text == passages.text(0)


def test_vectors_come_from_the_cache_the_second_time(
    made: Sample, passages: PassageFile, tmp_path: Path
) -> None:
    encoder = Counting()
    told: list[int] = []
    digests = []
    for run in ("one", "two"):
        (tmp_path / run).mkdir()
        with VectorCache(tmp_path / "cache", encoder.id, encoder.dim) as cache:
            summary = write_vectors(
                tmp_path / run,
                made.pages,
                passages,
                dense=DenseRecipe("tiny"),
                encoder=encoder,
                cache=cache,
                tell=told.append,
            )
        digests.append(summary.vectors_digest)
        assert summary.rows == passages.count
    assert digests[0] == digests[1]
    assert sum(encoder.batches) <= passages.count
    assert sum(told) == 2 * passages.count
    assert (tmp_path / "one" / "codes.npy").read_bytes() == (
        tmp_path / "two" / "codes.npy"
    ).read_bytes()


def test_rows_find_their_own_text(made: Sample, passages: PassageFile, tmp_path: Path) -> None:
    encoder = Counting()
    with VectorCache(tmp_path / "cache", encoder.id, encoder.dim) as cache:
        write_vectors(
            tmp_path,
            made.pages,
            passages,
            dense=DenseRecipe("tiny", titles=False),
            encoder=encoder,
            cache=cache,
            tell=lambda count: None,
        )
    index = DenseIndex.open(tmp_path)
    for number in range(0, passages.count, 7):
        vector = encoder.encode_passages([passages.text(number)])[0]
        scores = index.score(vector, np.array([number]))
        assert scores[0] > 0.99
    index.close()


def test_no_rows_make_an_empty_index(made: Sample, passages: PassageFile, tmp_path: Path) -> None:
    encoder = Counting()
    with VectorCache(tmp_path / "cache", encoder.id, encoder.dim) as cache:
        summary = write_vectors(
            tmp_path,
            made.pages,
            passages,
            dense=DenseRecipe("tiny", include_digest="x"),
            encoder=encoder,
            cache=cache,
            tell=lambda count: None,
        )
    assert (summary.rows, summary.dim) == (0, encoder.dim)


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
