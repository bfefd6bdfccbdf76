from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from corpus_builder import publish
from corpus_builder.canaries import COUNT, ask_canaries
from corpus_builder.errors import PublishError
from world_core.engine import Engine
from world_core.generation import Generation
from world_core.types import SearchCall


@pytest.fixture(scope="module")
def generation(small_root: Path) -> Iterator[Generation]:
    opened = Generation.open(publish.resolve(small_root / "worlds" / "small"))
    yield opened
    opened.close()


def test_canaries_are_drawn_from_titles_and_answer(generation: Generation) -> None:
    canaries = ask_canaries(generation, ())
    assert len(canaries) == COUNT
    assert canaries == ask_canaries(generation, ())
    assert canaries == generation.manifest.canaries
    engine = Engine(generation)
    for canary in canaries:
        answer = engine.search(SearchCall(canary.query))
        assert tuple(hit.meta.page_id for hit in answer.hits) == canary.page_ids


def test_a_recipe_may_name_them(generation: Generation) -> None:
    (canary,) = ask_canaries(generation, ["harbour 3"])
    assert canary.query == "harbour 3"
    assert canary.page_ids


def test_a_named_canary_that_finds_nothing_is_refused(generation: Generation) -> None:
    lexical_only = replace(generation, dense=None, encoder=None)
    with pytest.raises(PublishError, match="'zzzzqqq'"):
        ask_canaries(lexical_only, ["zzzzqqq"])
