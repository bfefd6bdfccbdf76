from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from corpus_builder import snapshot as snapshots
from corpus_builder.indexing import dense_rows, row_texts, write_vectors
from corpus_builder.opening import opening
from corpus_builder.recipe import DenseRecipe, PassagesRecipe
from corpus_builder.snapshot import read_pages
from corpus_builder.tables import write_tables
from corpus_builder.vector_cache import VectorCache
from tests.corpus_builder.samples import Sample, drafts, sample
from world_core.encoders.loading import load
from world_core.indexes.dense import DenseIndex
from world_core.passages import PassageFile
from world_core.types import Span, Vectors


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    root = tmp_path_factory.mktemp("indexing")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshots, "BLOCK_PAGES", 4)
        one = sample(root, drafts(10, versions=2), passages=PassagesRecipe(target=100, limit=150))
    write_tables(
        root,
        one.folder,
        one.blocks,
        languages=one.languages,
        recipe={},
        encoder_id="tiny",
        groups=np.full(one.snapshot.versions, -1, np.int32),
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


def test_rows_of_versions_stand_at_their_first_passages(
    made: Sample, passages: PassageFile
) -> None:
    dense = DenseRecipe("tiny", rows="version", titles=False)
    rows = [row for block in dense_rows(made.pages, passages, dense) for row in block]
    versions = [passages.version(n) for n in range(passages.count)]

    assert [row.passage for row in rows] == [versions.index(v) for v in range(20)]
    texts = [record.text for page in read_pages(made.pages) for record in page.versions]
    assert [row.text for row in rows] == [text[: opening(text, 500)] for text in texts]


def test_a_row_of_a_version_is_its_first_tokens_and_the_others_their_passages() -> None:
    text = " ".join(f"w{number}" for number in range(1000))
    spans = [Span(0, 10), Span(11, 20)]

    assert row_texts(text, spans, "version") == [text[: text.index(" w500")]]
    assert row_texts(text, spans, "all") == [text[0:10], text[11:20]]
    assert row_texts(text, spans, "lead") == [text[0:10]]
    assert row_texts("", [], "version") == row_texts("", [], "all") == []


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
