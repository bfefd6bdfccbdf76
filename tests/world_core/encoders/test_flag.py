from __future__ import annotations

import importlib.util
import logging
from pathlib import Path

import numpy as np
import pytest

from tests.world_core.tiny_models import WORDS, make_bert, make_m3
from world_core.encoders import flag_model
from world_core.encoders.families import FAMILIES
from world_core.encoders.flag import FlagEncoder
from world_core.encoders.invariance import check_invariance
from world_core.errors import BadInputError, EncoderError, MissingPartError

WITH_TORCH = all(importlib.util.find_spec(name) for name in ("torch", "FlagEmbedding"))
needs_torch = pytest.mark.skipif(not WITH_TORCH, reason="torch is not installed")
# The libraries behind FlagEmbedding warn about their own future.
lenient = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def pretended(tmp_path: Path) -> Path:
    """A folder with the files of a model, but no weights in them."""
    folder = tmp_path / "bge-small-en-v1.5"
    folder.mkdir()
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (folder / name).write_text("{}")
    return folder


# Loading errors, which need no torch


def test_the_model_must_be_named() -> None:
    with pytest.raises(BadInputError, match="needs the argument model"):
        FlagEncoder.load({}, 1)


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ({"path": "x"}, "'path'"),
        ({"model": 7}, "7"),
        ({"model": "x", "family": "gpt"}, "'gpt'"),
        ({"model": "x", "family": "cls", "max_tokens": 4}, "4"),
        ({"model": "x", "family": "cls", "fp16": 2}, "2"),
        ({"model": "x", "family": "cls", "allow_download": "yes"}, "'yes'"),
    ],
)
def test_bad_arguments_are_refused_by_value(arguments: dict[str, str | int], value: str) -> None:
    with pytest.raises(BadInputError, match=value):
        FlagEncoder.load(arguments, 1)


def test_a_family_is_not_guessed() -> None:
    with pytest.raises(BadInputError, match="'some-model'"):
        FlagEncoder.load({"model": "/models/some-model/"}, 1)


def test_a_missing_folder_is_named_with_the_next_command() -> None:
    with pytest.raises(MissingPartError, match="no folder /models/bge-m3") as caught:
        FlagEncoder.load({"model": "/models/bge-m3"}, 1)

    assert "hf download" in caught.value.hint


def test_missing_weights_are_named_with_the_next_command(pretended: Path) -> None:
    (pretended / "model.safetensors").unlink()

    with pytest.raises(MissingPartError, match=str(pretended)) as caught:
        FlagEncoder.load({"model": str(pretended)}, 1)

    assert "hf download" in caught.value.hint


