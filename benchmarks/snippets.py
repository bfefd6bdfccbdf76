"""What snippets are worth, and what they cost.

usage:
    snippets.py sets SHARED [--only NAME]
    snippets.py world WORLD QUERIES.jsonl [--limit N]

``sets`` takes the sets of ``SHARED/data/ir`` whose questions have answers and shows for each
question the snippet of its own page: once with every document as a page, once with the paragraphs
of an article joined to one page. It prints how often an answer is in the snippet and in the
opening of the page of the same length, the lengths, and CPU milliseconds for ten pages at once.
``world`` asks a published world in the mode BM25 and prints lengths, the share of snippets with
dates and of hits with sitelinks, CPU milliseconds of the step for ten hits, and bytes a page.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from world_core.analysis import Analyzer
from world_core.engine import Engine
from world_core.evidence import Evidence, find_evidence, show_evidence
from world_core.generation import Generation
from world_core.holder_counts import HolderCounts
from world_core.indexes.tantivy import TantivyIndex, TantivyWriter
from world_core.passages import PassageFile, PassageWriter, cut
from world_core.term_worth import TermWorth
from world_core.types import Mode, SearchCall, Timings

SETS = {
    "xquad/en": "en", "xquad/de": "de", "xquad/es": "es", "xquad/zh": "zh", "cmrc2018": "zh",
}  # fmt: skip
AT_ONCE = 10
ARTICLE = len("en-00")
"""Characters of a document's id that name its article."""


@dataclass(frozen=True)
class Question:
    """A question, its answers, and the text of the page that holds one."""

    text: str
    answers: Sequence[str]
    page: str


def main() -> int:
    """Run the chosen command."""
    options = parser().parse_args()
    if options.command == "world":
        report_world(options.world, options.queries, options.limit)
        return 0
    for name, language in SETS.items():
        if options.only and options.only != name:
            continue
        folder = options.shared / "data" / "ir" / name
        for joined in (False, True) if name.startswith("xquad") else (False,):
            report_set(f"{name} {'articles' if joined else ''}", language, folder, joined=joined)
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    top = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = top.add_subparsers(dest="command", required=True)
    sets = commands.add_parser("sets")
    sets.add_argument("shared", type=Path)
    sets.add_argument("--only", choices=sorted(SETS))
    world = commands.add_parser("world")
    world.add_argument("world", type=Path)
    world.add_argument("queries", type=Path)
    world.add_argument("--limit", type=int)
    return top


def report_set(name: str, language: str, folder: Path, *, joined: bool) -> None:
    """Print one line for a set of questions."""
    documents = {row["id"]: row["text"] for row in rows(folder / "docs.jsonl")}
    if joined:
        articles: dict[str, list[str]] = {}
        for number, text in documents.items():
            articles.setdefault(number[:ARTICLE], []).append(text)
        documents = {number: "\n\n".join(articles[number[:ARTICLE]]) for number in documents}
    queries = {row["id"]: row for row in rows(folder / "queries.jsonl")}
    judged = (folder / "qrels.tsv").read_text("utf-8").splitlines()[1:]
    questions = [
        Question(queries[query]["text"], queries[query]["answers"], documents[document])
        for query, document, _ in (line.split("\t") for line in judged)
    ]
    with tempfile.TemporaryDirectory() as place:
        pages = list(dict.fromkeys(documents.values()))
        shelf = Shelf(Path(place), language, pages)
        lines = [shelf.snippet(question) for question in questions]
        cost = shelf.cost(questions)
    shown = sum(held(question, line) for question, line in zip(questions, lines, strict=True))
    opened = sum(
        held(question, one_line(question.page)[: len(line)])
        for question, line in zip(questions, lines, strict=True)
    )
    count = len(questions)
    unit = len if language == "zh" else words
    print(
        f"{name:18} n={count}  answer in snippet {shown / count:.3f}, in opening "
        f"{opened / count:.3f}, ratio {shown / opened:.2f}  "
        f"{'characters' if language == 'zh' else 'words'} {spread([unit(line) for line in lines])}"
        f"  {cost:.2f} ms CPU for {AT_ONCE} pages",
        flush=True,
    )


