from __future__ import annotations

import datetime as dt
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from corpus_builder import publish, stages
from corpus_builder.build import NO_CLOCK, build
from corpus_builder.errors import (
    BadRecipeError,
    EmptyWorldError,
    StageFailedError,
)
from corpus_builder.inputs import recognise
from corpus_builder.recipe import (
    DenseRecipe,
    ExtractRecipe,
    LexicalRecipe,
    NearRecipe,
    Recipe,
    SourceRecipe,
)
from corpus_builder.recipe_file import parse
from corpus_builder.verifying import content_id
from corpus_builder.workspace import KILL_VARIABLE, Workspace
from tests.corpus_builder.samples import build_small, options, small_recipe, write_dump
from world_core import manifest as manifests
from world_core.engine import Engine
from world_core.errors import MissingPartError, WorldError
from world_core.generation import Generation
from world_core.near import NearFile
from world_core.types import FetchCall, Outcome, SearchCall
from world_core.views import Columns, at_clock

EPOCH = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
DAY = 86_400
STATES = [
    "shard",
    "read",
    "snapshot",
    "block",
    "passages",
    "shingles",
    "near",
    "tables",
    "lexical",
    "vectors",
    "dense",
    "assembled",
    "files_written",
    "files_synced",
    "manifest_written",
    "verified",
    "renamed",
    "pointed",
]


@pytest.fixture
def undisturbed(small_root: Path) -> Path:
    """Return the folder below which the small world was built in one go."""
    return small_root


def world_id(root: Path, name: str = "small") -> str:
    folder = publish.resolve(root / "worlds" / name)
    manifest = manifests.read(folder)
    manifests.verify(folder, manifest)
    return manifest.world_id


def command(root: Path, *more: str) -> list[str]:
    """Return the command that builds the small world from its recipe file."""
    dump = write_dump(root / "pages.jsonl")
    recipe = root / "small.toml"
    recipe.write_text(
        f'clock = "2026-05-28T20:26:40Z"\n'
        f'[[sources]]\nkind = "jsonl"\npath = "{dump.name}"\n'
        f'[[sources]]\nkind = "atlas"\npreset = "atlas-toy"\nsize = 12\n'
        f'[lexical]\nengine = "tantivy"\n[dense]\nencoder = "tiny"\n'
    )
    start = [sys.executable, "-m", "corpus_builder.cli", "build", "--recipe", str(recipe)]
    places = ["--out", str(root / "worlds"), "--cache", str(root / "cache"), "--workers", "1"]
    return [*start, *places, *more]


def run(root: Path, kill_at: str = "") -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != KILL_VARIABLE}
    if kill_at:
        environment[KILL_VARIABLE] = kill_at
    return subprocess.run(
        command(root), env=environment, capture_output=True, text=True, check=False, timeout=120
    )


def test_the_world_is_whole_and_reported(undisturbed: Path) -> None:
    folder = publish.resolve(undisturbed / "worlds" / "small")
    manifest = manifests.read(folder)
    assert content_id(folder, manifest) == manifest.world_id
    assert manifest.counts.pages == 18
    assert manifest.counts.dropped == {"invalid JSON": 1}
    assert manifest.lexical.engine == "tantivy"
    assert manifest.lexical.engine_version.startswith("tantivy")
    assert manifest.dense is not None
    assert manifest.dense.rows == manifest.counts.passages
    assert len(manifest.canaries) == 5
    assert manifest.clock == 1_780_000_000
    report = json.loads(publish.report_path(folder).read_text())
    assert report["world_id"] == manifest.world_id
    assert all(stage["balanced"] for stage in report["stages"])
    assert [stage["name"] for stage in report["stages"]] == [
        "read",
        "snapshot",
        "passages",
        "near",
        "tables",
        "lexical",
        "dense",
    ]
    near = NearFile.open(folder)
    assert near.version_count == manifest.counts.versions
    assert report["near"] == {"pairs": near.pair_count, "held": near.held_count, "skipped": 0}
    assert report["bytes_by_part"].keys() >= {"pages.sqlite", "passages.bin", "lexical", "near"}
    assert not list((undisturbed / "worlds").glob(".build-*"))