@pytest.mark.parametrize("package", ["torch", "FlagEmbedding"])
def test_a_missing_package_gives_the_install_command(
    pretended: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setattr(flag_model, "find_spec", lambda name: None if name == package else object())

    with pytest.raises(MissingPartError, match=package) as caught:
        FlagEncoder.load({"model": str(pretended)}, 1)

    assert caught.value.hint == "pip install 'searchworld[dense]'"


# Real runs on tiny random models


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_bert(tmp_path_factory.mktemp("models") / "bge-small-en-v1.5")


@pytest.fixture(scope="module")
def m3(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_m3(tmp_path_factory.mktemp("models") / "bge-m3")


def loaded(folder: Path, **arguments: str | int) -> FlagEncoder:
    return FlagEncoder.load({"model": str(folder), "max_tokens": 32, **arguments}, 1)


@needs_torch
@lenient
@pytest.mark.parametrize("model", ["bert", "m3"])
def test_a_random_model_runs(model: str, request: pytest.FixtureRequest) -> None:
    encoder = loaded(request.getfixturevalue(model))

    vectors = encoder.encode_passages(["how do i list open files", "", "\ud800", "a b c " * 100])

    assert vectors.shape == (4, encoder.dim) == (4, 32)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)
    assert encoder.encode_queries([]).shape == (0, 32)


@needs_torch
@lenient
def test_it_is_bit_equal_in_every_batch(bert: Path) -> None:
    encoder = loaded(bert)
    texts = [" ".join(WORDS[5 + n % 12 : 6 + n % 12 + n % 3]) for n in range(12)]

    together = encoder.encode_passages(texts)

    alone = np.concatenate([encoder.encode_passages([text]) for text in texts])
    assert together.tobytes() == alone.tobytes()
    check_invariance(encoder)


@needs_torch
@lenient
@pytest.mark.parametrize("model", ["bert", "m3"])
def test_vectors_are_those_of_flagembedding_itself(
    model: str, request: pytest.FixtureRequest
) -> None:
    from FlagEmbedding import BGEM3FlagModel, FlagModel

    folder = request.getfixturevalue(model)
    encoder = loaded(folder)
    kind = BGEM3FlagModel if model == "m3" else FlagModel
    theirs = kind(
        str(folder),
        use_fp16=False,
        devices=["cpu"],
        batch_size=2,
        query_instruction_for_retrieval=encoder.model.family.query_instruction or None,
    )
    for text in ("how do i list open files", "a b c"):
        pairs = (
            (encoder.encode_queries([text]), theirs.encode_queries([text])),
            (encoder.encode_passages([text]), theirs.encode_corpus([text])),
        )
        for ours, output in pairs:
            wanted = output["dense_vecs"] if isinstance(output, dict) else output
            assert np.allclose(ours, wanted, atol=1e-6)


@needs_torch
@lenient
def test_the_query_instruction_is_put_before_queries(bert: Path) -> None:
    encoder = loaded(bert, family="bge-en")
    plain = loaded(bert, family="cls")
    instruction = FAMILIES["bge-en"].query_instruction

    assert np.array_equal(
        encoder.encode_queries(["list files"]),
        plain.encode_queries([f"{instruction}list files"]),
    )
    assert np.array_equal(
        encoder.encode_passages(["list files"]), plain.encode_queries(["list files"])
    )


@needs_torch
@lenient
def test_pooling_matters(bert: Path) -> None:
    first, mean = loaded(bert, family="cls"), loaded(bert, family="mean")

    assert not np.allclose(first.encode_queries(["a b c"]), mean.encode_queries(["a b c"]))
    assert first.id != mean.id


@needs_torch
@lenient
def test_the_id_names_model_precision_and_files(bert: Path) -> None:
    encoder = loaded(bert)

    assert encoder.id.startswith("flag:bge-small-en-v1.5-fp32:")
    assert encoder.id.endswith(
        ':cls:32 tokens:"Represent this sentence for searching relevant passages: ":""'
    )
    assert set(encoder.files()) == {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    }


@needs_torch
@lenient
def test_half_precision_without_cuda_is_single_precision_with_one_warning(
    bert: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="world_core.encoders.flag_model"):
        half = loaded(bert, fp16=1, device="cpu")

    assert [record.name for record in caplog.records].count("world_core.encoders.flag_model") == 1
    assert half.id == loaded(bert, device="cpu").id
    assert half.encode_queries(["a"]).shape == (1, 32)


@needs_torch
@lenient
def test_a_device_that_is_not_there_is_refused_at_the_start(bert: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if torch.cuda.is_available():
        pytest.skip("this machine has CUDA")

    with pytest.raises(MissingPartError, match="cuda:0"):
        loaded(bert, device="cuda:0")


@needs_torch
@lenient
@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json"])
def test_a_damaged_model_is_refused(bert: Path, tmp_path: Path, name: str) -> None:
    for path in bert.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / name).write_bytes(b"not what it was")

    with pytest.raises(EncoderError, match=str(tmp_path)):
        loaded(tmp_path, family="cls")


@needs_torch
@lenient
def test_a_failing_model_is_an_encoder_error(bert: Path) -> None:
    encoder = loaded(bert, max_tokens=200)  # beyond the model's 64 positions

    with pytest.raises(EncoderError, match="failed on a text of 360 characters"):
        encoder.encode_passages(["a b c " * 60])
