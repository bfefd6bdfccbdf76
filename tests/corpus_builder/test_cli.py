from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from corpus_builder import cli, publish, recipe_file
from corpus_builder.errors import StageFailedError
from tests.corpus_builder.samples import write_dump
from world_core import manifest as manifests


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a world built by the command."""
    folder = tmp_path_factory.mktemp("cli")
    dump = write_dump(folder / "pages.jsonl")
    assert cli.main(["build", str(dump), *settings(folder)]) == 3
    return folder


def settings(folder: Path, name: str = "one") -> list[str]:
    return [
        "--name",
        name,
        "--out",
        str(folder / "worlds"),
        "--cache",
        str(folder / "cache"),
        "--lexical",
        "tantivy",
        "--encoder",
        "none",
        "--workers",
        "1",
    ]


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert cli.main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = [line for line in captured.err.splitlines() if line.startswith("corpus-builder: ")]
    assert len(lines) == 1
    assert "Traceback" not in captured.err
    return lines[0]


def test_a_build_with_losses_says_so(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = str(root / "pages.jsonl")
    assert cli.main(["build", dump, *settings(tmp_path), "--json"]) == 3
    report = json.loads(capsys.readouterr().out)
    assert report["status"] == "finished with losses"
    assert report["losses"] == {"invalid JSON": 1}
    (listed,) = report["listed"]
    assert (listed["origin"], listed["offset"]) == ("pages.jsonl", 7)
    assert all(stage["balanced"] for stage in report["stages"])
    assert report["world_id"] == manifests.read(publish.resolve(root / "worlds" / "one")).world_id


def test_a_build_without_losses_is_plain_success(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = tmp_path / "good.jsonl"
    dump.write_text('{"url": "https://a.example/", "title": "T", "text": "Some good words."}\n')
    assert cli.main(["build", str(dump), *settings(tmp_path), "--clock", "2026-02-20"]) == 0
    printed = capsys.readouterr()
    assert "world-server serve" in printed.out
    assert "read: 1 records" in printed.err
    manifest = manifests.read(publish.resolve(tmp_path / "worlds" / "one"))
    assert manifest.clock == recipe_file.parse_instant("2026-02-20")
    assert not list((tmp_path / "worlds").glob(".build-*"))


def test_html_files_take_their_address_from_the_base(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "tower.html"
    page.write_text("<html><title>Tower</title><body><p>The tower stands on a hill.</p></body>")
    extra = ["--base-url", "https://pages.example/", "--strip-ending"]
    assert cli.main(["build", str(page), *settings(tmp_path), *extra]) == 0
    assert cli.main(["inspect", str(tmp_path / "worlds" / "one"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert facts["hosts"] == {"pages.example": 1}


def test_inspect_pack_and_unpack(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = str(root / "worlds" / "one")
    assert cli.main(["inspect", world]) == 0
    assert "hosts:" in capsys.readouterr().out
    assert cli.main(["pack", world, str(tmp_path)]) == 0
    packed = capsys.readouterr().out.strip()
    assert cli.main(["unpack", packed, str(tmp_path / "out")]) == 0
    assert str(tmp_path / "out" / "one") in capsys.readouterr().out
    assert "100 bytes" in refused(
        capsys, "unpack", packed, str(tmp_path / "small"), "--max-bytes", "100"
    )


def test_recipes_are_listed_and_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["recipes"]) == 0
    assert capsys.readouterr().out.splitlines() == recipe_file.shipped()
    assert cli.main(["recipes", "atlas-toy"]) == 0
    assert 'preset = "atlas-toy"' in capsys.readouterr().out
    assert "'nothing'" in refused(capsys, "recipes", "nothing")


def test_refusals_are_one_sentence(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = str(root / "pages.jsonl")
    out = ["--out", str(tmp_path / "w")]
    assert "nothing to build from" in refused(capsys, "build", "--name", "x", *out)
    assert "no name" in refused(capsys, "build", dump, *out)
    assert "'Bad Name'" in refused(capsys, "build", dump, "--name", "Bad Name", *out)
    assert "'soon'" in refused(capsys, "build", dump, "--name", "x", "--clock", "soon", *out)
    assert "0 processes" in refused(capsys, "build", dump, "--name", "x", "--workers", "0", *out)
    assert "none.warc" in refused(capsys, "build", "none.warc", "--name", "x", *out)
    assert "'word2vec'" in refused(
        capsys, "build", dump, "--name", "x", "--encoder", "word2vec", *out
    )
    assert "'nothing'" in refused(capsys, "build", "--recipe", "nothing", *out)
    assert not (tmp_path / "w").exists() or not list((tmp_path / "w").rglob("*"))


@pytest.mark.parametrize(
    "extra",
    [["x.jsonl"], ["--lexical", "lucene"], ["--encoder", "tiny"], ["--clock", "2026-01-01"]],
)
def test_nothing_goes_beside_a_recipe(extra: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert "beside --recipe" in refused(capsys, "build", "--recipe", "atlas-toy", *extra)


def test_a_recipe_may_be_given_another_name() -> None:
    options = cli._parser().parse_args(["build", "--recipe", "atlas-toy", "--name", "toy-2"])
    assert cli._recipe_of(options).name == "toy-2"
    options = cli._parser().parse_args(["build", "--recipe", "atlas-toy"])
    assert cli._recipe_of(options) == recipe_file.load("atlas-toy")


def test_an_empty_world_needs_a_flag(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = tmp_path / "empty.warc"
    empty.write_bytes(b"")
    line = refused(capsys, "build", str(empty), *settings(tmp_path))
    assert "empty file" in line
    assert "--allow-empty" in line
    assert not (tmp_path / "worlds" / "one").exists()
    assert cli.main(["build", str(empty), *settings(tmp_path), "--allow-empty"]) == 0
    assert "0 pages" in capsys.readouterr().out


def test_damaged_worlds_are_refused_with_the_file(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(publish.resolve(root / "worlds" / "one"), tmp_path / "w")
    (folder / "passages.bin").write_bytes(b"")
    assert "passages.bin" in refused(capsys, "inspect", str(folder))
    assert "passages.bin" in refused(capsys, "pack", str(folder), str(tmp_path))
    assert "not a world" in refused(capsys, "inspect", str(tmp_path))


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (OSError(28, "No space left on device", "/w/f"), 2, "No space left on device"),
        (KeyboardInterrupt(), 130, "goes on from here"),
        (StageFailedError("A sentence.", hint="A hint."), 2, "A sentence. A hint."),
    ],
)
def test_what_goes_wrong_becomes_a_sentence(
    error: BaseException,
    code: int,
    text: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*arguments: object) -> None:
        raise error

    monkeypatch.setattr("corpus_builder.build.build", fail)
    assert cli.main(["build", "--recipe", "atlas-toy"]) == code
    assert text in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["bake"], ["build", "--colour"]])
def test_unknown_commands_and_flags_are_usage_errors(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert caught.value.code == 2
