from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus_builder.recipe import (
    DenseRecipe,
    ExpansionRecipe,
    ExtractRecipe,
    LexicalRecipe,
    NearRecipe,
    PassagesRecipe,
    Recipe,
    RerankerRecipe,
    SnapshotRecipe,
    SourceRecipe,
    SparseRecipe,
)
from corpus_builder.recipe_dump import dump
from corpus_builder.recipe_file import parse, shipped, shipped_text
from world_core.content import canonical_json

T = TypeVar("T")
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20)
KEYS = st.text("abcdefghijklmnopqrstuvwxyz_-0123456789 .\"'é", min_size=1, max_size=8)
RESERVED = {"kind", "path"}
NUMBERS = st.floats(0, 100, allow_nan=False)


def tables(values: st.SearchStrategy[T]) -> st.SearchStrategy[dict[str, T]]:
    return st.dictionaries(KEYS.filter(lambda key: key not in RESERVED), values, max_size=3)


SOURCES = st.builds(
    lambda kind, arguments: SourceRecipe(kind, "", "", arguments),
    TEXT.filter(bool),
    tables(TEXT | st.integers(-(2**60), 2**60) | st.booleans() | NUMBERS),
)
DENSE = st.builds(
    DenseRecipe,
    encoder=TEXT.filter(bool),
    arguments=tables(TEXT | st.integers(-(2**60), 2**60)),
    rows=st.sampled_from(["all", "lead", "version"]),
    titles=st.booleans(),
    tier=st.sampled_from(["auto", "flat", "ivf", "hnsw", "ivfpq", "torch"]),
    pages=st.integers(0, 10**6),
)
SPARSE = st.builds(
    SparseRecipe,
    encoder=TEXT.filter(bool),
    arguments=tables(TEXT | st.integers(-(2**60), 2**60)),
    bits=st.integers(2, 8),
    top=st.integers(0, 1000),
    weight=st.floats(0, 1),
)
RERANKERS = st.builds(
    RerankerRecipe,
    kind=TEXT.filter(bool),
    arguments=tables(TEXT | st.integers(-(2**60), 2**60)),
    top=st.integers(1, 200),
)
RECIPES = st.builds(
    Recipe,
    name=st.from_regex(r"[a-z0-9][a-z0-9._-]{0,20}", fullmatch=True),
    sources=st.lists(SOURCES, min_size=1, max_size=3).map(tuple),
    extract=st.builds(ExtractRecipe, st.floats(0.05, 3600), st.integers(0, 1000)),
    snapshot=st.builds(SnapshotRecipe, st.sampled_from(["auto", "alias", "keep"])),
    near=st.builds(NearRecipe, st.just(0.0) | st.floats(0.3, 0.9)),
    passages=st.builds(PassagesRecipe, st.integers(50, 1000), st.integers(1000, 100_000)),
    lexical=st.builds(
        LexicalRecipe,
        engine=st.sampled_from(["lucene", "tantivy"]),
        unit=st.sampled_from(["version", "passage"]),
        k1=st.none() | NUMBERS,
        b=st.none() | st.floats(0, 1),
        field_weights=tables(NUMBERS),
        scoring=st.sampled_from(["bm25", "bm25f"]),
        long_query=st.integers(0, 1000),
        expansion=st.none()
        | st.builds(
            ExpansionRecipe, st.integers(1, 1000), st.integers(1, 1000), st.floats(0.01, 1)
        ),
    ),
    dense=st.none() | DENSE,
    reranker=st.none() | RERANKERS,
    fusion_weight=st.floats(0, 1),
    clock=st.none() | st.integers(0, 2**33),
    canaries=st.lists(TEXT, max_size=3).map(tuple),
)


@given(RECIPES, st.none() | SPARSE)
def test_any_recipe_comes_back(recipe: Recipe, sparse: SparseRecipe | None) -> None:
    if recipe.dense is not None:
        recipe = replace(recipe, sparse=sparse)
    text = dump(recipe)
    again = parse(text, base=Path(), origin="x.toml")
    assert again == recipe
    assert canonical_json(again.content_part()) == canonical_json(recipe.content_part())
    assert dump(again) == text


@given(TEXT)
def test_any_text_is_written_as_toml(text: str) -> None:
    recipe = Recipe("x", (SourceRecipe("atlas"),), canaries=(text,))
    assert tomllib.loads(dump(recipe))["canaries"] == [text]


@pytest.mark.parametrize("name", shipped())
def test_shipped_recipes_come_back(name: str) -> None:
    recipe = parse(shipped_text(name), base=Path(), origin=f"{name}.toml")
    assert parse(dump(recipe), base=Path(), origin=f"{name}.toml") == recipe


def test_absolute_paths_become_names() -> None:
    recipe = Recipe("x", (SourceRecipe("warc", "/home/someone/a.warc", "/home/someone/a.warc"),))
    assert "someone" not in dump(recipe)
    assert 'path = "a.warc"' in dump(recipe)
    recipe = Recipe("x", (SourceRecipe("warc", "/home/someone/a.warc"),))
    assert "someone" not in dump(recipe)


def test_relative_paths_stay() -> None:
    recipe = Recipe("x", (SourceRecipe("warc", "/base/in/a.warc", "in/a.warc"),))
    assert 'path = "in/a.warc"' in dump(recipe)


def test_an_include_list_is_named_with_its_digest() -> None:
    dense = DenseRecipe("tiny", include="/somewhere/list.txt", include_digest="ab")
    text = dump(Recipe("x", (SourceRecipe("atlas"),), dense=dense))
    assert 'include = "list.txt"' in text
    assert 'include_digest = "ab"' in text
    assert "somewhere" not in text
