"""What the scores of a query are worth in a world."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.world_core.worlds import PLACES, THINGS, make_world
from world_core import scaling
from world_core.analysis import Token
from world_core.engine import Engine
from world_core.fusion import DENSE_FLOOR, PLAIN, SPREADS, lexical_trust
from world_core.generation import Generation
from world_core.scaling import UNKNOWN_PAIR, Scaling, _shares
from world_core.steps import Steps
from world_core.term_worth import worth
from world_core.types import Mode, SearchCall
from world_core.views import at_clock

RECIPE = '[lexical]\nengine = "tantivy"\n[dense]\nencoder = "tiny"\n'
KNOWN = ("ferry", "lighthouse", "built")
UNKNOWN = ("zebra", "cuantas", "intercepciones")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_world(tmp_path_factory.mktemp("scaling"), RECIPE)


@pytest.fixture(scope="module")
def engine(folder: Path) -> Iterator[Engine]:
    opened = Engine(Generation.open(folder))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def of_world(engine: Engine) -> Scaling:
    return Scaling(engine.generation)


def test_a_query_of_known_terms_is_known_whole(of_world: Scaling) -> None:
    assert of_world.known("The ferry of Norrvik was built") == 1.0
    assert of_world.known("") == of_world.known("?!") == 1.0


def test_a_query_of_unknown_terms_is_not_known(of_world: Scaling) -> None:
    assert of_world.known("¿Cuántas intercepciones?") == 0.0


def test_the_share_goes_by_the_worth_of_each_term_once(engine: Engine, of_world: Scaling) -> None:
    index = engine.generation.lexical
    (ferry,) = index.holders("body", ["ferry"])
    unknown = worth(0, index.count)

    expected = worth(ferry, index.count) / (worth(ferry, index.count) + 2 * unknown)

    assert 0 < ferry < index.count
    assert of_world.known("Ferry zebra ferry cuántas zebra") == pytest.approx(expected)


def test_an_unknown_pair_counts_for_less_than_an_unknown_word(
    engine: Engine, of_world: Scaling
) -> None:
    index = engine.generation.lexical
    (ferry,) = index.holders("body", ["ferry"])
    value, unknown = worth(ferry, index.count), worth(0, index.count)

    word = of_world.known("ferry 灯台")
    run = of_world.known("ferry 灯台守")

    assert word == pytest.approx(value / (value + unknown))
    assert run == pytest.approx(value / (value + 2 * UNKNOWN_PAIR * unknown))


@given(st.sets(st.sampled_from(KNOWN), min_size=1), st.sets(st.sampled_from(UNKNOWN)))
def test_more_unknown_terms_never_raise_the_share(
    of_world: Scaling, known: set[str], unknown: set[str]
) -> None:
    words = [*sorted(known), *sorted(unknown)]
    shares = [of_world.known(" ".join(words[:end])) for end in range(len(known), len(words) + 1)]

    assert shares[0] == 1.0
    assert shares == sorted(shares, reverse=True)


def test_shares_by_overlap() -> None:
    tokens = [Token("ab", 0, 2), Token("bc", 1, 3), Token("d", 3, 4), Token("ef", 4, 6)]

    assert _shares(tokens) == {"ab": UNKNOWN_PAIR, "bc": UNKNOWN_PAIR, "d": 1.0, "ef": 1.0}
    assert _shares([]) == {}


def test_zero_lies_under_the_mean_of_cosines_all_over_the_index(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scaling, "SAMPLE", 50)
    generation = engine.generation
    assert generation.dense is not None
    assert generation.encoder is not None
    vector = generation.encoder.encode_queries(["ferry"])[0]
    rows = generation.dense.rows
    assert rows.size > 100
    picked = rows[[n * rows.size // 50 for n in range(50)]]
    of_world = Scaling(generation)

    cosines = generation.dense.score(vector, picked)

    scale = of_world.of("ferry", vector)
    expected = max(DENSE_FLOOR, cosines.mean() - SPREADS * cosines.std())
    assert scale.zero == round(float(expected), 4)
    assert scale.trust == 1.0
    assert of_world.of("zebra ferry", vector).trust == lexical_trust(of_world.known("zebra ferry"))


def test_few_vectors_say_nothing(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    generation = engine.generation
    assert generation.encoder is not None
    vector = generation.encoder.encode_queries(["ferry"])[0]
    monkeypatch.setattr(scaling, "SAMPLE", scaling.LEAST - 1)

    assert Scaling(generation).of("ferry", vector).zero == DENSE_FLOOR


def test_a_world_without_vectors_has_a_scale(tmp_path: Path) -> None:
    generation = Generation.open(make_world(tmp_path, '[lexical]\nengine = "tantivy"\n', count=20))

    scale = Scaling(generation).of("ferry zebra", np.zeros(8, dtype=np.float32))

    assert scale.zero == DENSE_FLOOR
    assert 0.0 < scale.trust < 1.0
    generation.close()


def test_the_scale_is_that_of_the_world_whatever_the_view_shows(engine: Engine) -> None:
    generation = engine.generation
    assert generation.encoder is not None
    call = SearchCall(f"{THINGS[0]} of {PLACES[0]} zebra", count=100)
    vector = generation.encoder.encode_queries([call.query])[0]
    query = generation.analyzer.query(call.query)
    early = at_clock(generation.columns, 1_580_000_000)
    assert 0 < early.count < generation.plain_view.count

    scales = [
        engine._ranker.rank(call, view, query, vector, Steps(None, None)).scale
        for view in (early, generation.plain_view)
    ]

    assert scales[0] == scales[1] != PLAIN


@pytest.mark.parametrize("mode", [Mode.LEXICAL, Mode.DENSE])
def test_a_search_of_one_index_is_not_scaled(engine: Engine, mode: Mode) -> None:
    hits = engine.search(SearchCall("ferry zebra", count=5, mode=mode)).hits

    assert hits
    parts = [hit.parts.lexical if mode is Mode.LEXICAL else hit.parts.dense for hit in hits]
    assert [hit.score for hit in hits] == parts


def test_a_query_in_an_unknown_language_is_answered_by_the_vectors(engine: Engine) -> None:
    query = "cuántas intercepciones zebra ferry quién recibió"
    hybrid = engine.search(SearchCall(query, count=10)).hits
    dense = engine.search(SearchCall(query, count=10, mode=Mode.DENSE)).hits

    assert hybrid[0].meta.version == dense[0].meta.version
