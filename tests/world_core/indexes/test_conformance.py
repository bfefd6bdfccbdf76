"""Both engines held to their own formula on real text, and to each other.

Each engine keeps the length of a field in one byte, in the same 256 steps; Lucene's average is over
the units that have the field, tantivy's over all, and tantivy's scores have the factor k1 + 1.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.world_core.indexes import lexical_cases as cases
from tests.world_core.indexes.test_lucene import stored_length
from world_core.analysis import FOLDED, Analyzer
from world_core.indexes.lexical import CONSTANTS, LexicalIndex
from world_core.indexes.lucene import LuceneIndex
from world_core.types import LexicalField, LexicalPhrase, LexicalQuery, Occur, Scores

pytestmark = [pytest.mark.java, pytest.mark.shared]

SETS = {"cacm": "en", "xquad/en": "en", "xquad/zh": "zh"}
DOCUMENTS, QUERIES = 900, 25
WEIGHTS = {"title": 0.8, "body": 0.4, "anchor": 0.0, "stem": 1.0}


@dataclass(frozen=True)
class Sample:
    """Units of a real set in both engines, and its queries."""

    units: Sequence[Mapping[str, Sequence[str]]]
    queries: Sequence[LexicalQuery]
    lucene: Path
    tantivy: LexicalIndex

    def column(self, field: str) -> list[Sequence[str]]:
        """Return the terms of a field of every unit."""
        return [unit.get(field, ()) for unit in self.units]


def rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a JSONL file."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.fixture(scope="module", params=sorted(SETS))
def sample(
    request: pytest.FixtureRequest, shared_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> Sample:
    cases.need_java()
    language = SETS[request.param]
    folder = shared_dir / "data" / "ir" / request.param
    analyzer = Analyzer([language], weights=WEIGHTS)
    documents = rows(folder / "docs.jsonl")[:DOCUMENTS]
    units = [
        analyzer.document(row.get("title", ""), row.get("text", ""), language) for row in documents
    ]
    queries = [row["text"] for row in rows(folder / "queries.jsonl")[:QUERIES]]
    place = tmp_path_factory.mktemp("conformance")
    lucene = cases.ENGINES["lucene"].build(place / "lucene", units, analyzer.fields)
    tantivy = cases.ENGINES["tantivy"].index(place / "tantivy", units, analyzer.fields)
    return Sample(units, [analyzer.query(query) for query in queries], lucene, tantivy)


@dataclass(frozen=True)
class Formula:
    """BM25 as one engine has it, in float64."""

    k1: float
    b: float
    factor: float  # of every score
    over_all: bool  # averages and idf over all units, else over those that have the field

    def scores(
        self, sample: Sample, part: LexicalField, rows: Sequence[tuple[str, ...]]
    ) -> NDArray[np.float64]:
        """Return the score of each unit for rows of one or more terms in one field."""
        column = sample.column(part.name)
        lengths = np.asarray([len(terms) for terms in column])
        units = len(column) if self.over_all else int((lengths > 0).sum())
        kept = np.asarray([stored_length(length) for length in lengths.tolist()])
        norm = self.k1 * (1 - self.b + self.b * kept / (lengths.sum() / units))
        holders = Counter(term for terms in column for term in set(terms))
        total = np.zeros(len(column))
        for row in rows:
            idf = sum(
                math.log1p((units - holders[term] + 0.5) / (holders[term] + 0.5)) for term in row
            )
            counts = np.asarray([times(terms, row) for terms in column], dtype=np.float64)
            total += part.weight * self.factor * idf * counts / (counts + norm)
        return total


def times(terms: Sequence[str], row: tuple[str, ...]) -> int:
    """Return how often the terms hold the row."""
    if len(row) == 1:
        return terms.count(row[0])
    return sum(
        tuple(terms[start : start + len(row)]) == row
        for start in range(len(terms) - len(row) + 1)
        if terms[start] == row[0]
    )


def expected(sample: Sample, formula: Formula, query: LexicalQuery) -> Scores:
    """Return the scores that the formula gives, of all units."""
    total = np.zeros(len(sample.units))
    for part in query.fields:
        total += formula.scores(sample, part, [(term,) for term in part.terms])
    for phrase in query.phrases:
        for part in phrase.fields:
            total += formula.scores(sample, part, [part.terms])
    return total


LUCENE = Formula(*CONSTANTS["lucene"], factor=1.0, over_all=False)
TANTIVY = Formula(*CONSTANTS["tantivy"], factor=CONSTANTS["tantivy"][0] + 1, over_all=True)


def opened(sample: Sample, name: str) -> LexicalIndex:
    return LuceneIndex.open(sample.lucene) if name == "lucene" else sample.tantivy


@pytest.mark.parametrize(("name", "formula"), [("lucene", LUCENE), ("tantivy", TANTIVY)])
def test_scores_are_the_formula_with_lengths_in_one_byte(
    sample: Sample, name: str, formula: Formula
) -> None:
    index = opened(sample, name)
    for query in sample.queries:
        scores = index.score(query, np.arange(index.count))
        np.testing.assert_allclose(scores, expected(sample, formula, query), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("name", "formula"), [("lucene", LUCENE), ("tantivy", TANTIVY)])
def test_phrases_score_as_terms_of_their_summed_idf(
    sample: Sample, name: str, formula: Formula
) -> None:
    index = opened(sample, name)
    body = [terms for terms in sample.column("body") if len(terms) > 12][:20]
    for number, terms in enumerate(body):
        row = tuple(terms[5 : 7 + number % 3])
        parts = (LexicalField("body", 0.7, row), LexicalField("title", 1.3, row))
        query = LexicalQuery((), (LexicalPhrase(Occur.SHOULD, parts),))
        scores = index.score(query, np.arange(index.count))
        assert scores.any()
        np.testing.assert_allclose(scores, expected(sample, formula, query), rtol=1e-5, atol=1e-6)


def test_bm25f_scores_the_combined_field(sample: Sample) -> None:
    index = LuceneIndex.open(sample.lucene, 0.9, 0.4, combined=FOLDED)
    weights = {"title": 2.0, "body": 0.5}
    names = [name for name in weights if any(sample.column(name))]
    units = len(sample.units)
    least = min(weights[name] for name in names)
    shares = {name: weights[name] / least for name in names}
    lengths = {name: np.asarray([len(t) for t in sample.column(name)]) for name in names}
    kept = sum(
        share * np.asarray([stored_length(n) for n in lengths[name].tolist()])
        for name, share in shares.items()
    )
    kept = np.asarray([stored_length(round(length)) for length in np.asarray(kept).tolist()])
    docs = max(int((lengths[name] > 0).sum()) for name in names)
    average = sum(share * lengths[name].sum() for name, share in shares.items()) / docs
    norm = 0.9 * (0.6 + 0.4 * kept / average)
    for query in sample.queries[:8]:
        terms = query.fields[0].terms
        asked = LexicalQuery(tuple(LexicalField(n, weights[n], terms) for n in weights))
        total = np.zeros(units)
        for term in terms:
            counts = {name: [t.count(term) for t in sample.column(name)] for name in names}
            holders = max(np.count_nonzero(counts[name]) for name in names)
            combined = sum(
                share * np.asarray(counts[name], dtype=np.float64) for name, share in shares.items()
            )
            idf = math.log1p((docs - holders + 0.5) / (holders + 0.5))
            total += least * idf * combined / (combined + norm)
        scores = index.score(asked, np.arange(units))
        np.testing.assert_allclose(scores, total, rtol=1e-5, atol=1e-6)
        best = index.search(asked, 20)
        assert best.scores.tolist() == scores[best.units].tolist()
    index.close()


def test_engines_rank_alike_with_equal_constants(sample: Sample) -> None:
    lucene = LuceneIndex.open(sample.lucene, *CONSTANTS["tantivy"])
    overlaps, firsts = [], []
    for query in sample.queries:
        one, other = lucene.search(query, 10).units, sample.tantivy.search(query, 10).units
        overlaps.append(len(np.intersect1d(one, other)) / max(one.size, 1))
        firsts.append(one[:1].tolist() == other[:1].tolist())
    # They differ where units lack a field, which moves its average and its idf.
    assert np.mean(overlaps) >= 0.95
    assert np.mean(firsts) >= 0.9
    lucene.close()
