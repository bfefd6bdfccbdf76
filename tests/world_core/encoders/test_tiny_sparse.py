from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from world_core.encoders.tiny_sparse import TinySparse
from world_core.errors import BadInputError


@given(st.lists(st.text(max_size=40), max_size=6))
def test_texts_do_not_touch_each_other(texts: list[str]) -> None:
    encoder = TinySparse()

    together = encoder.encode_passages(texts)

    for text, vector in zip(texts, together, strict=True):
        alone = encoder.encode_queries([text])[0]
        assert np.array_equal(vector.tokens, alone.tokens)
        assert vector.weights.tobytes() == alone.weights.tobytes()
        assert (np.diff(vector.tokens) > 0).all()
        assert vector.tokens.size == 0 or 0 <= vector.tokens[0] <= vector.tokens[-1] < 30_000


def test_a_word_weighs_by_how_often_it_occurs() -> None:
    once, often = TinySparse().encode_passages(["Ferry", "ferry FERRY ferry"])

    assert once.tokens.tolist() == often.tokens.tolist()
    assert once.weights.tolist() == [pytest.approx(math.log(2))]
    assert often.weights.tolist() == [pytest.approx(math.log(4))]


def test_a_text_without_words_has_no_tokens() -> None:
    assert TinySparse().encode_queries([" !? "])[0].tokens.size == 0


def test_arguments_and_id() -> None:
    encoder = TinySparse.load({"vocabulary": 64}, 1)

    assert encoder.vocabulary == 64
    assert max(encoder.encode_queries(["a b c d e f g h"])[0].tokens) < 64
    assert encoder.id != TinySparse().id
    assert encoder.files() == {}
    with pytest.raises(BadInputError, match="'dim'"):
        TinySparse.load({"dim": 64}, 1)
    with pytest.raises(BadInputError, match="15"):
        TinySparse.load({"vocabulary": 15}, 1)
