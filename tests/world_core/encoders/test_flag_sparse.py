from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from tests.world_core.tiny_models import WORDS, make_m3
from world_core.encoders import flag_model
from world_core.encoders.flag import FlagEncoder
from world_core.encoders.flag_sparse import FlagSparse
from world_core.errors import BadInputError, EncoderError, MissingPartError

WITH_TORCH = all(importlib.util.find_spec(name) for name in ("torch", "FlagEmbedding"))
pytestmark = [
    pytest.mark.skipif(not WITH_TORCH, reason="torch is not installed"),
    # The libraries behind FlagEmbedding warn about their own future.
    pytest.mark.filterwarnings("ignore"),
]
TEXTS = ["how do i list open files", "a b c a a", "", "open files of the a and the b"]


@pytest.fixture(scope="module")
def m3(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_m3(tmp_path_factory.mktemp("models") / "bge-m3")


@pytest.fixture(scope="module")
def dense(m3: Path) -> FlagEncoder:
    return FlagEncoder.load(arguments(m3), 1)


@pytest.fixture(scope="module")
def sparse(m3: Path, dense: FlagEncoder) -> FlagSparse:
    return FlagSparse.load(arguments(m3), 1, dense)


def arguments(folder: Path) -> dict[str, str | int]:
    return {"model": str(folder), "max_tokens": 32}


@contextmanager
def passes(dense: FlagEncoder) -> Iterator[list[str]]:
    """Count the forward passes of a model."""
    seen: list[str] = []
    real = dense.model._outputs

    def counted(inputs: object) -> object:
        seen.append("pass")
        return real(inputs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dense.model, "_outputs", counted)
        yield seen


def test_weights_are_those_of_flagembedding_itself(m3: Path, sparse: FlagSparse) -> None:
    from FlagEmbedding import BGEM3FlagModel

    theirs = BGEM3FlagModel(str(m3), use_fp16=False, devices=["cpu"], batch_size=2)
    for text in TEXTS:
        wanted = theirs.encode_corpus([text], return_sparse=True)["lexical_weights"][0]
        expected = {int(token): float(weight) for token, weight in wanted.items()}
        for vector in (sparse.encode_passages([text])[0], sparse.encode_queries([text])[0]):
            found = dict(zip(vector.tokens.tolist(), vector.weights.tolist(), strict=True))
            assert found == pytest.approx(expected, rel=1e-5)


def test_marks_and_unknown_words_weigh_nothing(sparse: FlagSparse) -> None:
    vector = sparse.encode_passages(["how [MASK] do unheard-of files [PAD] [SEP]"])[0]

    special = {WORDS.index(mark) for mark in ("[PAD]", "[UNK]", "[CLS]", "[SEP]")}
    assert special.isdisjoint(vector.tokens.tolist())
    assert vector.tokens.size
    assert sparse.encode_queries([""])[0].tokens.size == 0


def test_both_sides_share_one_model_and_one_pass(dense: FlagEncoder, sparse: FlagSparse) -> None:
    texts = [f"open files {word}" for word in WORDS[5:]]
    with passes(dense) as seen:
        dense.encode_passages(texts)
        sparse.encode_passages(texts)
    assert len(seen) == len(texts)
    with passes(dense) as seen:
        dense.encode_queries(["list the files and the a"])
        sparse.encode_queries(["list the files and the a"])
    assert len(seen) == 1


def test_only_the_last_passes_are_remembered(m3: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flag_model, "REMEMBERED", 2)
    alone = FlagSparse.load(arguments(m3), 1)
    alone.encode_passages(TEXTS)

    assert list(alone._model._recent) == TEXTS[-2:]


def test_weights_do_not_depend_on_what_was_remembered(
    m3: Path, dense: FlagEncoder, sparse: FlagSparse
) -> None:
    dense.encode_passages(TEXTS)
    remembered = sparse.encode_passages(TEXTS)
    alone = FlagSparse.load(arguments(m3), 1)
    for text, vector in zip(TEXTS, remembered, strict=True):
        again = alone.encode_passages([text])[0]
        assert vector.weights.tobytes() == again.weights.tobytes()
        assert np.array_equal(vector.tokens, again.tokens)


def test_the_dense_side_is_the_same_with_and_without(
    m3: Path, dense: FlagEncoder, sparse: FlagSparse
) -> None:
    alone = FlagEncoder.load(arguments(m3), 1)

    assert alone.encode_passages(TEXTS).tobytes() == dense.encode_passages(TEXTS).tobytes()
    assert alone.id == dense.id


def test_only_an_equal_model_is_shared(m3: Path, dense: FlagEncoder) -> None:
    other = FlagSparse.load({**arguments(m3), "max_tokens": 16}, 1, dense)

    assert other._model is not dense.model
    assert FlagSparse.load(arguments(m3), 1, dense)._model is dense.model


def test_the_id_names_model_and_heads(m3: Path, sparse: FlagSparse) -> None:
    assert sparse.id.startswith("flag-sparse:bge-m3-fp32:")
    assert sparse.id.endswith(':max:32 tokens:"":""')
    assert {"sparse_linear.pt", "colbert_linear.pt", "model.safetensors"} <= set(sparse.files())
    assert sparse.vocabulary == len(WORDS)


def copied(m3: Path, folder: Path) -> Path:
    for path in m3.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


@pytest.mark.parametrize("name", ["sparse_linear.pt", "colbert_linear.pt"])
def test_a_missing_head_is_named_with_the_next_command(m3: Path, tmp_path: Path, name: str) -> None:
    (copied(m3, tmp_path) / name).unlink()

    with pytest.raises(MissingPartError, match=name) as caught:
        FlagSparse.load({**arguments(tmp_path), "family": "m3"}, 1)

    assert f"--local-dir {tmp_path}" in caught.value.hint


@pytest.mark.parametrize("content", [b"", b"not what it was", b"PK\x03\x04 nor an archive"])
def test_a_damaged_head_is_refused(m3: Path, tmp_path: Path, content: bytes) -> None:
    (copied(m3, tmp_path) / "sparse_linear.pt").write_bytes(content)

    with pytest.raises(EncoderError, match=str(tmp_path)):
        FlagSparse.load({**arguments(tmp_path), "family": "m3"}, 1)


def test_a_model_without_sparse_weights_is_refused() -> None:
    with pytest.raises(BadInputError, match=r"bge-small-en-v1\.5 \(family bge-en\)"):
        FlagSparse.load({"model": "BAAI/bge-small-en-v1.5"}, 1)
