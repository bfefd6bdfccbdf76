"""What only Lucene does: its formula, its order, its answers after a merge of many segments."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.world_core.indexes import lexical_cases as cases
from world_core.errors import BadInputError, DamagedFileError, IndexFailedError
from world_core.indexes import jvm
from world_core.indexes.lucene import LuceneIndex, LuceneWriter
from world_core.types import LexicalQuery

pytestmark = pytest.mark.java

COUNT = 700


def four_significant_bits(value: int) -> int:
    """Encode: numbers below 8 as they are, larger ones as 3 bits after the leading one."""
    if value < 8:
        return value
    shift = value.bit_length() - 4
    return (value >> shift) & 7 | (shift + 1) << 3


def decoded(code: int) -> int:
    """Return the smallest number with this code."""
    return code if code < 8 else (code & 7 | 8) << ((code >> 3) - 1)


def stored_length(length: int) -> int:
    """Return the length that is left of a field's length in one byte.

    The largest int takes code 231, so 24 codes are free: the lengths below 24 are kept exactly.
    """
    free = 255 - four_significant_bits(2**31 - 1)
    return length if length < free else free + decoded(four_significant_bits(length - free))


def bm25(units: list[dict[str, list[str]]], query: LexicalQuery, k1: float, b: float) -> np.ndarray:
    """Return BM25 in float64 with rounded lengths, as the formula stands, (units,)."""
    scores = np.zeros(len(units))
    for part in query.fields:
        lengths = [len(unit.get(part.name, ())) for unit in units]
        holders = sum(length > 0 for length in lengths)
        for term in part.terms:
            frequencies = [Counter(unit.get(part.name, ()))[term] for unit in units]
            having = sum(frequency > 0 for frequency in frequencies)
            if not having:
                continue
            idf = math.log(1 + (holders - having + 0.5) / (having + 0.5))
            average = sum(lengths) / holders
            for unit, (frequency, length) in enumerate(zip(frequencies, lengths, strict=True)):
                if not frequency:
                    continue
                norm = k1 * (1 - b + b * stored_length(length) / average)
                scores[unit] += part.weight * idf * frequency / (frequency + norm)
    return scores


@pytest.fixture(scope="module")
def units() -> list[dict[str, list[str]]]:
    return cases.random_units(21, COUNT)


@pytest.fixture(scope="module")
def folder(units: list[dict[str, list[str]]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    cases.need_java()
    return cases.ENGINES["lucene"].build(tmp_path_factory.mktemp("lucene") / "index", units)


@pytest.fixture
def index(folder: Path) -> Iterator[LuceneIndex]:
    opened = LuceneIndex.open(folder)
    yield opened
    opened.close()


def test_lengths_in_one_byte() -> None:
    kept = [length for length in range(200) if stored_length(length) == length]
    assert kept[:41] == list(range(41))
    assert kept[41:45] == [42, 44, 46, 48]
    assert stored_length(1000) == 984
    assert all(stored_length(n) <= n for n in range(5000))


@pytest.mark.parametrize(("k1", "b"), [(0.9, 0.4), (1.2, 0.75), (0.0, 0.0), (2.0, 1.0)])
def test_scores_are_bm25_with_rounded_lengths(
    folder: Path, units: list[dict[str, list[str]]], k1: float, b: float
) -> None:
    index = LuceneIndex.open(folder, k1, b)
    source = random.Random(3)
    for _ in range(6):
        query = cases.random_query(source)
        scores = index.score(query, np.arange(COUNT))
        np.testing.assert_allclose(scores, bm25(units, query, k1, b), rtol=3e-6)
    index.close()


def test_exact_lengths_would_give_other_scores(
    index: LuceneIndex, units: list[dict[str, list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    query = cases.query(body=["w1", "w3"])
    scores = index.score(query, np.arange(COUNT))
    monkeypatch.setattr(f"{__name__}.stored_length", lambda length: length)
    exact = bm25(units, query, 0.9, 0.4)
    assert not np.allclose(scores, exact, rtol=1e-4)


@pytest.mark.parametrize(("k1", "b"), [(-1.0, 0.4), (0.9, 1.1), (math.nan, 0.4), (math.inf, 0.4)])
def test_parameters_out_of_range_are_refused(folder: Path, k1: float, b: float) -> None:
    with pytest.raises(BadInputError, match="k1"):
        LuceneIndex.open(folder, k1, b)


def test_scores_are_float32_sums_of_the_clauses(index: LuceneIndex) -> None:
    everything = np.arange(COUNT)
    query = cases.query(title=(2.3, ["w0", "w5", "w9"]), body=(1.1, ["w0", "w5", "w9"]))
    parts = [
        index.score(cases.query(**{part.name: (part.weight, [term])}), everything)
        for part in query.fields
        for term in part.terms
    ]
    total = np.sum(parts, axis=0).astype(np.float32).astype(np.float64)
    assert index.score(query, everything).tolist() == total.tolist()
    assert index.search(query, COUNT).scores.tolist() == sorted(total[total > 0], reverse=True)


def test_many_segments_merge_into_unit_order(
    tmp_path: Path, units: list[dict[str, list[str]]]
) -> None:
    source = random.Random(12)
    with LuceneWriter(tmp_path / "index", cases.FIELDS) as writer:
        for unit in units:
            writer.add(unit)
            # Segments of uneven size, which the merge policy takes out of order.
            if source.random() < 0.04:
                writer._writer.flush()
        assert len(list((tmp_path / "index").glob("*.si"))) > 10
    assert len(list((tmp_path / "index").glob("*.si"))) == 1
    index = LuceneIndex.open(tmp_path / "index")
    for term in ("w0", "w60"):
        expected = [number for number, unit in enumerate(units) if term in unit["body"]]
        hits = index.search(cases.query(body=[term]), COUNT).units
        assert sorted(hits.tolist()) == expected
    index.close()


def test_a_segment_out_of_unit_order_is_noticed(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    writer = LuceneWriter(folder, ["body"])

    def write() -> None:
        with writer:
            writer.add({"body": ["w1"]})
            writer._count += 1
            writer.add({"body": ["w2"]})

    with pytest.raises(IndexFailedError, match="2 documents for 3 units"):
        write()
    assert not folder.exists()


def foreign(folder: Path, *, sort: bool, delete: bool) -> None:
    """Write an index by other rules than ours."""
    jvm.boot()
    load = jvm.load
    config = load("org.apache.lucene.index.IndexWriterConfig")()
    config.setMergePolicy(load("org.apache.lucene.index.NoMergePolicy").INSTANCE)
    if sort:
        sort_field = load("org.apache.lucene.search.SortField")
        kind = load("org.apache.lucene.search.SortField$Type").LONG
        config.setIndexSort(load("org.apache.lucene.search.Sort")([sort_field("pid", kind)]))
    directory = load("org.apache.lucene.store.FSDirectory").open(
        load("java.nio.file.Paths").get(str(folder))
    )
    writer = load("org.apache.lucene.index.IndexWriter")(directory, config)
    for number in range(3):
        document = load("org.apache.lucene.document.Document")()
        document.add(load("org.apache.lucene.document.NumericDocValuesField")("pid", number))
        document.add(load("org.apache.lucene.document.LongPoint")("pid", [number]))
        writer.addDocument(document)
    if delete:
        writer.commit()
        point = load("org.apache.lucene.document.LongPoint").newExactQuery("pid", 1)
        writer.deleteDocuments([point])
    writer.close()


@pytest.mark.parametrize(
    ("sort", "delete", "reason"), [(False, False, "not sorted by pid"), (True, True, "deleted")]
)
def test_an_index_by_other_rules_is_refused(
    tmp_path: Path, *, sort: bool, delete: bool, reason: str
) -> None:
    cases.need_java()
    foreign(tmp_path / "index", sort=sort, delete=delete)
    with pytest.raises(DamagedFileError, match=reason):
        LuceneIndex.open(tmp_path / "index")


def test_an_index_closed_beneath_the_caller_refuses(folder: Path) -> None:
    index = LuceneIndex.open(folder)
    index._reader.close()
    with pytest.raises(IndexFailedError, match="closed"):
        index.search(cases.query(body=["w1"]), 5)


def test_a_failure_of_java_names_the_folder(index: LuceneIndex, folder: Path) -> None:
    with (
        pytest.raises(IndexFailedError, match=str(folder)),
        index._lease("searching"),
    ):
        index._searcher.search(None, -1)


def test_the_writer_names_its_engine(tmp_path: Path) -> None:
    cases.need_java()
    assert LuceneWriter(tmp_path / "index", ["body"]).engine == "lucene-9.9.1"
