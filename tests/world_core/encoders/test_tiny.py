from __future__ import annotations

import hashlib
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from world_core.encoders.invariance import check_invariance
from world_core.encoders.tiny import LIMIT, TinyEncoder
from world_core.errors import BadInputError

ODD = ["", "   ", "\0", "\ud800", "!?...", "\n\t", "a", "x" * 100_000, "世界", "\U0001f600"]
PRINT_DIGEST = (
    "import hashlib; from world_core.encoders.tiny import TinyEncoder; "
    "rows = TinyEncoder().encode_passages(['The quick brown fox', 'Übergröße 世界', '']); "
    "print(hashlib.sha256(rows.tobytes()).hexdigest())"
)


def test_vectors_have_shape_kind_and_length() -> None:
    vectors = TinyEncoder(64).encode_passages(["one", "two words", "and three words"])

    assert vectors.shape == (3, 64)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0)


def test_no_texts_give_no_rows() -> None:
    assert TinyEncoder().encode_queries([]).shape == (0, 256)


@pytest.mark.parametrize("text", ODD)
def test_odd_texts_have_a_vector_of_length_one(text: str) -> None:
    vector = TinyEncoder().encode_queries([text])[0]

    assert np.isfinite(vector).all()
    assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-6)


@given(st.lists(st.text(max_size=40), max_size=8))
@settings(max_examples=60, deadline=None)
def test_any_text_has_a_vector_of_length_one_whatever_its_company(texts: list[str]) -> None:
    encoder = TinyEncoder(32)

    together = encoder.encode_passages(texts)

    assert np.allclose(np.linalg.norm(together, axis=1), 1.0)
    for text, vector in zip(texts, together, strict=True):
        assert encoder.encode_passages([text])[0].tobytes() == vector.tobytes()


def test_texts_that_share_words_are_nearer() -> None:
    query, near, far = TinyEncoder().encode_queries(
        ["list open files", "the open files of a process are listed here", "bread with butter"]
    )

    assert query @ near > query @ far + 0.2


def test_spelling_variants_are_near_and_case_does_not_count() -> None:
    encoder = TinyEncoder()
    one, other, upper = encoder.encode_queries(["configuration", "configurations", "CONFIGURATION"])

    assert one @ other > 0.6
    assert one.tobytes() == upper.tobytes()


def test_queries_and_passages_are_encoded_alike() -> None:
    encoder = TinyEncoder()

    queries, passages = encoder.encode_queries(["a b"]), encoder.encode_passages(["a b"])

    assert queries.tobytes() == passages.tobytes()


def test_what_lies_beyond_the_limit_is_not_read() -> None:
    text = "word " * (LIMIT // 5 + 1)
    encoder = TinyEncoder()

    one, other = encoder.encode_passages([text[:LIMIT], text[:LIMIT] + " entirely different"])

    assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("seed", ["0", "1"])
def test_another_process_gives_the_same_bits(seed: str) -> None:
    rows = TinyEncoder().encode_passages(["The quick brown fox", "Übergröße 世界", ""])

    finished = subprocess.run(
        [sys.executable, "-c", PRINT_DIGEST],
        env={"PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )

    assert finished.stdout.strip() == hashlib.sha256(rows.tobytes()).hexdigest()


def test_it_passes_the_check_of_invariance() -> None:
    check_invariance(TinyEncoder())


def test_the_id_tells_sizes_apart() -> None:
    assert TinyEncoder(64).id != TinyEncoder(128).id
    assert TinyEncoder(64).id == TinyEncoder(64).id
    assert TinyEncoder().files() == {}


def test_arguments_are_read_and_checked() -> None:
    assert TinyEncoder.load({"dim": 16}, 1).dim == 16
    assert TinyEncoder.load({}, 4).dim == 256
    with pytest.raises(BadInputError, match="dim"):
        TinyEncoder.load({"dim": 4}, 1)
    with pytest.raises(BadInputError, match="'size'"):
        TinyEncoder.load({"size": 16}, 1)
