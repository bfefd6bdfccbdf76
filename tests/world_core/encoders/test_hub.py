from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

import pytest

from world_core.encoders import hub
from world_core.encoders.hub import HEADS, head_files, local_folder, model_files
from world_core.errors import MissingPartError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (
        "config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "model.safetensors",
        "pytorch_model.bin",
        "README.md",
    ):
        (tmp_path / name).write_text(name)
    return tmp_path


def names(folder: Path) -> list[str]:
    return [file.path.name for file in model_files(folder)]


def test_a_folder_is_itself(folder: Path) -> None:
    assert local_folder(str(folder)) == folder


def test_a_relative_and_a_home_folder_are_found(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    monkeypatch.setenv("HOME", str(folder.parent))

    assert local_folder(f"./{folder.name}").resolve() == folder.resolve()
    assert local_folder(f"~/{folder.name}") == folder


@pytest.mark.parametrize("model", ["/no/such/folder", "./none", "~/none-of-these"])
def test_a_missing_folder_is_named_and_not_taken_for_a_name(model: str) -> None:
    with pytest.raises(MissingPartError, match=f"no folder {model}") as caught:
        local_folder(model, download=True)

    assert "hf download" in caught.value.hint


def test_a_name_without_the_hub_package_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "find_spec", lambda name: None)

    with pytest.raises(MissingPartError, match="BAAI/bge-m3 cannot be looked up") as caught:
        local_folder("BAAI/bge-m3")

    assert "pip install" in caught.value.hint


@pytest.mark.skipif(
    importlib.util.find_spec("huggingface_hub") is None, reason="huggingface_hub is not installed"
)
@pytest.mark.parametrize("model", ["BAAI/bge-m3", "not a name at all"])
def test_a_name_that_is_not_in_the_cache_gives_the_command(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))

    with pytest.raises(MissingPartError, match=f"{model} is not on this machine") as caught:
        local_folder(model)

    assert caught.value.hint == f"hf download {model}, or set the argument allow_download to 1."


@pytest.mark.skipif(
    importlib.util.find_spec("huggingface_hub") is None, reason="huggingface_hub is not installed"
)
def test_a_name_in_the_cache_is_found_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub

    asked = {}

    def fetched(name: str, *, local_files_only: bool, allow_patterns: list[str]) -> str:
        asked[name] = local_files_only
        assert {"model*.safetensors", *HEADS} <= set(allow_patterns)
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetched)

    assert local_folder("BAAI/bge-m3") == tmp_path
    assert asked == {"BAAI/bge-m3": True}
    local_folder("BAAI/bge-m3", download=True)
    assert asked == {"BAAI/bge-m3": False}


def test_the_files_that_decide_are_listed_with_digests(folder: Path) -> None:
    assert names(folder) == [
        "config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "model.safetensors",
    ]
    for file in model_files(folder):
        assert file.sha256 == hashlib.sha256(file.path.name.encode()).hexdigest()


def test_without_safetensors_the_older_weights_count(folder: Path) -> None:
    (folder / "model.safetensors").unlink()

    assert names(folder)[-1] == "pytorch_model.bin"


def test_weights_in_parts_are_all_listed(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    (folder / "model-00002-of-00002.safetensors").write_text("2")

    assert names(folder)[-2:] == [
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
    ]


@pytest.mark.parametrize(
    ("gone", "named"),
    [
        (["config.json"], "config.json"),
        (["model.safetensors", "pytorch_model.bin"], r"model\*\.safetensors"),
    ],
)
def test_an_incomplete_folder_says_what_is_missing(
    folder: Path, gone: list[str], named: str
) -> None:
    for name in gone:
        (folder / name).unlink()

    with pytest.raises(MissingPartError, match=f"{folder} holds no {named}") as caught:
        model_files(folder)

    assert "hf download" in caught.value.hint


def test_heads_are_listed_or_named_with_the_next_command(folder: Path) -> None:
    for name in HEADS:
        with pytest.raises(MissingPartError, match=name) as caught:
            head_files(folder)
        assert f"--local-dir {folder}" in caught.value.hint
        (folder / name).write_text(name)

    assert [file.path.name for file in head_files(folder)] == list(HEADS)
