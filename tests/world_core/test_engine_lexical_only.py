"""The engine over a world without vectors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.world_core.worlds import make_world
from world_core.engine import Engine
from world_core.errors import BadInputError
from world_core.generation import Generation
from world_core.types import Mode, Outcome, SearchCall


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    recipe = '[lexical]\nengine = "tantivy"\n'
    opened = Engine(Generation.open(make_world(tmp_path_factory.mktemp("w"), recipe, count=20)))
    yield opened
    opened.close()


def test_hybrid_is_lexical(plain: Engine) -> None:
    hybrid = plain.search(SearchCall("lighthouse"))
    lexical = plain.search(SearchCall("lighthouse", mode=Mode.LEXICAL))
    assert hybrid == lexical
    assert hybrid.outcome is Outcome.OK
    assert all(hit.parts.dense == -1.0 for hit in hybrid.hits)


def test_a_dense_search_is_refused(plain: Engine) -> None:
    with pytest.raises(BadInputError, match="no dense index"):
        plain.search(SearchCall("lighthouse", mode=Mode.DENSE))


def test_no_match_is_empty(plain: Engine) -> None:
    assert plain.search(SearchCall("zzz qqq")).outcome is Outcome.EMPTY