class Shelf:
    """Pages with their passages and the counts of their terms."""

    def __init__(self, folder: Path, language: str, pages: Sequence[str]) -> None:
        analyzer = Analyzer([language])
        self._ranges: dict[str, range] = {}
        count = 0
        with (
            PassageWriter(folder / "passages.bin", analyzer) as passages,
            TantivyWriter(folder / "lexical", analyzer.fields) as index,
        ):
            for number, page in enumerate(pages):
                spans = cut(page)
                for span in spans:
                    passages.add(number, page, span)
                index.add(analyzer.document("", page, language))
                self._ranges[page] = range(count, count + len(spans))
                count += len(spans)
        self._passages = PassageFile.open(folder / "passages.bin")
        self._worth = TermWorth(analyzer, HolderCounts(TantivyIndex.open(folder / "lexical")))

    def snippet(self, question: Question) -> str:
        """Return the snippet of the question's own page."""
        return self._shown(question.text, [self._ranges[question.page]])[0]

    def cost(self, questions: Sequence[Question]) -> float:
        """Return CPU milliseconds for ten pages; the questions' own and the nine after it."""
        pages = list(self._ranges.values())
        begun = time.process_time()
        for number, question in enumerate(questions):
            some = [pages[(number + step) % len(pages)] for step in range(AT_ONCE)]
            self._shown(question.text, sorted(set(some), key=lambda one: one.start))
        return (time.process_time() - begun) / len(questions) * 1e3

    def _shown(self, query: str, ranges: Sequence[range]) -> list[str]:
        found = find_evidence(self._passages, ranges, self._worth(query))
        return [
            show_evidence(
                self._passages, evidence if evidence.passage >= 0 else self._opening(some)
            )
            for evidence, some in zip(found, ranges, strict=True)
        ]

    def _opening(self, some: range) -> Evidence:
        return Evidence(some.start, begins=tuple(self._passages.sentences(some.start)))


def report_world(world: Path, queries: Path, limit: int | None) -> None:
    """Print what the snippets of a published world look like and cost."""
    pointer = world / "current"
    folder = world / pointer.read_text(encoding="utf-8").strip() if pointer.is_file() else world
    engine = Engine(Generation.open(folder, verify=False))
    texts = [row["text"] for row in rows(queries)][:limit]
    calls = [SearchCall(text, mode=Mode.LEXICAL, sitelinks=True) for text in texts]
    for call in calls:
        engine.search(call)
    timings = Timings()
    hits = [hit for call in calls for hit in engine.search(call, timings=timings).hits]
    pages = engine.generation.columns.page_count
    size = (folder / "passages.bin").stat().st_size
    engine.close()
    tens = len(hits) / AT_ONCE
    print(f"{len(calls)} queries, {len(hits)} hits on {pages} pages")
    print(f"words: {spread([words(hit.snippet) for hit in hits])}")
    print(f"with a date: {sum(hit.meta.published is not None for hit in hits) / len(hits):.3f}")
    print(f"with sitelinks: {sum(bool(hit.sitelinks) for hit in hits) / len(hits):.3f}")
    for step in ("snippets", "sitelinks"):
        print(f"{step}: {timings.seconds[step] / tens * 1e3:.2f} ms for {AT_ONCE} hits (wall)")
    print(f"passages.bin: {size / pages:,.0f} bytes a page")


def rows(path: Path) -> Iterator[dict[str, str]]:
    """Yield the rows of a JSON lines file."""
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def held(question: Question, line: str) -> bool:
    """Say whether one of the answers is in a line."""
    return any(one_line(answer) in line for answer in question.answers)


def one_line(text: str) -> str:
    """Return a text with single spaces."""
    return " ".join(text.split())


def words(line: str) -> int:
    """Return the words of a line, without ellipses."""
    return sum(word != "..." for word in line.split())


def spread(values: Sequence[int]) -> str:
    """Return the 10th, 50th and 90th percentile."""
    tenths = statistics.quantiles(values, n=10)
    return f"{tenths[0]:.0f}/{statistics.median(values):.0f}/{tenths[8]:.0f}"


if __name__ == "__main__":
    sys.exit(main())
