from __future__ import annotations

import pytest

from world_core.encoders.sparse_loading import KINDS, load_sparse
from world_core.encoders.tiny_sparse import TinySparse
from world_core.errors import BadInputError, EncoderError


def test_a_kind_is_made_from_its_arguments() -> None:
    encoder = load_sparse("tiny", {"vocabulary": 99})

    assert encoder.id == TinySparse(99).id
    assert sorted(KINDS) == ["flag", "tiny"]


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(BadInputError, match="'splade'") as caught:
        load_sparse("splade", {})

    assert "flag" in caught.value.hint


def test_another_encoder_than_the_worlds_is_refused() -> None:
    assert load_sparse("tiny", {}, expected_id=TinySparse().id).vocabulary == 30_000
    with pytest.raises(EncoderError, match="was built with another"):
        load_sparse("tiny", {}, expected_id="another")
