"""Ranking quality of a world on judged queries: BM25, dense and hybrid in one run.

usage:
    ranking.py world WORLD QUERIES.jsonl QRELS.tsv [--id-template T] [--limit N] [--with-vectors]
        [--language L]
    ranking.py sets SHARED OUT [--encoder KIND] [--lexical ENGINE] [--only NAME]
    ranking.py cross SHARED OUT [--encoder KIND] [--lexical ENGINE]
    ranking.py pool SHARED OUT [--encoder KIND] [--lexical ENGINE]

``world`` scores one published world; a query counts only when one of its judged pages is in the
world, and n is stated. ``--with-vectors`` looks only at the pages that have vectors, ``--language``
only at those in a language, as a search for pages in it does. ``sets`` builds a world from every
set under ``SHARED/data/ir`` and scores it. ``cross`` asks the questions of the other languages of
XQuAD on the English paragraphs, of which theirs are translations. ``pool`` builds one world of the
paragraphs in all four languages; only the paragraph in the question's own language counts. nDCG@10
has linear gains and a base-2 logarithm.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from world_core import urls
from world_core.engine import Engine
from world_core.generation import Generation
from world_core.types import Mode, SearchCall
from world_core.views import View

LANGUAGES = ("en", "de", "es", "zh")
SETS = ("cacm", *(f"xquad/{language}" for language in LANGUAGES), "cmrc2018")
DEPTH = 100


@dataclass(frozen=True)
class Judged:
    """Queries by id, and gains by query id and page key."""

    queries: Mapping[str, str]
    gains: Mapping[str, Mapping[str, int]]


def main() -> int:
    """Run the chosen command."""
    options = parser().parse_args()
    if options.command == "world":
        judged = read_judged(options.queries, options.qrels, options.id_template)
        name = options.queries.stem
        report(name, options.world, judged, options.limit, options)
        return 0
    {"sets": score_sets, "cross": score_across, "pool": score_pool}[options.command](options)
    return 0


def score_sets(options: argparse.Namespace) -> None:
    """Build a world from each set and score it."""
    for name in SETS:
        if options.only and options.only != name:
            continue
        folder = options.shared / "data" / "ir" / name
        template = f"https://{name.replace('/', '-')}.example/{{id}}"
        world = build([folder / "docs.jsonl"], name.replace("/", "-"), template, options)
        judged = read_judged(folder / "queries.jsonl", folder / "qrels.tsv", template)
        report(name, world, judged, options.limit)


def score_across(options: argparse.Namespace) -> None:
    """Ask questions of other languages on the English paragraphs."""
    folder = options.shared / "data" / "ir" / "xquad"
    template = "https://xquad-en.example/{id}"
    world = build([folder / "en" / "docs.jsonl"], "xquad-en", template, options)
    for language in LANGUAGES[1:]:
        # Paragraph de-03-02 is the translation of en-03-02.
        judged = read_judged(
            folder / language / "queries.jsonl",
            folder / language / "qrels.tsv",
            template,
            rename=(f"{language}-", "en-"),
        )
        report(f"{language} on en", world, judged, options.limit)


def score_pool(options: argparse.Namespace) -> None:
    """Score the questions of each language in a world of all languages."""
    folder = options.shared / "data" / "ir" / "xquad"
    template = "https://xquad.example/{id}"
    documents = [folder / language / "docs.jsonl" for language in LANGUAGES]
    world = build(documents, "xquad-pool", template, options)
    for language in LANGUAGES:
        judged = read_judged(
            folder / language / "queries.jsonl", folder / language / "qrels.tsv", template
        )
        report(f"{language} in pool", world, judged, options.limit)


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    top = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = top.add_subparsers(dest="command", required=True)
    world = commands.add_parser("world")
    world.add_argument("world", type=Path)
    world.add_argument("queries", type=Path)
    world.add_argument("qrels", type=Path)
    world.add_argument("--id-template", default="{id}")
    world.add_argument("--with-vectors", action="store_true", help="see only pages with vectors")
    world.add_argument("--language", help="see only pages in this language")
    judged = [commands.add_parser(name) for name in ("sets", "cross", "pool")]
    for command in judged:
        command.add_argument("shared", type=Path)
        command.add_argument("out", type=Path)
        command.add_argument("--encoder", default="onnx-minilm")
        command.add_argument("--lexical", default="lucene")
    judged[0].add_argument("--only", choices=SETS)
    for command in (world, *judged):
        command.add_argument("--limit", type=int, help="score only the first N queries")
    return top


def build(documents: Sequence[Path], name: str, template: str, options: argparse.Namespace) -> Path:
    """Build a world from files of documents and return its folder."""
    name = f"{name}-{options.encoder}-{options.lexical}"
    command = [
        str(Path(sys.executable).with_name("corpus-builder")),
        "build",
        *map(str, documents),
        *("--name", name),
        *("--out", str(options.out)),
        *("--url-template", template),
        *("--encoder", options.encoder),
        *("--lexical", options.lexical),
    ]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    world: Path = options.out / name
    return world


def current(world: Path) -> Path:
    """Follow the pointer of a named world."""
    pointer = world / "current"
    return world / pointer.read_text(encoding="utf-8").strip() if pointer.is_file() else world


def read_judged(
    queries: Path, qrels: Path, template: str, *, rename: tuple[str, str] = ("", "")
) -> Judged:
    """Read queries and judgments; document ids become page keys by the template.

    ``rename`` is a beginning of the ids and what stands there instead.
    """
    texts = {row["id"]: row["text"] for row in map(json.loads, lines(queries))}
    gains: dict[str, dict[str, int]] = {}
    for line in list(lines(qrels))[1:]:
        query, document, gain = line.split("\t")
        document = rename[1] + document.removeprefix(rename[0])
        key = urls.canonical(template.format(id=document))
        gains.setdefault(query, {})[key] = int(gain)
    return Judged(texts, gains)


def lines(path: Path) -> Iterator[str]:
    """Yield the file's lines that are not blank."""
    with path.open(encoding="utf-8") as file:
        yield from (line.rstrip("\n") for line in file if line.strip())


