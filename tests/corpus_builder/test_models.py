from __future__ import annotations

from dataclasses import replace

import pytest

from corpus_builder.models import Models
from corpus_builder.recipe import (
    DenseRecipe,
    Recipe,
    RerankerRecipe,
    SourceRecipe,
    SparseRecipe,
)
from world_core.encoders.tiny import TinyEncoder
from world_core.encoders.tiny_sparse import TinySparse
from world_core.errors import BadInputError, MissingPartError
from world_core.rerankers.tiny import TinyReranker

PLAIN = Recipe("x", (SourceRecipe("atlas"),))
WHOLE = replace(
    PLAIN,
    dense=DenseRecipe("tiny", {"dim": 16}),
    sparse=SparseRecipe("tiny", {"vocabulary": 64}),
    reranker=RerankerRecipe("tiny"),
)


def test_a_recipe_without_models_has_none() -> None:
    models = Models.load(PLAIN, 1)

    assert models == Models()
    assert (models.encoder_id, models.sparse_id, models.reranker_id) == ("", "", "")
    assert models.content_part(PLAIN) == PLAIN.content_part()


def test_every_model_that_is_named_is_loaded() -> None:
    models = Models.load(WHOLE, 1)

    assert models.encoder_id == TinyEncoder(16).id
    assert models.sparse_id == TinySparse(64).id
    assert models.reranker_id == TinyReranker().id
    part = models.content_part(WHOLE)
    assert part["sparse"] == {"encoder": TinySparse(64).id, "bits": 8, "top": 0, "weight": 0.2}
    assert part["reranker"] == {"id": TinyReranker().id, "top": 20}


@pytest.mark.parametrize(
    ("recipe", "error", "named"),
    [
        (replace(WHOLE, dense=DenseRecipe("bm25")), BadInputError, "'bm25'"),
        (replace(WHOLE, sparse=SparseRecipe("splade")), BadInputError, "'splade'"),
        (
            replace(WHOLE, reranker=RerankerRecipe("flag", {"model": "/no/such"})),
            MissingPartError,
            "/no/such",
        ),
    ],
)
def test_a_model_that_is_not_there_is_named(
    recipe: Recipe, error: type[Exception], named: str
) -> None:
    with pytest.raises(error, match=named):
        Models.load(recipe, 1)
