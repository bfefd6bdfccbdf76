"""The sentence of each page that says most about a query."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from world_core.analysis import Analyzer
from world_core.errors import BadInputError
from world_core.evidence import NOTHING, Evidence, find_evidence, show_evidence
from world_core.passages import PassageFile, PassageWriter, cut, term_root
from world_core.types import Span

ANALYZER = Analyzer(["en"])
FILLER = "Nothing of note was said about the weather on that long and rather quiet day."


@contextmanager
def passages_of(pages: Sequence[Sequence[str]]) -> Iterator[tuple[PassageFile, list[range]]]:
    """Write pages, each of some passages, and give the range of each page's passages."""
    ranges = []
    with TemporaryDirectory() as folder:
        path = Path(folder) / "p.bin"
        count = 0
        with PassageWriter(path, ANALYZER) as writer:
            for number, page in enumerate(pages):
                for text in page:
                    writer.add(number, text, Span(0, len(text)))
                ranges.append(range(count, count + len(page)))
                count += len(page)
        file = PassageFile.open(path)
        yield file, ranges
        file.close()


def roots(weights: Mapping[str, float]) -> dict[int, float]:
    return {term_root(term): weight for term, weight in weights.items()}


def places(pages: Sequence[Sequence[str]], weights: Mapping[str, float]) -> list[tuple[int, int]]:
    with passages_of(pages) as (file, ranges):
        found = find_evidence(file, ranges, roots(weights))
        return [(evidence.passage, evidence.sentence) for evidence in found]


def test_the_sentence_with_the_most_weight_is_taken_from_the_whole_page() -> None:
    page = [f"{FILLER} One ferry.", f"{FILLER} {FILLER} A ferry at a quay.", "Ferry. Quay."]
    assert places([page], {"ferry": 1.0, "quay": 1.0}) == [(1, 2)]
    assert places([page], {"ferry": 1.0, "quay": 0.0}) == [(0, 1)]
    assert places([page, [FILLER], [], ["Quay."]], {"quay": 1.0}) == [
        *((1, 2), (-1, 0), (-1, 0), (4, 0)),
    ]


def test_a_term_counts_once_a_sentence() -> None:
    page = ["Ferry, ferry, ferry and ferry.", "A ferry at the quay."]
    assert places([page], {"ferry": 1.0, "quay": 0.5}) == [(1, 0)]


def test_what_a_page_says_everywhere_counts_less() -> None:
    page = ["The ferry and the harbour."] + ["A ferry."] * 6 + ["The quay."]
    assert places([page], {"ferry": 1.0, "quay": 0.9}) == [(7, 0)]
    # In another page the same term may be the rare one.
    assert places([page, ["Quay. Quay. Quay. Ferry."]], {"ferry": 1.0, "quay": 0.9})[1] == (8, 3)


def test_of_equal_sentences_the_first_is_taken() -> None:
    assert places([["Nothing.", "One ferry. Two ferries.", "A ferry."]], {"ferry": 1.0}) == [(1, 0)]


def test_inflected_words_count_as_the_word() -> None:
    assert places([[FILLER, "Many lighthouses."]], {"lighthouse": 1.0}) == [(1, 0)]


def test_a_query_without_weight_finds_nothing() -> None:
    for weights in ({}, {"ferry": 0.0}, {"ferry": -1.0}, {"zebra": 1.0}):
        with passages_of([["A ferry."], ["A quay."]]) as (file, ranges):
            assert find_evidence(file, ranges, roots(weights)) == [NOTHING, NOTHING]
            assert find_evidence(file, [], roots(weights)) == []


def test_a_passage_that_is_not_there_is_refused() -> None:
    with passages_of([["A ferry."]]) as (file, _), pytest.raises(BadInputError, match="passage 5"):
        find_evidence(file, [range(5, 6)], roots({"ferry": 1.0}))


