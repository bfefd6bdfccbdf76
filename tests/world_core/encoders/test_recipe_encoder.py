from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from world_core.encoders.recipe_encoder import RecipeEncoder
from world_core.encoders.weights import Recipe
from world_core.types import Vectors


class Marked(RecipeEncoder):
    """Gives queries one axis and passages the other."""

    def __init__(self) -> None:
        self._dim = 2
        self._recipe = Recipe(
            kind="marked", model="m", files={"w": "ab" * 32}, pooling="none", limit="none"
        )

    def _encode(self, texts: Sequence[str], *, is_query: bool) -> Vectors:
        row = [1.0, 0.0] if is_query else [0.0, 1.0]
        return np.array([row] * len(texts), dtype=np.float32)


def test_it_says_what_its_recipe_says() -> None:
    encoder = Marked()

    assert encoder.id == encoder._recipe.id
    assert encoder.id.startswith("marked:m:abababababababab:")
    assert encoder.dim == 2
    assert encoder.files() == {"w": "ab" * 32}


def test_queries_and_passages_are_told_apart() -> None:
    assert Marked().encode_queries(["a", "b"]).tolist() == [[1.0, 0.0]] * 2
    assert Marked().encode_passages(["a"]).tolist() == [[0.0, 1.0]]


def test_encoding_is_left_to_the_subclass() -> None:
    with pytest.raises(TypeError, match="_encode"):
        RecipeEncoder()  # type: ignore[abstract]
