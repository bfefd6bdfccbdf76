"""What only tantivy does: its formula, how it adds, its ways to filter, one segment."""

from __future__ import annotations

import json
import math
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import tantivy

from tests.world_core.indexes import lexical_cases as cases
from world_core.errors import DamagedFileError, IndexFailedError
from world_core.indexes import tantivy as module
from world_core.indexes.lexical import LexicalIndex
from world_core.indexes.tantivy import TantivyIndex, TantivyWriter
from world_core.types import Bitmap, Candidates, LexicalField, LexicalQuery, Numbers

COUNT = 3000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    units = cases.random_units(31, COUNT)
    return cases.ENGINES["tantivy"].build(tmp_path_factory.mktemp("tantivy") / "index", units)


@pytest.fixture
def index(folder: Path) -> Iterator[TantivyIndex]:
    opened = TantivyIndex.open(folder)
    yield opened
    opened.close()


def chained(index: LexicalIndex, query: LexicalQuery) -> list[float]:
    """Return the float32 sums of the clauses, added in their order, of all units."""
    total = np.zeros(index.count, dtype=np.float32)
    everything = np.arange(index.count)
    for part in query.fields:
        for term in part.terms:
            clause = LexicalQuery((LexicalField(part.name, part.weight, (term,)),))
            total += index.score(clause, everything).astype(np.float32)
    return total.astype(np.float64).tolist()


def test_scores_are_bm25_with_fixed_parameters(tmp_path: Path) -> None:
    # Lengths up to 40 are kept exactly.
    source = random.Random(2)
    units = [
        {"body": source.choices(cases.vocabulary(30), k=source.randint(1, 40))} for _ in "x" * 90
    ]
    index = cases.ENGINES["tantivy"].index(tmp_path / "index", units)
    average = sum(len(unit["body"]) for unit in units) / len(units)
    for term in ("w0", "w29"):
        having = sum(term in unit["body"] for unit in units)
        idf = math.log(1 + (len(units) - having + 0.5) / (having + 0.5))
        expected = []
        for unit in units:
            frequency = Counter(unit["body"])[term]
            norm = module.K1 * (1 - module.B + module.B * len(unit["body"]) / average)
            expected.append(1.5 * idf * (module.K1 + 1) * frequency / (frequency + norm))
        scores = index.score(cases.query(body=(1.5, [term])), np.arange(len(units)))
        np.testing.assert_allclose(scores, expected, rtol=1e-5)
    index.close()


def test_clauses_are_added_in_order_whatever_the_way(index: TantivyIndex) -> None:
    source = random.Random(4)
    for size in (3, 9, 40):
        terms = source.sample(cases.vocabulary(120), size)
        query = cases.query(title=(2.3, terms), body=(1.1, terms))
        sums = chained(index, query)
        everything = np.arange(COUNT)
        assert index.score(query, everything).tolist() == sums
        for k in (10, COUNT):
            hits = index.search(query, k)
            assert hits.scores.tolist() == [sums[unit] for unit in hits.units]
        few = np.asarray(source.sample(range(COUNT), 7))
        assert index.score(query, few).tolist() == [sums[unit] for unit in few]


def test_clauses_are_added_in_order_past_the_end_of_some(tmp_path: Path) -> None:
    # A disjunction that moved its parts when one ends would add the later ones in another order.
    source = random.Random(9)
    terms = [f"t{number}" for number in range(12)]
    units = []
    for unit in range(12_000):
        alive = [t for n, t in enumerate(terms) if n in {3, 5, 8, 10, 11} or unit < 800 * (n + 1)]
        body = [t for t in alive if source.random() < 0.5 for _ in range(source.randint(1, 3))]
        units.append({"body": [*body, *["filler"] * source.randint(1, 40)]})
    index = cases.ENGINES["tantivy"].index(tmp_path / "index", units)
    for order in (terms, terms[::-1], source.sample(terms, 12)):
        query = LexicalQuery(tuple(LexicalField("body", 1 + int(t[1:]) / 7, (t,)) for t in order))
        sums = chained(index, query)
        assert index.score(query, np.arange(len(units))).tolist() == sums
        hits = index.search(query, 500)
        best = sorted(range(len(units)), key=lambda unit: (-sums[unit], unit))[:500]
        assert hits.units.tolist() == best
    index.close()