def test_questions_rest_on_pages_of_the_world(undisturbed: Path) -> None:
    folder = publish.resolve(undisturbed / "worlds" / "small")
    rows = [json.loads(line) for line in (folder / "questions.jsonl").read_text().splitlines()]
    assert rows
    generation = Generation.open(folder)
    engine = Engine(generation)
    for row in rows:
        for piece in row["evidence"]:
            answer = engine.fetch(FetchCall(piece["url"]))
            assert answer.version is not None
            assert answer.version.meta.page_id == piece["page_id"]
    engine.close()


def test_workers_leave_no_trace(undisturbed: Path, tmp_path: Path) -> None:
    build_small(tmp_path, workers=4)
    assert world_id(tmp_path) == world_id(undisturbed)
    one = publish.resolve(undisturbed / "worlds" / "small")
    four = publish.resolve(tmp_path / "worlds" / "small")
    names = ["pages.sqlite", "passages.bin", "recipe.toml", "questions.jsonl"]
    names += [f"near/{name}.npy" for name in ("starts", "others", "shares")]
    for name in [*names, "columns/group.npy"]:
        assert (one / name).read_bytes() == (four / name).read_bytes()
    assert (one / "dense" / "codes.npy").read_bytes() == (four / "dense" / "codes.npy").read_bytes()


def test_copies_on_other_pages_are_known(tmp_path: Path) -> None:
    text = "The first ferry of the day came in from the sea while nobody else was awake."
    others = [f"Page {n} tells of something else that happened in year {n}." for n in range(4)]
    texts = [*others, text, f"{text} {others[1]}", text]
    rows = [{"url": f"https://a.example/{n}", "text": text} for n, text in enumerate(texts)]
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = (SourceRecipe("jsonl", str(tmp_path / "p.jsonl")),)
    recipe = Recipe("w", source, lexical=LexicalRecipe(engine="tantivy"), clock=1_700_000_000)
    report = build(recipe, options(tmp_path))
    generation = Generation.open(publish.resolve(tmp_path / "worlds" / "w"))
    places = {generation.pages.read(n).meta.url[-1]: n for n in range(len(texts))}
    holders = {
        name: set(generation.near.holders(number)[0].tolist()) for name, number in places.items()
    }
    assert holders["4"] == {places["5"], places["6"]}
    assert holders["6"] == {places["4"], places["5"]}
    assert holders["1"] == {places["5"]}
    assert holders["5"] == holders["0"] == set()
    groups = generation.columns.group
    assert groups[places["4"]] == groups[places["6"]] == min(places["4"], places["6"])
    assert np.count_nonzero(groups >= 0) == 2
    generation.close()
    assert report.near == {"pairs": 5, "held": 3, "skipped": 0}
    off = build(replace(recipe, near=NearRecipe(0.0)), options(tmp_path))
    folder = publish.resolve(tmp_path / "worlds" / "w")
    assert off.world_id != report.world_id
    assert off.near == {}
    assert not (folder / "near").exists()
    assert content_id(folder, manifests.read(folder)) == off.world_id
    assert set(Columns.open(folder).group.tolist()) == {-1}


def test_building_again_keeps_the_folder(undisturbed: Path, tmp_path: Path) -> None:
    root = tmp_path / "again"
    shutil.copytree(undisturbed, root)
    report = build_small(root)
    assert report.world_id == world_id(undisturbed)
    home = root / "worlds" / "small"
    assert len([path for path in home.iterdir() if path.is_dir()]) == 1


