"""A world of one BGE-M3 model: vectors, weights and a cross encoder, from recipe to answer."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from corpus_builder import publish, recipe_file
from corpus_builder.build import Options, build
from corpus_builder.verifying import check_content
from tests.world_core.tiny_models import WORDS, make_cross, make_m3
from world_core.encoders.flag import FlagEncoder
from world_core.encoders.flag_model import FlagModel
from world_core.encoders.flag_sparse import FlagSparse
from world_core.engine import Engine
from world_core.generation import Generation
from world_core.types import SearchCall

WITH_TORCH = all(importlib.util.find_spec(name) for name in ("torch", "FlagEmbedding"))
pytestmark = [
    pytest.mark.skipif(not WITH_TORCH, reason="torch is not installed"),
    # The libraries behind FlagEmbedding warn about their own future.
    pytest.mark.filterwarnings("ignore"),
]
PAGES = 12
QUERY = "list open files of a"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Return the folder of the world, and the texts that went through the model while building."""
    root = tmp_path_factory.mktemp("m3")
    m3, cross = make_m3(root / "bge-m3"), make_cross(root / "bge-reranker-base")
    words = WORDS[5:]
    rows = [
        {
            "url": f"https://m3.example/{number}",
            "title": f"page {words[number % len(words)]}",
            "text": " ".join(words[(number * step) % len(words)] for step in range(1, 30)) + ".",
            "date": "2021-01-01",
        }
        for number in range(PAGES)
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (root / "pages.jsonl").write_text(lines, encoding="utf-8")
    model = f'{{ model = "{m3}", max_tokens = 48 }}'
    text = (
        '[[sources]]\nkind = "jsonl"\npath = "pages.jsonl"\n'
        '[lexical]\nengine = "tantivy"\n'
        f'[dense]\nencoder = "flag"\narguments = {model}\n[sparse]\nweight = 0.4\n'
        '[reranker]\nkind = "flag"\ntop = 5\n'
        f'arguments = {{ model = "{cross}", max_tokens = 60 }}\n'
    )
    recipe = recipe_file.parse(text, base=root, origin="m3.toml")
    seen: list[str] = []
    real = FlagModel._pass

    def noted(model: FlagModel, clean: str) -> object:
        seen.append(clean)
        return real(model, clean)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FlagModel, "_pass", noted)
        build(recipe, Options(out=root / "worlds", cache=root / "cache", plan_check=False))
    return publish.resolve(root / "worlds" / "m3"), seen


@pytest.fixture(scope="module")
def engine(made: tuple[Path, list[str]]) -> Iterator[Engine]:
    opened = Engine(Generation.open(made[0]))
    yield opened
    opened.close()


def test_building_runs_every_text_through_the_model_once(made: tuple[Path, list[str]]) -> None:
    passages = [text for text in made[1] if "\n" in text]

    assert len(passages) == PAGES
    assert len(passages) == len(set(passages))


def test_the_manifest_names_both_sides_and_the_reranker(
    made: tuple[Path, list[str]], engine: Engine
) -> None:
    manifest = engine.generation.manifest
    assert manifest.sparse is not None
    assert manifest.reranker is not None
    assert manifest.encoder_id.startswith("flag:bge-m3-fp32:")
    assert manifest.sparse.encoder_id.startswith("flag-sparse:bge-m3-fp32:")
    assert manifest.reranker.reranker_id.startswith("flag-reranker:bge-reranker-base-fp32:")
    assert manifest.sparse.passages == engine.generation.passages.count
    check_content(made[0], manifest)


def test_serving_shares_the_model(engine: Engine) -> None:
    dense, sparse = engine.generation.encoder, engine.generation.sparse_encoder
    assert isinstance(dense, FlagEncoder)
    assert isinstance(sparse, FlagSparse)
    assert sparse._model is dense.model


def test_a_query_is_one_pass(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    real = FlagModel._pass

    def noted(model: FlagModel, clean: str) -> object:
        seen.append(clean)
        return real(model, clean)

    monkeypatch.setattr(FlagModel, "_pass", noted)
    engine.search(SearchCall("files of the open list"))
    assert seen == ["files of the open list"]


def test_answers_carry_all_scores_and_repeat(engine: Engine) -> None:
    whole = engine.search(SearchCall(QUERY, count=PAGES)).hits
    assert len(whole) == PAGES
    assert all(hit.parts.sparse is not None for hit in whole)
    assert [hit.parts.rerank is not None for hit in whole] == [True] * 5 + [False] * (PAGES - 5)
    scores = [hit.parts.rerank or 0 for hit in whole[:5]]
    assert scores == sorted(scores, reverse=True)
    again = engine.search_batch([SearchCall("a b c"), SearchCall(QUERY, count=PAGES)])[1].hits
    assert again == whole


def test_stored_weights_are_those_of_the_model(
    made: tuple[Path, list[str]], engine: Engine
) -> None:
    generation = engine.generation
    assert generation.sparse is not None
    assert generation.sparse_encoder is not None
    query = generation.sparse_encoder.encode_queries([QUERY])[0]
    text = next(text for text in made[1] if "\n" in text)
    number = next(
        number
        for number in range(generation.passages.count)
        if text.endswith(generation.passages.text(number))
    )
    passage = generation.sparse_encoder.encode_passages([text])[0]
    shared, here, there = np.intersect1d(query.tokens, passage.tokens, return_indices=True)
    product = float(query.weights[here].astype(float) @ passage.weights[there].astype(float))
    assert shared.size
    score = generation.sparse.score(query, np.array([number]))[0]
    assert score == pytest.approx(product, rel=0.02)
