from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.recall import BAR, Figures, measure
from world_core.encoders.loading import load
from world_core.indexes.tiers import KINDS
from world_core.types import Vectors


def unit_rows(count: int, seed: int) -> Vectors:
    rows = np.random.default_rng(seed).standard_normal((count, 24)).astype(np.float32)
    made: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return made


def test_exact_tiers_find_everything_and_figures_are_counted(tmp_path: Path) -> None:
    figures = measure(unit_rows(2500, 1), unit_rows(5, 2), ["torch", "ivf"], tmp_path)

    assert [one.tier for one in figures] == ["torch", "ivf"]
    assert figures[0].recall_10 == figures[0].recall_100 == 1.0
    assert figures[0].index_bytes == 0.0
    assert 24 < figures[1].index_bytes < 1000
    assert 0.5 < figures[1].recall_10 <= 1.0
    assert all(one.rows == 2500 and one.cpu_ms >= 0 for one in figures)


def test_a_line_is_a_row_of_the_table() -> None:
    line = Figures("ivf", 100_000, 0.99, 0.98, 2.5, 67.0, 412.0).line()

    assert line == "| ivf | 100,000 | 0.9900 | 0.9800 | 2.50 | 67 | 412 |"


@pytest.mark.slow
@pytest.mark.shared
def test_every_tier_holds_the_bar_on_real_vectors(shared_dir: Path, tmp_path: Path) -> None:
    texts = [
        json.loads(line)["text"]
        for language in ("en", "de", "es")
        for line in (shared_dir / f"data/ir/xquad/{language}/queries.jsonl")
        .read_text("utf-8")
        .splitlines()
    ]
    vectors = load("onnx-minilm", {}).encode_queries(texts)
    asked = np.arange(len(vectors)) % 12 == 0

    figures = measure(vectors[~asked], vectors[asked], list(KINDS), tmp_path)

    assert {one.tier: one.recall_10 for one in figures if one.recall_10 < BAR} == {}
