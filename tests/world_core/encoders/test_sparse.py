from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from world_core.encoders.sparse import SparseVector
from world_core.errors import EncoderError


@given(
    st.dictionaries(
        st.integers(0, 2**31 - 1),
        st.floats(0.0, 1e6, allow_nan=False, width=32),
    )
)
def test_tokens_ascend_and_zeros_are_left_out(weights: dict[int, float]) -> None:
    vector = SparseVector.of(weights, "mine")

    expected = {token: weight for token, weight in weights.items() if weight > 0.0}
    assert dict(zip(vector.tokens.tolist(), vector.weights.tolist(), strict=True)) == expected
    assert vector.tokens.tolist() == sorted(expected)
    assert vector.tokens.dtype == np.int32
    assert vector.weights.dtype == np.float32


@pytest.mark.parametrize("weights", [{3: -0.5}, {3: math.nan}, {3: math.inf}, {-3: 1.0}])
def test_a_weight_or_token_that_cannot_be_is_refused(weights: dict[int, float]) -> None:
    with pytest.raises(EncoderError, match=r"mine gave token -?3 the weight"):
        SparseVector.of({1: 0.5, **weights}, "mine")


def test_a_weight_below_single_precision_is_none() -> None:
    assert SparseVector.of({1: 1e-60, 2: 1.0}, "mine").tokens.tolist() == [2]