def test_another_input_is_another_version_beside(tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "pages.jsonl", 3)
    recipe = Recipe(
        "w", (SourceRecipe("jsonl", str(dump)),), lexical=LexicalRecipe(engine="tantivy")
    )
    first = build(recipe, options(tmp_path))
    write_dump(dump, 4)
    second = build(recipe, options(tmp_path))
    assert first.world_id != second.world_id
    assert world_id(tmp_path, "w") == second.world_id
    assert len([path for path in (tmp_path / "worlds" / "w").iterdir() if path.is_dir()]) == 2


@pytest.mark.java
def test_the_engine_is_not_content(undisturbed: Path, tmp_path: Path) -> None:
    recipe = small_recipe(undisturbed / "pages.jsonl", engine="lucene")
    report = build(recipe, options(tmp_path))
    assert report.world_id == world_id(undisturbed)
    generation = Generation.open(publish.resolve(tmp_path / "worlds" / "small"))
    hits = Engine(generation).search(SearchCall("Harbour 3")).hits
    assert hits[0].meta.url == "https://dump.example/3"
    generation.close()


def test_a_killed_build_goes_on(undisturbed: Path, tmp_path: Path) -> None:
    assert run(tmp_path, "block").returncode == -9
    done = run(tmp_path)
    assert done.returncode == 3, done.stderr
    assert world_id(tmp_path) == world_id(undisturbed)
    assert not list((tmp_path / "worlds").glob(".build-*"))
    assert not list((tmp_path / "worlds").rglob("*.part"))


@pytest.mark.slow
def test_a_build_killed_at_every_state_in_turn_ends_in_the_same_world(
    undisturbed: Path, tmp_path: Path
) -> None:
    for state in STATES:
        killed = run(tmp_path, state)
        assert killed.returncode == -9, f"{state}: {killed.stderr}"
    assert run(tmp_path).returncode == 3
    assert world_id(tmp_path) == world_id(undisturbed)


