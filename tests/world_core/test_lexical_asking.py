"""What the lexical index is asked for a text, by the settings of a world; and warming up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.world_core.worlds import make_world
from world_core.engine import Engine
from world_core.generation import Generation
from world_core.lexical_asking import LexicalAsking
from world_core.types import Bitmap, Candidates, LexicalQuery, Mode, Numbers, Scores, SearchCall
from world_core.views import View
from world_core.warming import warm_up

LONG = "Which of the keepers of the old lighthouse of Skarholm was repaired in 1874"


@pytest.fixture(scope="module", params=["version", "passage"])
def generation(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Generation]:
    folder = make_world(
        tmp_path_factory.mktemp("asking"),
        f'[lexical]\nengine = "tantivy"\nunit = "{request.param}"\nexpansion = "rm3"\n',
    )
    opened = Generation.open(folder)
    yield opened
    opened.close()


def with_settings(generation: Generation, **changes: object) -> Generation:
    """Return the generation under a manifest with other lexical settings."""
    lexical = generation.manifest.lexical.model_copy(update=changes)
    return replace(generation, manifest=generation.manifest.model_copy(update={"lexical": lexical}))


def test_settings_left_out_ask_plainly(generation: Generation) -> None:
    plain = with_settings(generation, long_query=0, expansion=None)
    query = LexicalAsking(plain).query(LONG, plain.plain_view)
    assert query == generation.analyzer.query(LONG)


def test_a_long_query_is_weighed_and_a_short_one_is_not(generation: Generation) -> None:
    asking = LexicalAsking(with_settings(generation, expansion=None))
    body = next(f for f in asking.query(LONG, generation.plain_view).fields if f.name == "body")
    factors = dict(zip(body.terms, body.factors, strict=True))
    assert factors["of"] < factors["lighthouse"] < factors["keepers"] == 1.0
    short = asking.query("lighthouse of Skarholm", generation.plain_view)
    assert short == generation.analyzer.query("lighthouse of Skarholm")


def test_a_query_grows_by_what_the_view_shows(generation: Generation) -> None:
    asking = LexicalAsking(generation)
    hidden = "the keeper of a lighthouse"
    plain = generation.analyzer.query(hidden)
    grown = asking.query(hidden, generation.plain_view)
    assert grown.fields[: len(plain.fields)] == plain.fields
    terms = {term for part in grown.fields for term in part.terms}
    first = generation.lexical.search(plain, 1, generation.plain_view.allowed(unit(generation)))
    version = first.units[0]
    if unit(generation) == "passage":
        version = generation.columns.passage_version[version]
    narrow = np.zeros(generation.columns.version_count, dtype=np.bool_)
    narrow[version] = True
    only = asking.query(hidden, View(generation.columns, narrow))
    allowed = {
        token.term
        for passage in range(
            generation.first_passage[version], generation.first_passage[version + 1]
        )
        for token in generation.analyzer.tokens(generation.passages.text(passage))
    }
    added = {
        term
        for part in only.fields[len(plain.fields) :]
        if part.name == "body"
        for term in part.terms
    }
    assert added <= allowed
    assert added < terms | allowed


def unit(generation: Generation) -> str:
    return generation.manifest.lexical.unit


def test_the_engine_completes_scores_with_the_grown_query(generation: Generation) -> None:
    engine = Engine(generation)
    call = SearchCall("the keeper of a lighthouse", count=20, mode=Mode.LEXICAL)
    hits = engine.search(call).hits
    assert hits
    query = LexicalAsking(generation).query(call.query, generation.plain_view)
    for hit in hits:
        version = hit.meta.version
        units = np.asarray([version])
        if unit(generation) == "passage":
            units = np.arange(*generation.first_passage[version : version + 2])
        assert hit.parts.lexical == generation.lexical.score(query, units).max()
    assert engine.search(call).hits == hits


def test_an_empty_query_stays_empty(generation: Generation) -> None:
    assert LexicalAsking(generation).query("!?", generation.plain_view).is_empty


class Listening:
    """The world's index, remembering what it was asked."""

    def __init__(self, generation: Generation) -> None:
        self.real = generation.lexical
        self.searched: list[LexicalQuery] = []
        self.scored = 0
        self.counted: list[str] = []

    @property
    def engine(self) -> str:
        return self.real.engine

    @property
    def count(self) -> int:
        return self.real.count

    def search(self, query: LexicalQuery, k: int, allowed: Bitmap | None = None) -> Candidates:
        self.searched.append(query)
        return self.real.search(query, k, allowed)

    def score(self, query: LexicalQuery, units: Numbers) -> Scores:
        self.scored += 1
        return self.real.score(query, units)

    def holders(self, field: str, terms: Sequence[str]) -> list[int]:
        self.counted += terms
        return self.real.holders(field, terms)

    def close(self) -> None:
        self.real.close()


def warmed(generation: Generation, queries: int) -> Listening:
    listening = Listening(generation)
    plain = with_settings(replace(generation, lexical=listening), expansion=None)
    assert warm_up(plain, queries) == len(listening.searched) == listening.scored
    return listening


def test_warming_up_asks_titles_spread_over_the_world(generation: Generation) -> None:
    asked = warmed(generation, 20).searched
    assert asked == warmed(generation, 20).searched
    assert 15 <= len(asked) <= 20
    assert len({part.terms for query in asked for part in query.fields}) > 15
    pages = generation.columns.page_count
    assert len(warmed(generation, 10 * pages).searched) == pages
    assert warmed(generation, 0).searched == []
    assert len(warmed(generation, 1).searched) == 1


def test_a_term_is_counted_once_for_weighing_fusing_and_snippets(generation: Generation) -> None:
    listening = Listening(generation)
    plain = with_settings(replace(generation, lexical=listening), expansion=None)
    engine = Engine(plain)
    text = "which keeper of the old lighthouse was born in the harbour town"
    for _ in range(2):
        assert engine.search(SearchCall(text)).hits
    warm_up(plain, 5)
    assert "lighthouse" in listening.counted
    assert len(set(listening.counted)) == len(listening.counted)


def test_warming_up_changes_no_answer(generation: Generation) -> None:
    engine = Engine(generation)
    call = SearchCall("lighthouse", mode=Mode.LEXICAL)
    before = engine.search(call)
    assert warm_up(generation) > 0
    assert engine.search(call) == before


@pytest.mark.java
def test_a_world_in_lucene_with_every_option_answers(tmp_path: Path) -> None:
    folder = make_world(
        tmp_path,
        '[lexical]\nengine = "lucene"\nscoring = "bm25f"\nexpansion = "rm3"\n',
        count=30,
    )
    engine = Engine(Generation.open(folder))
    settings = engine.generation.manifest.lexical
    assert (settings.scoring, settings.long_query, settings.k1) == ("bm25f", 6, 0.9)
    assert warm_up(engine.generation, 10) == 10
    hits = engine.search(SearchCall("lighthouse", mode=Mode.LEXICAL)).hits
    assert hits
    first = engine.generation.pages.read(hits[0].meta.version)
    assert "lighthouse" in f"{first.meta.title} {first.text}".lower()
    engine.close()
