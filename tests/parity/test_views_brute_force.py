"""Searches in random views of a real world against brute force by page meaning.

Brute force filters pages one by one in plain Python, scores every passage of every page that is
left with both indexes, takes the best of each page, fuses, and sorts. It knows no bitmaps, and
makes lists of candidates for hybrid searches by sorting all there is.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.parity.view_worlds import HOSTS, WORDS, make_world
from world_core import urls
from world_core.engine import Engine
from world_core.fusion import fuse
from world_core.generation import Generation
from world_core.indexes import dense
from world_core.ranking import BASE_DEPTH
from world_core.scaling import Scaling
from world_core.types import FetchCall, Mode, Numbers, Outcome, Scores, SearchCall, Vector
from world_core.views import UNKNOWN, View

YEAR = 365 * 86_400
CLOCKS = (1_577_836_800, 1_590_000_000, 1_609_459_200, 1_640_995_200)  # 2020 to 2022
SITES = (*HOSTS, "org", "example", "beispiel", "nowhere.example")


@dataclass
class Wanted:
    """One random view: what it asks for, in words that brute force can follow."""

    clock: int | None = None
    hidden: frozenset[int] = frozenset()
    sites: tuple[str, ...] | None = None
    barred: tuple[str, ...] = ()
    languages: frozenset[int] | None = None
    start: int | None = None
    end: int | None = None

    def view(self, plain: View) -> View:
        """Compile it."""
        view = plain if self.clock is None else plain.world_at(self.clock)
        if self.hidden:
            view = view.without_pages(np.array(sorted(self.hidden, reverse=True)))
        if self.sites is not None:
            view = view.on_sites(self.sites)
        if self.barred:
            view = view.off_sites(self.barred)
        if self.languages is not None:
            view = view.in_languages(self.languages)
        return view.published_between(self.start, self.end)

    def shows(self, generation: Generation, version: int) -> bool:
        """Say whether a version is to be seen, from its columns alone."""
        columns = generation.columns
        clock = generation.manifest.clock if self.clock is None else self.clock
        host = columns.hosts[columns.host[version]]
        published = int(columns.published[version])

        def on(sites: tuple[str, ...]) -> bool:
            return any(host == site or host.endswith("." + site) for site in sites)

        dated = self.start is not None or self.end is not None
        return (
            columns.valid_from[version] <= clock < columns.valid_to[version]
            and int(columns.version_page[version]) not in self.hidden
            and (self.sites is None or on(self.sites))
            and not on(self.barred)
            and (self.languages is None or int(columns.language[version]) in self.languages)
            and not (dated and published == UNKNOWN)
            and (self.start is None or published >= self.start)
            and (self.end is None or published < self.end)
        )


def random_view(source: random.Random, pages: int) -> Wanted:
    """Draw a view; each kind of filter is in about half of them, masks are of 1 to 10,000 pages."""

    wanted = Wanted()

    def mask() -> None:
        size = min(pages, round(10 ** source.uniform(0, 4)))
        wanted.hidden = frozenset(source.sample(range(pages), size))

    def clock() -> None:
        wanted.clock = source.choice(CLOCKS)

    def site() -> None:
        wanted.sites = tuple(source.sample(SITES, source.randint(1, 4)))

    def bar() -> None:
        wanted.barred = tuple(source.sample(SITES, source.randint(1, 2)))

    def language() -> None:
        wanted.languages = frozenset(source.sample(range(5), source.randint(1, 3)))

    def dates() -> None:
        wanted.start = source.choice([None, 1_262_304_000 + source.randint(0, 9) * YEAR])
        wanted.end = source.choice([None, 1_420_070_400 + source.randint(0, 6) * YEAR])

    makers: tuple[Callable[[], None], ...] = (mask, clock, site, bar, language, dates)
    for make in makers:
        if source.random() < 0.5:
            make()
    return wanted


def best_of(
    generation: Generation, call: SearchCall, vector: Vector, versions: list[int]
) -> list[tuple[str, float]]:
    """Return page ids and scores of the best pages among versions, each scored in full."""
    query = generation.analyzer.query(call.query)
    bounds = [(int(a), int(b)) for a, b in (generation.first_passage[[v, v + 1]] for v in versions)]
    passages = np.concatenate([np.arange(start, end) for start, end in bounds])
    owners = np.repeat(versions, [end - start for start, end in bounds])
    assert generation.dense is not None
    near = Scored(generation.dense.score(vector, passages), owners)
    if generation.manifest.lexical.unit == "version":
        units = np.array(versions)
        found = Scored(generation.lexical.score(query, units), units)
    else:
        found = Scored(generation.lexical.score(query, passages), owners)
    if call.mode is Mode.LEXICAL:
        pages = {v: score for v, score in found.best(versions).items() if score > 0}
    elif call.mode is Mode.DENSE:
        pages = near.best(versions)
    else:
        last = call.offset + call.count
        union = sorted(found.listed(last, least=0.0) | near.listed(last, least=-2.0))
        both = (np.array([*one.best(union).values()]) for one in (found, near))
        scale = Scaling(generation).of(call.query, vector)
        fused = fuse(*both, weight=generation.manifest.fusion.weight, scale=scale)
        pages = dict(zip(union, fused.tolist(), strict=True))
    order = sorted(pages, key=lambda version: (-pages[version], version))
    chosen = order[call.offset : call.offset + call.count]
    metas = generation.pages.metas(chosen)
    return [(meta.page_id, pages[meta.version]) for meta in metas]


@dataclass
class Scored:
    """Scores of all visible units of an index, in order of their numbers, and their versions."""

    scores: Scores
    owners: Numbers

    def best(self, versions: list[int]) -> dict[int, float]:
        """Return the best score of each version."""
        found = dict.fromkeys(versions, -np.inf)
        for owner, score in zip(self.owners.tolist(), self.scores.tolist(), strict=True):
            if owner in found:
                found[owner] = max(found[owner], score)
        return found

    def listed(self, last: int, least: float) -> set[int]:
        """Return the versions of the candidates: the best units, more until there are last.

        The engine fuses what is among the candidates of either index; this is that by definition.
        """
        order = [int(n) for n in np.lexsort((np.arange(self.scores.size), -self.scores))]
        order = [n for n in order if self.scores[n] > least]
        depth = BASE_DEPTH
        while depth < 2 * last:
            depth *= 2
        while True:
            versions = {int(self.owners[n]) for n in order[:depth]}
            if len(versions) >= last or len(order) < depth:
                return versions
            depth *= 2


def check_view(engine: Engine, source: random.Random) -> bool:
    """Compare all modes in one random view; say whether it showed anything."""
    generation = engine.generation
    wanted = random_view(source, generation.columns.page_count)
    view = wanted.view(generation.plain_view)
    versions = [v for v in range(generation.columns.version_count) if wanted.shows(generation, v)]
    assert np.flatnonzero(view.versions).tolist() == versions, wanted
    text = " ".join(source.sample(WORDS, source.randint(1, 4)))
    assert generation.encoder is not None
    vector = generation.encoder.encode_queries([text])[0]
    for mode in Mode:
        call = SearchCall(text, count=source.choice([1, 10, 25]), mode=mode)
        answer = engine.search(call, view)
        found = [(hit.meta.page_id, hit.score) for hit in answer.hits]
        expected = best_of(generation, call, vector, versions) if versions else []
        assert found == expected, (mode, wanted)
        assert answer.outcome is (Outcome.OK if expected else Outcome.EMPTY)
        if mode is not Mode.LEXICAL:
            assert len(found) == min(call.count, len(versions)), (mode, wanted)
    for page in source.sample(range(generation.columns.page_count), 3):
        check_fetch(engine, view, page, versions)
    return bool(versions)


def check_fetch(engine: Engine, view: View, page: int, versions: list[int]) -> None:
    """A page is fetched exactly when the view shows one of its versions, and then that one."""
    columns = engine.generation.columns
    first, end = columns.versions_of(np.array([page]))
    meta = engine.generation.pages.metas([int(first[0])])[0]
    shown = [version for version in range(int(first[0]), int(end[0])) if version in versions]
    answer = engine.fetch(FetchCall(urls.canonical(meta.url)), view)
    assert (answer.version is None) == (not shown)
    if answer.version is not None:
        assert answer.version.meta.version == shown[0]


@pytest.fixture(
    scope="module",
    params=[
        ("tantivy", "version", "auto"),
        ("tantivy", "passage", "torch"),
        pytest.param(("lucene", "version", "torch"), marks=[pytest.mark.java, pytest.mark.slow]),
        pytest.param(("lucene", "passage", "auto"), marks=[pytest.mark.java, pytest.mark.slow]),
    ],
    ids="-".join,
)
def engine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    """Open a world of 700 pages."""
    folder: Path = tmp_path_factory.mktemp("views")
    opened = Engine(Generation.open(make_world(folder, 700, *request.param), verify=False))
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def exact_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask the tier under most views, not only under those of very many rows."""
    monkeypatch.setattr(dense, "EXACT_LIMIT", 300)


@pytest.mark.parametrize("seed", range(4))
def test_searches_in_random_views_are_those_of_brute_force(engine: Engine, seed: int) -> None:
    source = random.Random(seed)

    shown = [check_view(engine, source) for _ in range(10)]

    assert any(shown)


@pytest.mark.slow
@pytest.mark.java
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", [("lucene", "version", "flat"), ("tantivy", "passage", "torch")])
def test_three_hundred_views_of_many_pages(kind: tuple[str, str, str], tmp_path: Path) -> None:
    engine = Engine(Generation.open(make_world(tmp_path, 12_000, *kind), verify=False))
    source = random.Random(2)

    shown = [check_view(engine, source) for _ in range(300)]

    assert sum(shown) > 150
    engine.close()