@pytest.mark.slow
def test_a_build_killed_at_random_moments_ends_in_the_same_world(
    undisturbed: Path, tmp_path: Path
) -> None:
    started = time.monotonic()
    (tmp_path / "whole").mkdir()
    run(tmp_path / "whole")
    whole = time.monotonic() - started
    draw = random.Random(7)
    root = tmp_path / "killed"
    root.mkdir()
    for _ in range(10):
        process = subprocess.Popen(
            command(root), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            process.wait(timeout=draw.uniform(0.1, whole))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    assert run(root).returncode == 3
    assert world_id(root) == world_id(undisturbed)
    assert not list((root / "worlds").rglob("*.part"))


def test_a_stopped_build_goes_on_with_another_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def here(function: Callable[..., int], tasks: Sequence[object], **_: object) -> list[int]:
        return [function(task, lambda count: None) for task in tasks]

    monkeypatch.setattr(stages, "run_tasks", here)  # so that the sizes of parts set here hold
    old = small_recipe(write_dump(tmp_path / "pages.jsonl"))
    old = replace(old, extract=ExtractRecipe(least_words=2))
    new = replace(old, extract=ExtractRecipe(least_words=1))
    monkeypatch.setattr(stages, "PART_DRAFTS", 4)
    expected = build(new, options(tmp_path / "undisturbed"))
    monkeypatch.setattr(stages, "PART_DRAFTS", 3)
    with monkeypatch.context() as stopped:
        stopped.setattr("corpus_builder.build.make_snapshot", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            build(old, options(tmp_path))
    monkeypatch.setattr(stages, "PART_DRAFTS", 4)
    report = build(new, options(tmp_path))
    assert report.world_id == expected.world_id
    assert report.counts == expected.counts
    assert report.counts["pages"] == 18


def _interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_a_full_disk_stops_with_a_sentence_and_the_build_goes_on(
    undisturbed: Path, tmp_path: Path
) -> None:
    words = " ".join(f"'{word}'" for word in command(tmp_path))
    done = subprocess.run(
        ["bash", "-c", f"ulimit -f 40; exec {words}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert "the same command again" in done.stderr
    assert not (tmp_path / "worlds" / "small").exists()
    assert run(tmp_path).returncode == 3
    assert world_id(tmp_path) == world_id(undisturbed)


def one_page(day: int, text: str, url: str = "https://news.example/a") -> dict[str, object]:
    date = (EPOCH + dt.timedelta(days=day)).isoformat()
    return {"url": url, "title": "News", "text": text, "timestamp": date}


def build_rows(root: Path, rows: list[dict[str, object]], recipe: str = "") -> Engine:
    """Build a world of these rows and open it."""
    (root / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    text = f'[[sources]]\nkind = "jsonl"\npath = "rows.jsonl"\n{recipe}'
    if "[lexical]" not in recipe:
        text += '\n[lexical]\nengine = "tantivy"\n'
    report = build(parse(text, base=root, origin="rows.toml"), options(root))
    return Engine(Generation.open(publish.resolve(Path(report.folder))))


def test_versions_are_seen_at_their_time(tmp_path: Path) -> None:
    engine = build_rows(
        tmp_path,
        [
            one_page(100, "The bridge is planned."),
            one_page(200, "The bridge is planned."),
            one_page(300, "The bridge is open."),
        ],
    )
    assert engine.generation.manifest.counts.versions == 2
    assert engine.generation.manifest.clock == EPOCH.timestamp() + 300 * DAY
    for day, text in ((100, "planned"), (299, "planned"), (300, "open"), (5000, "open")):
        view = at_clock(engine.generation.columns, int(EPOCH.timestamp()) + day * DAY)
        answer = engine.fetch(FetchCall("news.example/a"), view)
        assert answer.version is not None
        assert text in answer.version.text
    early = at_clock(engine.generation.columns, int(EPOCH.timestamp()) + 99 * DAY)
    answer = engine.fetch(FetchCall("news.example/a"), early)
    assert answer.outcome is Outcome.NOT_YET_PUBLISHED
    assert not engine.search(SearchCall("bridge"), early).hits
    engine.close()


@pytest.mark.parametrize(
    ("dates", "clock", "notes"),
    [({"published": "2020-01-02"}, EPOCH.timestamp() + DAY, {}), ({}, 0, {NO_CLOCK: 1})],
)
def test_a_dump_without_times_has_the_clock_of_its_newest_page(
    tmp_path: Path, dates: dict[str, object], clock: int, notes: dict[str, int]
) -> None:
    row = {"url": "https://news.example/a", "title": "News", "text": "The bridge is open.", **dates}
    engine = build_rows(tmp_path, [row])
    assert engine.generation.manifest.clock == clock
    assert engine.fetch(FetchCall("news.example/a")).outcome is Outcome.OK
    engine.close()
    report = publish.report_path(publish.resolve(tmp_path / "worlds" / "rows"))
    assert json.loads(report.read_text())["notes"] == notes


def test_spellings_of_one_address_are_one_page(tmp_path: Path) -> None:
    engine = build_rows(
        tmp_path,
        [
            one_page(1, "One text.", "http://b\u00fccher.example/a?utm_source=x&id=3"),
            one_page(2, "One text.", "https://xn--bcher-kva.example/a?id=3#top"),
            one_page(3, "Other text.", "https://b\u00fccher.example/a?id=4"),
        ],
    )
    assert engine.generation.manifest.counts.pages == 2
    answer = engine.fetch(FetchCall("https://B\u00dcCHER.example/a?id=3&fbclid=q"))
    assert answer.version is not None
    assert answer.version.text == "One text."
    assert answer.url == "http://b\u00fccher.example/a?utm_source=x&id=3"
    engine.close()


def test_a_world_of_passages_finds_the_page_by_any_of_them(tmp_path: Path) -> None:
    long = " ".join(f"Sentence number {n} speaks of nothing much." for n in range(80))
    engine = build_rows(
        tmp_path,
        [one_page(1, f"{long} The heron nests under the weir. {long}")],
        '[passages]\ntarget = 300\nlimit = 400\n[lexical]\nengine = "tantivy"\nunit = "passage"\n',
    )
    assert engine.generation.lexical.count == engine.generation.manifest.counts.passages > 5
    (hit,) = engine.search(SearchCall("heron weir")).hits
    assert "heron" in hit.snippet
    engine.close()


def test_named_canaries_lie_in_the_manifest(tmp_path: Path) -> None:
    engine = build_rows(tmp_path, [one_page(1, "The ferry leaves at noon.")], "")
    recipe = 'canaries = ["ferry"]\n[[sources]]\nkind = "jsonl"\npath = "rows.jsonl"\n'
    recipe += '[lexical]\nengine = "tantivy"\n'
    build(parse(recipe, base=tmp_path, origin="named.toml"), options(tmp_path))
    manifest = manifests.read(publish.resolve(tmp_path / "worlds" / "named"))
    assert [canary.query for canary in manifest.canaries] == ["ferry"]
    assert manifest.world_id == engine.generation.manifest.world_id
    engine.close()


def test_the_recipe_of_a_world_builds_it_again(tmp_path: Path) -> None:
    rows = [one_page(1, f"Page {n} of the log.", f"https://log.example/{n}") for n in range(4)]
    include = tmp_path / "list.txt"
    include.write_text("https://log.example/1\nhttps://log.example/3\n")
    engine = build_rows(tmp_path, rows, '[dense]\nencoder = "tiny"\ninclude = "list.txt"\n')
    manifest = engine.generation.manifest
    assert manifest.dense is not None
    assert manifest.dense.rows == 2
    folder = engine.generation.folder
    again = parse((folder / "recipe.toml").read_text(), base=tmp_path, origin="again.toml")
    engine.close()
    report = build(replace(again, name="again"), options(tmp_path))
    assert report.world_id == manifest.world_id


def test_two_builds_of_one_name_refuse_each_other(tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "pages.jsonl")
    with (
        Workspace.locked(tmp_path / "worlds" / ".build-small"),
        pytest.raises(StageFailedError, match="Another build"),
    ):
        build(small_recipe(dump), options(tmp_path))


def test_a_refusal_leaves_nothing_behind(tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "pages.jsonl")
    recipe = small_recipe(dump)
    bad = [
        replace(recipe, dense=DenseRecipe("word2vec")),
        replace(recipe, dense=DenseRecipe("tiny", {"colour": "red"})),
        replace(recipe, sources=(SourceRecipe("pdf", str(dump)),)),
    ]
    for one in bad:
        with pytest.raises((WorldError, BadRecipeError)):
            build(one, options(tmp_path))
        assert list((tmp_path / "worlds").iterdir()) == []


def test_missing_weights_are_refused_before_anything_is_read(tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "pages.jsonl")
    missing = DenseRecipe("flag", {"model": str(tmp_path / "no-model")})
    with pytest.raises((MissingPartError, WorldError)) as caught:
        build(replace(small_recipe(dump), dense=missing), options(tmp_path))
    assert caught.value.hint
    assert list((tmp_path / "worlds").iterdir()) == []


def test_bad_field_weights_never_publish(tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "pages.jsonl")
    lexical = LexicalRecipe(engine="tantivy", field_weights={"footer": 1.0})
    with pytest.raises(WorldError, match="'footer'"):
        build(replace(small_recipe(dump), lexical=lexical), options(tmp_path))
    assert not (tmp_path / "worlds" / "small").exists()


def test_an_empty_world_can_be_wanted(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_bytes(b"")
    recipe = replace(
        small_recipe(tmp_path / "empty.jsonl"),
        sources=(SourceRecipe("jsonl", str(tmp_path / "empty.jsonl")),),
    )
    with pytest.raises(EmptyWorldError, match="empty file"):
        build(recipe, options(tmp_path))
    report = build(recipe, replace(options(tmp_path), allow_empty=True))
    assert report.counts["pages"] == 0
    generation = Generation.open(publish.resolve(tmp_path / "worlds" / "small"))
    assert Engine(generation).search(SearchCall("anything")).outcome is Outcome.EMPTY
    generation.close()


def warc(name: str, shared: Path, tmp_path: Path) -> Engine:
    path = shared / "cases" / "inputs" / name
    recipe = Recipe(
        "case", (SourceRecipe("warc", str(path)),), lexical=LexicalRecipe(engine="tantivy")
    )
    build(recipe, options(tmp_path))
    return Engine(Generation.open(publish.resolve(tmp_path / "worlds" / "case")))


@pytest.mark.shared
def test_a_redirect_loop_is_no_page(shared_dir: Path, tmp_path: Path) -> None:
    engine = warc("redirect-loop-slash.warc", shared_dir, tmp_path)
    folder = engine.generation.folder
    report = json.loads(publish.report_path(folder).read_text())
    assert report["notes"] == {"redirect loop": 2}
    assert engine.generation.manifest.counts.pages == 2
    pages = [page.key for page in engine.generation.pages.pages()]
    for key in pages:
        assert engine.fetch(FetchCall(key)).outcome is Outcome.OK
    engine.close()


@pytest.mark.shared
def test_unchanged_captures_are_one_version(shared_dir: Path, tmp_path: Path) -> None:
    engine = warc("revisit-chain-28.warc.gz", shared_dir, tmp_path)
    counts = engine.generation.manifest.counts
    assert (counts.pages, counts.versions) == (1, 1)
    engine.close()


@pytest.mark.shared
def test_hosts_that_look_alike_are_two_pages(shared_dir: Path, tmp_path: Path) -> None:
    engine = warc("www-www2.warc", shared_dir, tmp_path)
    assert engine.generation.manifest.counts.pages == 2
    engine.close()


@pytest.mark.shared
def test_the_dirty_dump_keeps_every_good_row(shared_dir: Path, tmp_path: Path) -> None:
    path = shared_dir / "cases" / "inputs" / "corpus-dirty.jsonl"
    recipe = replace(small_recipe(path), sources=(SourceRecipe("jsonl", str(path)),))
    report = build(recipe, options(tmp_path))
    assert report.counts["pages"] == 6
    assert sum(report.losses.values()) == 6
    assert report.losses["duplicate url"] == 1
    assert {(loss.origin, loss.offset) for loss in report.listed} == {
        ("corpus-dirty.jsonl", line) for line in (2, 3, 4, 8, 9, 10)
    }
    assert report.exit_code == 3


@pytest.mark.shared
def test_ties_come_in_page_order(shared_dir: Path, tmp_path: Path) -> None:
    path = shared_dir / "cases" / "inputs" / "corpus-ties.jsonl"
    recipe = replace(small_recipe(path), sources=(SourceRecipe("jsonl", str(path)),))
    build(recipe, options(tmp_path))
    engine = Engine(Generation.open(publish.resolve(tmp_path / "worlds" / "small")))
    title = next(iter(engine.generation.pages.pages())).versions[0].text.split(".")[0]
    ids = [hit.meta.page_id for hit in engine.search(SearchCall(title)).hits]
    assert len(ids) == 10
    assert ids == sorted(ids)
    engine.close()


@pytest.mark.shared
@pytest.mark.slow
def test_every_real_archive_becomes_one_world(shared_dir: Path, tmp_path: Path) -> None:
    source = tmp_path / "archives"
    shutil.copytree(shared_dir / "data" / "webarchive", source)
    usable = recognise([str(source)], unverified=True)
    ids = []
    for workers in (1, 2):
        recipe = Recipe(f"real{workers}", usable, lexical=LexicalRecipe(engine="tantivy"))
        report = build(recipe, options(tmp_path, workers=workers))
        assert all(stage.balanced for stage in report.stages)
        ids.append(report.world_id)
    assert ids[0] == ids[1]
    assert report.counts["pages"] >= 60
