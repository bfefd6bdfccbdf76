"""The engine over a real world: against brute force, in time, in batches, when left."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.world_core.worlds import PLACES, THINGS, make_world
from world_core import ranking
from world_core.engine import Engine
from world_core.errors import BadInputError, CancelledCallError
from world_core.fusion import fuse
from world_core.generation import Generation
from world_core.lexical_asking import LexicalAsking
from world_core.scaling import Scaling
from world_core.types import DeadLink, FetchCall, Mode, Outcome, SearchCall, Timings
from world_core.views import View, at_clock

START_OF_2021 = 1_609_459_200
WORDS = [*PLACES, *THINGS, "keeper", "Ida", "Brandt", "built", "1874", "zzz", "灯台"]


@pytest.fixture(scope="module", params=["version", "passage"])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_world(
        tmp_path_factory.mktemp("engine"),
        "[passages]\ntarget = 300\nlimit = 500\n"
        f'[lexical]\nengine = "tantivy"\nunit = "{request.param}"\n'
        '[dense]\nencoder = "tiny"\n',
    )


@pytest.fixture(scope="module")
def engine(world: Path) -> Iterator[Engine]:
    opened = Engine(Generation.open(world))
    yield opened
    opened.close()


def brute_force(engine: Engine, call: SearchCall, view: View) -> list[tuple[int, float]]:
    """Score every visible version with both indexes and sort; the definition of the ranking."""
    generation = engine.generation
    versions = np.flatnonzero(view.versions)
    query = LexicalAsking(generation).query(call.query, view)
    assert generation.encoder is not None
    assert generation.dense is not None
    vector = generation.encoder.encode_queries([call.query])[0]
    lexical = []
    dense = []
    for version in versions.tolist():
        passages = np.arange(*generation.first_passage[version : version + 2])
        units = np.array([version]) if generation.manifest.lexical.unit == "version" else passages
        lexical.append(max([0.0, *generation.lexical.score(query, units).tolist()]))
        dense.append(max([-1.0, *generation.dense.score(vector, passages).tolist()]))
    pairs = np.array(lexical), np.array(dense)
    if call.mode is Mode.LEXICAL:
        scores = pairs[0]
    elif call.mode is Mode.DENSE:
        scores = pairs[1]
    else:
        scale = Scaling(generation).of(call.query, vector)
        scores = fuse(*pairs, weight=generation.manifest.fusion.weight, scale=scale)
    order = np.lexsort((versions, -scores))
    return [
        (int(versions[place]), float(scores[place]))
        for place in order.tolist()
        if call.mode is not Mode.LEXICAL or scores[place] > 0
    ]


@given(
    words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=5),
    mode=st.sampled_from(list(Mode)),
    clock=st.sampled_from([None, START_OF_2021, 0, 1_580_000_000]),
    offset=st.sampled_from([0, 3, 70]),
)
@settings(max_examples=60, deadline=None)
def test_search_equals_brute_force(
    engine: Engine, words: list[str], mode: Mode, clock: int | None, offset: int
) -> None:
    generation = engine.generation
    view = generation.plain_view if clock is None else at_clock(generation.columns, clock)
    call = SearchCall(" ".join(words), count=12, offset=offset, mode=mode)
    answer = engine.search(call, view)
    expected = brute_force(engine, call, view)[offset : offset + 12]
    assert [(hit.meta.version, hit.score) for hit in answer.hits] == expected
    assert answer.outcome is (Outcome.OK if expected else Outcome.EMPTY)


def test_parts_and_ranks_explain_the_score(engine: Engine) -> None:
    answer = engine.search(SearchCall("lighthouse Norrvik", count=50))
    lexical = np.array([hit.parts.lexical for hit in answer.hits])
    listed = [hit for hit in answer.hits if hit.parts.lexical_rank is not None]
    assert all(hit.parts.lexical > 0 for hit in listed)
    by_rank = sorted(listed, key=lambda hit: hit.parts.lexical_rank or 0)
    assert [hit.parts.lexical for hit in by_rank] == sorted(lexical[lexical > 0], reverse=True)
    assert all(-1.0 <= hit.parts.dense <= 1.0 for hit in answer.hits)


def test_pages_of_results_join_without_gap_or_overlap(engine: Engine) -> None:
    whole = engine.search(SearchCall("ferry of Lune", count=50)).hits
    parts = [
        hit
        for offset in range(0, 50, 5)
        for hit in engine.search(SearchCall("ferry of Lune", count=5, offset=offset)).hits
    ]
    assert [hit.meta.version for hit in parts] == [hit.meta.version for hit in whole]


def test_long_pages_take_no_hits_away(engine: Engine) -> None:
    visible = int(engine.generation.plain_view.versions.sum())
    answer = engine.search(SearchCall("Norrvik", count=100))
    assert len(answer.hits) == visible
    assert engine.generation.passages.count > 2 * ranking.BASE_DEPTH


def test_a_deeper_search_doubles_the_candidates(engine: Engine) -> None:
    assert ranking._depth(10) == 100
    assert ranking._depth(50) == 100
    assert ranking._depth(51) == 200
    assert ranking._depth(101) == 400
    assert engine.search(SearchCall("ferry", offset=10_000)).outcome is Outcome.EMPTY


def test_a_batch_equals_its_searches(engine: Engine) -> None:
    calls = [
        SearchCall("lighthouse", count=3),
        SearchCall("keeper Ida Brandt", mode=Mode.DENSE),
        SearchCall("museum of Stennes", mode=Mode.LEXICAL),
        SearchCall("!?"),
        SearchCall("lighthouse", count=3),
    ]
    assert engine.search_batch(calls) == [engine.search(call) for call in calls]


def test_threads_see_the_same_answers(engine: Engine) -> None:
    calls = [SearchCall(f"{thing} of {place}") for thing in THINGS for place in PLACES]
    alone = [engine.search(call) for call in calls]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(engine.search, calls)) == alone


def test_snippets_come_from_the_best_passage(engine: Engine) -> None:
    answer = engine.search(SearchCall("keeper Ida Brandt", mode=Mode.LEXICAL))
    for hit in answer.hits:
        text = engine.generation.passages.text(hit.passage)
        assert "Ida Brandt" in text
        assert "Ida Brandt" in hit.snippet
        assert engine.generation.passages.version(hit.passage) == hit.meta.version


def test_the_clock_decides_which_version_is_seen(engine: Engine) -> None:
    url = "https://world.example/" + next(
        hit.meta.url.removeprefix("https://world.example/")
        for hit in engine.search(SearchCall("keeper Ida Brandt", mode=Mode.LEXICAL)).hits
    )
    now = engine.fetch(FetchCall(url))
    assert now.version is not None
    assert "Ida Brandt" in now.version.text
    earlier = at_clock(engine.generation.columns, START_OF_2021)
    then = engine.fetch(FetchCall(url), earlier)
    assert then.version is not None
    assert "Ida Brandt" not in then.version.text
    assert engine.search(SearchCall("Ida Brandt", mode=Mode.LEXICAL), earlier).hits == ()
    before = at_clock(engine.generation.columns, 0)
    assert engine.fetch(FetchCall(url), before).outcome is Outcome.NOT_YET_PUBLISHED
    assert engine.search(SearchCall("lighthouse"), before).outcome is Outcome.EMPTY


def test_fetch_knows_the_other_spellings_of_an_address(engine: Engine) -> None:
    stored = engine.search(SearchCall("ferry", count=1)).hits[0].meta.url
    for spelling in (stored, stored.replace("https", "HTTP") + "?utm_source=x#part", f" {stored}"):
        answer = engine.fetch(FetchCall(spelling))
        assert answer.outcome is Outcome.OK
        assert answer.url == stored


def test_an_unknown_address_is_a_miss_and_nonsense_is_refused(engine: Engine) -> None:
    answer = engine.fetch(FetchCall("https://world.example/nowhere"))
    assert (answer.outcome, answer.version) == (Outcome.NOT_IN_WORLD, None)
    with pytest.raises(BadInputError, match="javascript"):
        engine.fetch(FetchCall("javascript:alert(1)"))


def test_a_dead_link_is_unknown_before_it_was_seen(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = DeadLink("https://gone.example/", "https://gone.example/", 404, START_OF_2021)
    monkeypatch.setattr(type(engine.generation.pages), "find", lambda self, key: dead)
    columns = engine.generation.columns
    late = engine.fetch(FetchCall("https://gone.example/"), at_clock(columns, START_OF_2021))
    assert (late.outcome, late.status) == (Outcome.DEAD_LINK, 404)
    early = engine.fetch(FetchCall("https://gone.example/"), at_clock(columns, START_OF_2021 - 1))
    assert (early.outcome, early.status) == (Outcome.NOT_YET_PUBLISHED, None)


def test_dates_filter_by_publication(engine: Engine) -> None:
    answer = engine.search(SearchCall("ferry", count=100, published_from=START_OF_2021))
    assert all((hit.meta.published or 0) >= START_OF_2021 for hit in answer.hits)
    nothing = SearchCall("ferry", published_from=10, published_to=10)
    assert engine.search(nothing).outcome is Outcome.EMPTY


def test_a_call_that_nobody_waits_for_stops(engine: Engine) -> None:
    with pytest.raises(CancelledCallError, match="before encode"):
        engine.search(SearchCall("ferry"), cancelled=lambda: True)
    asked = iter([False, False, False, True, True])
    with pytest.raises(CancelledCallError):
        engine.search(SearchCall("ferry"), cancelled=lambda: next(asked))


def test_timings_name_every_step(engine: Engine) -> None:
    timings = Timings()
    engine.search(SearchCall("ferry"), timings=timings)
    assert set(timings.seconds) == {
        *("encode", "analyse", "lexical", "dense", "complete", "fuse", "pages", "snippets")
    }
    assert all(seconds >= 0 for seconds in timings.seconds.values())


def test_a_query_without_terms_asks_only_the_vectors(engine: Engine) -> None:
    answer = engine.search(SearchCall("?!"))
    assert all(hit.parts.lexical == 0.0 for hit in answer.hits)
    assert engine.search(SearchCall("?!", mode=Mode.LEXICAL)).outcome is Outcome.EMPTY


def test_the_world_answers_its_own_canaries(engine: Engine) -> None:
    canaries = engine.generation.manifest.canaries
    assert canaries
    for canary in canaries:
        hits = engine.search(SearchCall(canary.query, count=len(canary.page_ids))).hits
        assert tuple(hit.meta.page_id for hit in hits) == tuple(canary.page_ids)