@pytest.mark.parametrize(
    ("allowed", "k", "way"),
    [(3, 10, "disjunction"), (900, 900, "set"), (1500, 10, "sifting"), (40, COUNT, "disjunction")],
)
def test_each_way_to_filter_is_exact(
    index: TantivyIndex, monkeypatch: pytest.MonkeyPatch, allowed: int, k: int, way: str
) -> None:
    ways: list[str] = []
    sift, restrict = index._sifted, index._queries._restriction

    def sifted(
        searcher: tantivy.Searcher, found: tantivy.Query, k: int, allowed: Bitmap, size: int
    ) -> Candidates:
        ways.append("sifting")
        return sift(searcher, found, k, allowed, size)

    def restriction(units: Numbers) -> tantivy.Query:
        made = restrict(units)
        ways.append("set" if "TermSetQuery" in repr(made) else "disjunction")
        return made

    source = random.Random(allowed)
    bitmap: Bitmap = np.zeros(COUNT, dtype=np.bool_)
    bitmap[source.sample(range(COUNT), allowed)] = True
    query = cases.query(body=["w0", "w2", "w7"], title=["w2"])
    full = index.search(query, COUNT)
    keep = bitmap[full.units]
    monkeypatch.setattr(index, "_sifted", sifted)
    monkeypatch.setattr(index._queries, "_restriction", restriction)
    hits = index.search(query, k, bitmap)
    assert hits.units.tolist() == full.units[keep][:k].tolist()
    assert hits.scores.tolist() == full.scores[keep][:k].tolist()
    assert ways == [way]


def test_sifting_goes_on_until_it_has_enough(index: TantivyIndex) -> None:
    query = cases.query(body=["w0"])
    full = index.search(query, COUNT)
    # Half of the units are allowed, and they are the ones that match worst.
    bitmap: Bitmap = np.ones(COUNT, dtype=np.bool_)
    bitmap[full.units[: COUNT // 2]] = False
    hits = index.search(query, 5, bitmap)
    assert hits.units.tolist() == full.units[COUNT // 2 :][:5].tolist()
    bitmap[full.units] = False
    assert index.search(query, 5, bitmap).units.size == 0


def test_too_little_memory_for_one_segment_is_said(tmp_path: Path) -> None:
    def write() -> None:
        with TantivyWriter(tmp_path / "index", cases.FIELDS, buffer_mb=15) as writer:
            for unit in range(200):
                writer.add({"body": [f"{unit}x{number}" for number in range(2000)]})

    with pytest.raises(IndexFailedError, match=r"segments into .*15 MB"):
        write()
    assert not (tmp_path / "index").exists()


def test_a_buffer_tantivy_refuses_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(IndexFailedError, match="failed to write"),
        TantivyWriter(tmp_path / "index", ["body"], buffer_mb=1),
    ):
        pass


def test_units_lost_by_the_engine_are_noticed(tmp_path: Path) -> None:
    writer = TantivyWriter(tmp_path / "index", ["body"])

    def write(*, skip: bool) -> None:
        with writer:
            writer.add({"body": ["w1"]})
            writer._count += skip
            writer.add({"body": ["w2"]})

    with pytest.raises(IndexFailedError, match="out of unit order"):
        write(skip=True)


def described(folder: Path, **changes: object) -> None:
    """Change the index's own description."""
    meta = folder / "meta.json"
    meta.write_text(json.dumps({**json.loads(meta.read_text()), **changes}))


def test_an_index_without_unit_numbers_is_refused(tmp_path: Path) -> None:
    folder = cases.ENGINES["tantivy"].build(tmp_path / "index", [{"body": ["w1"]}])
    described(folder, schema=[])
    with pytest.raises(DamagedFileError, match="no field pid"):
        TantivyIndex.open(folder)


def test_an_index_of_two_segments_is_refused(tmp_path: Path) -> None:
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("pid", indexed=True, fast=True)
    index = tantivy.Index(builder.build(), path=str(tmp_path))
    for number in range(2):
        writer = index.writer(15_000_000, num_threads=1)
        document = tantivy.Document()
        document.add_unsigned("pid", number)
        writer.add_document(document)
        writer.commit()
        writer.wait_merging_threads()
    with pytest.raises(DamagedFileError, match="2 segments"):
        TantivyIndex.open(tmp_path)


def test_the_writer_names_its_engine(tmp_path: Path, index: TantivyIndex) -> None:
    assert TantivyWriter(tmp_path / "index", ["body"]).engine == index.engine == "tantivy-0.27.0"


def test_files_damaged_under_an_open_index_fail_by_name(folder: Path, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(folder, tmp_path / "damaged"))
    opened = TantivyIndex.open(copied)
    source = random.Random(5)
    for file in sorted(copied.iterdir()):
        data = bytearray(file.read_bytes())
        for place in source.sample(range(len(data)), min(300, len(data))):
            data[place] ^= 0xFF
        with file.open("r+b") as there:
            there.write(data)

    failures = []
    for _ in range(60):
        try:
            opened.search(cases.random_query(source), 10)
        except IndexFailedError as error:
            failures.append(error.sentence)

    assert failures
    assert all(str(copied) in sentence for sentence in failures)
    opened.close()
