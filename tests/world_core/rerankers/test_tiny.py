from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from world_core.errors import BadInputError
from world_core.rerankers.tiny import TinyReranker

texts = st.text(alphabet="ab cd.", max_size=12)


@given(texts, st.lists(texts, max_size=6))
def test_a_pair_does_not_depend_on_its_neighbours(query: str, passages: list[str]) -> None:
    together = TinyReranker().score(query, passages)

    assert together.dtype == np.int64
    assert together.tolist() == [TinyReranker().score(query, [one])[0] for one in passages]
    assert all(0 <= score <= 1000 for score in together)


def test_it_counts_the_words_of_the_query() -> None:
    scores = TinyReranker().score(
        "Old Ferry ferry timetable", ["the OLD ferry", "ferry", "nothing", ""]
    )

    assert scores.tolist() == [666, 333, 0, 0]
    assert TinyReranker().score("!?", ["a"]).tolist() == [0]


def test_it_has_an_id_and_no_arguments() -> None:
    assert TinyReranker.load({}, 1).id.startswith("tiny-reranker:words-1:")
    assert TinyReranker().files() == {}
    with pytest.raises(BadInputError, match="'model'"):
        TinyReranker.load({"model": "x"}, 1)
