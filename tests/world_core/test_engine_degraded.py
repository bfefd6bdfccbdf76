"""Searches while the encoder fails, and with vectors that were made elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.world_core.worlds import make_world
from world_core.encoders.tiny import TinyEncoder
from world_core.engine import Engine
from world_core.errors import BadInputError, EncoderError, ForeignWorldError
from world_core.generation import Generation
from world_core.types import Mode, SearchCall, Vectors

HYBRID = SearchCall("the lighthouse of Norrvik")
ALLOWED = replace(HYBRID, allow_lexical=True)
LEXICAL = replace(HYBRID, mode=Mode.LEXICAL)
DENSE = replace(HYBRID, mode=Mode.DENSE, allow_lexical=True)


class Fallible(TinyEncoder):
    fails = False

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        if self.fails:
            raise EncoderError("The encoder failed.")
        return super().encode_queries(texts)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    recipe = '[lexical]\nengine = "tantivy"\n[dense]\nencoder = "tiny"\n'
    return make_world(tmp_path_factory.mktemp("degraded"), recipe, count=30)


@pytest.fixture
def encoder() -> Fallible:
    return Fallible()


@pytest.fixture
def engine(world: Path, encoder: Fallible) -> Iterator[Engine]:
    opened = Engine(Generation.open(world, encoder_of=lambda _manifest: encoder))
    yield opened
    opened.close()


def test_an_encoder_made_elsewhere_is_the_one_that_is_asked(
    engine: Engine, encoder: Fallible, world: Path
) -> None:
    assert engine.generation.encoder is encoder
    own = Engine(Generation.open(world))
    assert own.search(HYBRID) == engine.search(HYBRID)
    own.close()


def test_an_encoder_of_another_model_is_refused(world: Path) -> None:
    with pytest.raises(ForeignWorldError, match="encoder"):
        Generation.open(world, encoder_of=lambda _manifest: TinyEncoder(64))


@pytest.mark.parametrize("call", [HYBRID, replace(HYBRID, mode=Mode.DENSE), DENSE])
def test_a_failed_encoder_fails_the_search(
    engine: Engine, encoder: Fallible, call: SearchCall
) -> None:
    encoder.fails = True
    with pytest.raises(EncoderError, match="The encoder failed"):
        engine.search(call)


def test_a_search_that_allows_it_is_answered_as_a_lexical_one_and_says_so(
    engine: Engine, encoder: Fallible
) -> None:
    wanted = engine.search(LEXICAL)
    encoder.fails = True
    answer = engine.search(ALLOWED)
    assert answer.hits
    assert answer == replace(wanted, degraded=Mode.LEXICAL)
    assert wanted.degraded is None


def test_permission_changes_nothing_while_the_encoder_works(engine: Engine) -> None:
    assert engine.search(ALLOWED) == engine.search(HYBRID)
    assert engine.search(ALLOWED).degraded is None


def test_lexical_searches_need_no_encoder(engine: Engine, encoder: Fallible) -> None:
    wanted = engine.search(LEXICAL)
    encoder.fails = True
    assert engine.search(LEXICAL) == wanted


def test_a_batch_goes_on_only_if_all_of_it_may(engine: Engine, encoder: Fallible) -> None:
    encoder.fails = True
    with pytest.raises(EncoderError):
        engine.search_batch([ALLOWED, HYBRID])
    modes = [answer.degraded for answer in engine.search_batch([ALLOWED, LEXICAL, ALLOWED])]
    assert modes == [Mode.LEXICAL, None, Mode.LEXICAL]


def test_vectors_made_elsewhere_give_the_same_answers(engine: Engine, encoder: Fallible) -> None:
    calls = [HYBRID, LEXICAL, replace(HYBRID, mode=Mode.DENSE)]
    wanted = engine.search_batch(calls)
    row = encoder.encode_queries([HYBRID.query])[0]
    encoder.fails = True
    assert engine.search_batch(calls, vectors=[row, None, row]) == wanted


def test_a_missing_vector_degrades_what_may_and_fails_the_rest(engine: Engine) -> None:
    assert engine.search_batch([ALLOWED], vectors=[None])[0].degraded is Mode.LEXICAL
    for call in (HYBRID, DENSE):
        with pytest.raises(EncoderError):
            engine.search_batch([call], vectors=[None])


def test_a_world_without_vectors_is_not_degraded(tmp_path: Path) -> None:
    recipe = '[lexical]\nengine = "tantivy"\n[dense]\nencoder = "tiny"\nrows = "none"\n'
    engine = Engine(Generation.open(make_world(tmp_path, recipe, count=10)))
    assert engine.search(ALLOWED).degraded is None
    with pytest.raises(BadInputError, match="no dense index"):
        engine.search_batch([DENSE], vectors=[None])
    engine.close()
