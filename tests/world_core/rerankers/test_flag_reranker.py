from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from tests.world_core.tiny_models import WORDS, make_bert, make_cross
from world_core.encoders import flag_model
from world_core.errors import BadInputError, MissingPartError, RerankerError
from world_core.rerankers.flag_reranker import STEPS, FlagCross

WITH_TORCH = all(importlib.util.find_spec(name) for name in ("torch", "FlagEmbedding"))
needs_torch = pytest.mark.skipif(not WITH_TORCH, reason="torch is not installed")
# The libraries behind FlagEmbedding warn about their own future.
lenient = pytest.mark.filterwarnings("ignore")
PASSAGES = [" ".join(WORDS[5 + n % 12 : 7 + n % 12 + n % 5]) or "a" for n in range(20)]


@pytest.fixture(scope="module")
def cross(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_cross(tmp_path_factory.mktemp("models") / "bge-reranker-base")


@pytest.fixture(scope="module")
def reranker(cross: Path) -> FlagCross:
    return FlagCross.load({"model": str(cross), "max_tokens": 48}, 1)


@needs_torch
@lenient
def test_scores_are_those_of_flagembedding_itself(cross: Path, reranker: FlagCross) -> None:
    from FlagEmbedding import FlagReranker

    theirs = FlagReranker(str(cross), use_fp16=False, devices=["cpu"], batch_size=2, max_length=48)
    for query in ("how do i list", "open files of the a"):
        wanted = [theirs.compute_score([(query, passage)])[0] for passage in PASSAGES]
        found = reranker.score(query, PASSAGES)
        assert found.dtype == np.int64
        assert np.allclose(found, np.array(wanted) * STEPS, atol=0.51)
        assert len(set(found.tolist())) > 5


@needs_torch
@lenient
def test_a_pair_does_not_depend_on_its_neighbours(reranker: FlagCross) -> None:
    together = reranker.score("list the files", PASSAGES)

    assert together.tolist() == [reranker.score("list the files", [one])[0] for one in PASSAGES]
    backwards = reranker.score("list the files", PASSAGES[::-1])
    assert backwards.tolist()[::-1] == together.tolist()
    assert reranker.score("list", []).shape == (0,)


@needs_torch
@lenient
def test_long_texts_are_cut_and_the_passage_keeps_a_quarter(reranker: FlagCross) -> None:
    query, passage = "list " * 300, "open files " * 300

    scores = reranker.score(query, [passage, passage + "of the a b c", "a b c " + passage])

    assert scores[0] == scores[1] != scores[2]


@needs_torch
@lenient
def test_the_id_names_model_files_and_steps(reranker: FlagCross) -> None:
    assert reranker.id.startswith("flag-reranker:bge-reranker-base-fp32:")
    assert reranker.id.endswith(':logit x 1000:48 tokens:"":""')
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= set(reranker.files())


@needs_torch
@lenient
def test_an_embedding_model_is_no_reranker(tmp_path: Path) -> None:
    with pytest.raises(RerankerError, match="2 numbers, so it is no reranker"):
        FlagCross.load({"model": str(make_bert(tmp_path / "bert"))}, 1)


@needs_torch
@lenient
@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_a_damaged_model_is_refused(cross: Path, tmp_path: Path, name: str) -> None:
    for path in cross.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / name).write_bytes(b"not what it was")

    with pytest.raises(RerankerError, match=str(tmp_path)) as caught:
        FlagCross.load({"model": str(tmp_path)}, 1)
    assert "hf download" in caught.value.hint


@needs_torch
@lenient
def test_a_failing_model_is_a_reranker_error(cross: Path) -> None:
    reranker = FlagCross.load({"model": str(cross), "max_tokens": 400}, 1)

    with pytest.raises(RerankerError, match="failed on a passage of 600 characters"):
        reranker.score("list", ["a b c " * 100])  # beyond the model's 66 positions


@needs_torch
@lenient
def test_a_score_that_is_no_number_is_refused(
    reranker: FlagCross, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reranker, "_logit", lambda query, passage: float("nan"))
    with pytest.raises(RerankerError, match="the score nan"):
        reranker.score("a", ["b"])


# Loading errors, which need no torch


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ({"path": "x"}, "'path'"),
        ({"model": ""}, "needs the argument model"),
        ({"model": "x", "max_tokens": 4}, "4"),
        ({"model": "x", "fp16": 2}, "2"),
    ],
)
def test_bad_arguments_are_refused_by_value(arguments: dict[str, str | int], value: str) -> None:
    with pytest.raises(BadInputError, match=value):
        FlagCross.load(arguments, 1)


def test_a_missing_folder_or_weights_give_the_command(tmp_path: Path) -> None:
    with pytest.raises(MissingPartError, match="no folder /models/r") as caught:
        FlagCross.load({"model": "/models/r"}, 1)
    assert "hf download" in caught.value.hint
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(MissingPartError, match=r"holds no model\*\.safetensors") as caught:
        FlagCross.load({"model": str(tmp_path)}, 1)
    assert "hf download" in caught.value.hint


@pytest.mark.parametrize("package", ["torch", "FlagEmbedding"])
def test_a_missing_package_gives_the_install_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_text("{}")
    monkeypatch.setattr(flag_model, "find_spec", lambda name: None if name == package else object())
    with pytest.raises(MissingPartError, match=package) as caught:
        FlagCross.load({"model": str(tmp_path)}, 1)
    assert caught.value.hint == "pip install 'searchworld[dense]'"