sentences = st.lists(
    st.sampled_from(["ferry", "harbour", "quay", "pier", "filler"]), min_size=1, max_size=5
).map(lambda words: " ".join(words) + ".")
pages = st.lists(
    st.lists(st.lists(sentences, max_size=4).map(" ".join), max_size=3), min_size=1, max_size=4
)


@given(pages, st.permutations([1.0, 2.0, 4.0]), st.randoms())
def test_it_is_what_plain_counting_gives(
    made: list[list[str]], weights: list[float], source: Random
) -> None:
    query = dict(zip(("ferry", "harbour", "quay"), weights, strict=True))
    with passages_of(made) as (file, ranges):
        order = list(range(len(ranges)))
        source.shuffle(order)
        found = find_evidence(file, [ranges[place] for place in order], roots(query))
        for place, evidence in zip(order, found, strict=True):
            assert (evidence.passage, evidence.sentence) == _counted(file, ranges[place], query)
            if evidence.passage >= 0:
                assert list(evidence.begins) == file.sentences(evidence.passage)


def _counted(file: PassageFile, some: range, query: Mapping[str, float]) -> tuple[int, int]:
    lines = {}
    for number in some:
        edges = [*file.sentences(number), len(file.text(number))]
        for at in range(len(edges) - 1):
            piece = file.text(number)[edges[at] : edges[at + 1]]
            lines[number, at] = {token.term for token in ANALYZER.tokens(piece)}
    worth = {
        term: weight * math.sqrt(len(lines) / max(1, sum(term in held for held in lines.values())))
        for term, weight in query.items()
    }
    scores = {
        place: round(sum(worth[term] for term in query if term in held), 9)
        for place, held in lines.items()
    }
    best = max(scores.values(), default=0)
    return next((place for place in scores if best and scores[place] == best), (-1, 0))


def test_the_snippet_shows_the_sentence() -> None:
    with passages_of([[f"{FILLER} {FILLER} The **ferry** comes. {FILLER}"]]) as (file, ranges):
        evidence = find_evidence(file, ranges, roots({"ferry": 1.0}))[0]
        assert show_evidence(file, evidence) == f"The ferry comes. {FILLER}"
        assert show_evidence(file, Evidence(0, begins=(0,))).startswith("Nothing of note")
        assert show_evidence(file, NOTHING) == ""


def rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.shared
@pytest.mark.parametrize("language", ["en", "de", "es", "zh"])
def test_answers_are_in_the_snippet_far_more_often_than_in_the_opening(
    shared_dir: Path, language: str
) -> None:
    folder = shared_dir / f"data/ir/xquad/{language}"
    documents = {row["id"]: str(row["text"]) for row in rows(folder / "docs.jsonl")}
    queries = {row["id"]: row for row in rows(folder / "queries.jsonl")}
    judged = [line.split("\t") for line in (folder / "qrels.tsv").read_text("utf-8").splitlines()]
    pairs = [(queries[query], document) for query, document, *_ in judged[1::5]]
    texts = [documents[document] for _, document in pairs]
    cuts = [[text[span.start : span.end] for span in cut(text)] for text in texts]
    shown, opened, lengths = 0, 0, []
    with passages_of(cuts) as (file, ranges):
        for (query, _), text, some in zip(pairs, texts, ranges, strict=True):
            terms = {token.term: 1.0 for token in ANALYZER.tokens(str(query["text"]))}
            line = show_evidence(file, find_evidence(file, [some], roots(terms))[0])
            answers = query["answers"]
            assert isinstance(answers, list)
            shown += any(answer in line for answer in answers)
            opened += any(answer in " ".join(text.split())[: len(line)] for answer in answers)
            lengths.append(len(line) if language == "zh" else len(line.split()))
    assert shown >= 1.5 * opened > 0
    assert (65 if language == "zh" else 20) <= statistics.median(lengths)
    assert statistics.median(lengths) <= (110 if language == "zh" else 30)