def report(
    name: str,
    world: Path,
    judged: Judged,
    limit: int | None,
    seen: argparse.Namespace | None = None,
) -> None:
    """Print one line: n and nDCG@10 by mode."""
    engine = Engine(Generation.open(current(world), verify=False))
    view = engine.generation.plain_view if seen is None else view_of(engine.generation, seen)
    try:
        present = [
            query
            for query, pages in judged.gains.items()
            if query in judged.queries
            and any(gain > 0 and is_seen(engine, view, key) for key, gain in pages.items())
        ][:limit]
        modes = [Mode.LEXICAL]
        if engine.generation.dense is not None:
            modes += [Mode.DENSE, Mode.HYBRID]
        figures = {mode.value: mean_ndcg(engine, view, judged, present, mode) for mode in modes}
    finally:
        engine.close()
    shown = "  ".join(f"{mode} {value:.4f}" for mode, value in figures.items())
    print(f"{name:16} pages={view.count} n={len(present)}  {shown}", flush=True)


def view_of(generation: Generation, options: argparse.Namespace) -> View:
    """Return the view of the options ``with_vectors`` and ``language``."""
    view = vector_view(generation) if options.with_vectors else generation.plain_view
    if options.language is None:
        return view
    return view.in_languages([list(generation.manifest.languages).index(options.language)])


def vector_view(generation: Generation) -> View:
    """Return the view of the versions that have a row in the dense index."""
    if generation.dense is None:
        raise SystemExit("this world has no dense index")
    versions = np.zeros(generation.columns.version_count, dtype=np.bool_)
    versions[generation.columns.passage_version[generation.dense.rows]] = True
    return View(generation.columns, versions & generation.plain_view.versions)


def is_seen(engine: Engine, view: View, key: str) -> bool:
    """Say whether the view shows the page with this key."""
    page = engine.generation.pages.find(key)
    return isinstance(page, int) and view.version_of(page) is not None


def mean_ndcg(
    engine: Engine, view: View, judged: Judged, queries: Sequence[str], mode: Mode
) -> float:
    """Return the mean nDCG@10 over the queries."""
    total = 0.0
    for query in queries:
        call = SearchCall(query=judged.queries[query], count=10, mode=mode)
        keys = [urls.canonical(hit.meta.url) for hit in engine.search(call, view).hits]
        total += ndcg(keys, judged.gains[query], 10)
    return total / len(queries) if queries else math.nan


def ndcg(ranked: Sequence[str], gains: Mapping[str, int], depth: int) -> float:
    """Return the normalised discounted cumulative gain of the first ``depth`` keys."""
    best = sorted(gains.values(), reverse=True)[:depth]
    ideal = sum(gain / math.log2(place + 2) for place, gain in enumerate(best))
    found = sum(
        gains.get(key, 0) / math.log2(place + 2) for place, key in enumerate(ranked[:depth])
    )
    return found / ideal if ideal else 0.0


if __name__ == "__main__":
    sys.exit(main())
