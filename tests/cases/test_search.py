"""Lexical and dense search: RB-029 to RB-040."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.cases.worlds import Built, Served, built
from tests.support import RunningServer, command, running_server
from world_core.encoders.loading import load
from world_core.encoders.onnx_minilm import MODEL, TOKENIZER
from world_core.encoders.weights import ModelFile

pytestmark = pytest.mark.shared

FERRIES = {f"https://pages.example/{name}" for name in ("a", "en", "g")}


def test_rb_029_no_character_of_a_query_has_a_meaning(inputs: Path, served: Served) -> None:
    lines = [line for line in (inputs / "queries-special.txt").read_text().splitlines() if line]
    assert len(lines) == 35
    for line in lines:
        found = served.links("dumps", line, mode="lexical", count=3)
        first = served.fetch("dumps", found[0])
        assert "ferry" in f"{first['title']} {first['text']}".lower(), line
        hybrid = served.ask("/w/dumps/search", {"q": line})
        assert hybrid.status == 200, line
        assert set(served.links("dumps", line)) & FERRIES, line


@pytest.mark.parametrize("world", ["dumps", "two-docs"])
def test_rb_030_long_queries_are_answered_or_refused(world: str, served: Served) -> None:
    words = " ".join(f"word{number}" for number in range(5000))
    assert served.ask(f"/w/{world}/search", {"q": words}).status == 200
    found = served.links(world, f"ferry Norrvik {words}", mode="lexical")
    assert found[0] in {"https://pages.example/en", "https://pages.example/one"}
    for size, status in ((100_001, 400), (1_000_000, 400), (1 << 20, 413)):
        for path, name in (("search", "q"), ("v1/search", "query")):
            answer = served.ask(f"/w/{world}/{path}", {name: "a" * size})
            assert answer.status == status, (path, size)
            body = answer.json()
            assert isinstance(body, dict)
            assert (name if status == 400 else "larger than 1048576 bytes") in body["message"]


def test_rb_031_words_without_spaces_are_found(inputs: Path, served: Served) -> None:
    rows = [json.loads(line) for line in (inputs / "queries-cjk.jsonl").read_text().splitlines()]
    assert len(rows) == 5
    for row in rows:
        body = {"query": row["q"], "mode": "lexical", "explain": True}
        answer = served.ask("/w/dumps/v1/search", body).json()
        assert isinstance(answer, dict)
        first = answer["hits"][0]
        assert first["url"] == row["first"]
        assert first["score"] > 0
        assert first["parts"]["lexical"] > 0


def test_rb_032_no_match_is_an_empty_list(served: Served) -> None:
    body = {"query": "zebra quantum", "mode": "lexical"}
    answer = served.ask("/w/two-docs/v1/search", body)
    assert answer.status == 200
    assert answer.json() == {"outcome": "empty", "query": "zebra quantum", "hits": []}


@pytest.mark.parametrize("mode", ["dense", "hybrid"])
def test_rb_034_fewer_pages_than_asked_for(mode: str, served: Served) -> None:
    assert len(served.links("two-docs", "ferry", mode=mode, count=5)) == 2
    assert len(set(served.links("two-docs", "ferry", mode=mode, count=100))) == 2
    assert served.links("two-docs", "ferry", mode=mode, count=5, offset=2) == []
    assert served.links("empty", "ferry", mode=mode, count=5) == []


def test_rb_036_a_damaged_world_is_refused_and_the_others_are_served(served: Served) -> None:
    log = served.server.log.read_text()
    info = served.ask("/info").json()
    assert isinstance(info, dict)
    assert [world["name"] for world in info["worlds"]] == list(served.builds)
    assert len(served.broken) > 20
    for name, file in served.broken.items():
        lines = [line for line in log.splitlines() if f"/{name} is not served" in line]
        assert len(lines) == 1, name
        assert file in lines[0], lines
        assert served.ask(f"/w/{name}/search", {"q": "ferry"}).status == 503
    assert served.links("two-docs", "ferry Norrvik")[0] == "https://pages.example/one"


def test_rb_039_equal_scores_come_in_one_order(served: Served) -> None:
    queries = ["old lighthouse Skarholm", "Same text", "nautical miles"]
    for query in queries:
        for mode in ("hybrid", "lexical", "dense"):
            body = {"query": query, "mode": mode, "count": 10}
            answers = {served.ask("/w/ties/v1/search", body).body for _ in range(10)}
            assert len(answers) == 1
            hits = json.loads(answers.pop())["hits"]
            assert len(hits) == 10
            assert len({hit["score"] for hit in hits}) == 1
            ids = [hit["page_id"] for hit in hits]
            assert ids == sorted(ids)


def test_rb_039_pages_of_results_join_without_seam(served: Served) -> None:
    whole = served.links("ties", "old lighthouse", count=24)
    parts = [
        link
        for offset in (0, 7, 14, 21)
        for link in served.links("ties", "old lighthouse", count=7, offset=offset)
    ]
    assert parts == whole
    assert len(set(whole)) == 24


@pytest.mark.slow
def test_rb_035_and_039_processes_and_restarts_agree(
    builds: dict[str, Built], tmp_path: Path
) -> None:
    body = {"query": "old lighthouse Skarholm", "count": 10}
    answers = set()
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        arguments = ("serve", str(builds["ties"].folder), "--workers", "2")
        with (
            running_server(folder, *arguments) as server,
            ThreadPoolExecutor(8) as pool,
        ):
            asked = [pool.submit(server.ask, "/v1/search", body) for _ in range(50)]
            answers |= {one.result().body for one in asked}
    assert len(answers) == 1


@pytest.fixture(scope="module")
def java(inputs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Serve two dumps from Lucene, in four processes."""
    folder = tmp_path_factory.mktemp("java")
    dumps = [inputs / "corpus-dirty.jsonl", inputs / "corpus-cjk.jsonl"]
    made = built(folder, "java", dumps, "--lexical", "lucene")
    assert made.code == 3, made.errors
    with running_server(folder, "serve", str(made.folder), "--workers", "4") as server:
        yield server


@pytest.mark.slow
@pytest.mark.java
def test_rb_033_java_serves_in_several_processes(inputs: Path, java: RunningServer) -> None:
    lines = [line for line in (inputs / "queries-special.txt").read_text().splitlines() if line]
    modes = ("lexical", "dense", "hybrid")
    wanted = [{"query": line, "mode": mode} for line in lines for mode in modes]
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(java.ask, "/v1/search", body) for body in wanted * 2]
        answers = [one.result() for one in asked]
    assert len(answers) >= 200
    assert {answer.status for answer in answers} == {200}
    half = len(wanted)
    assert [one.body for one in answers[:half]] == [one.body for one in answers[half:]]
    for body, answer in zip(wanted, answers, strict=False):
        if body["mode"] != "dense":
            assert json.loads(answer.body)["hits"][0]["url"] in FERRIES, body
    assert "Traceback" not in java.log.read_text()


@pytest.mark.slow
@pytest.mark.java
def test_rb_030_to_032_hold_with_java(inputs: Path, java: RunningServer) -> None:
    def links(query: str) -> list[str]:
        answer = java.ask("/v1/search", {"query": query, "mode": "lexical"})
        assert answer.status == 200, answer.body
        return [hit["url"] for hit in json.loads(answer.body)["hits"]]

    for line in (inputs / "queries-cjk.jsonl").read_text().splitlines():
        row = json.loads(line)
        assert links(row["q"])[0] == row["first"]
    assert links("zebra quantum") == []
    words = " ".join(f"word{number}" for number in range(5000))
    assert links(words) == []
    assert links(f"Norrvik ferry {words}")[0] == "https://pages.example/en"


@pytest.mark.slow
def test_rb_037_a_removed_page_shifts_no_other(tmp_path: Path) -> None:
    dump = tmp_path / "ten.jsonl"
    texts = [
        f"Lamp {number} of the pier burns {number * 7 + 3} litres of oil in the month of {month}."
        for number, month in enumerate(
            ("May", "June", "July", "March", "April", "August", "October", "winter", "snow", "rain")
        )
    ]
    rows = [
        json.dumps(
            {"url": f"https://lamps.example/{number}", "title": f"Lamp {number}", "text": text}
        )
        for number, text in enumerate(texts)
    ]
    dump.write_text("\n".join(rows))
    first = built(tmp_path, "lamps", [dump])
    with running_server(tmp_path, "serve", str(first.folder), "--watch-s", "0.05") as server:
        dump.write_text("\n".join(rows[:1] + rows[2:]))
        second = built(tmp_path, "lamps", [dump])
        assert second.world_id != first.world_id
        assert len([path for path in first.folder.iterdir() if path.is_dir()]) == 2
        _until_switched(server.ask, second.world_id)
        for number in (0, *range(2, 10)):
            for mode in ("dense", "hybrid", "lexical"):
                body = {"query": texts[number], "mode": mode, "count": 1}
                answer = server.ask("/v1/search", body).json()
                assert isinstance(answer, dict)
                assert answer["hits"][0]["url"] == f"https://lamps.example/{number}"
        gone = server.ask("/v1/fetch", {"url": "https://lamps.example/1"}).json()
        assert isinstance(gone, dict)
        assert gone["outcome"] == "not_in_world"


def _until_switched(ask: object, world_id: str) -> None:
    """Ask until the new version is served; the test's own time limit ends a vain wait."""
    assert callable(ask)
    while ask("/info").json()["worlds"][0]["world_id"] != world_id:
        pass


@pytest.mark.slow
def test_rb_038_changed_weights_are_refused(inputs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    shutil.copy(ModelFile.of_package(*MODEL, "").path, folder / "model.onnx")
    shutil.copy(ModelFile.of_package(*TOKENIZER, "").path, folder / "tokenizer.json")
    dump = inputs / "corpus-two-docs.jsonl"
    recipe = tmp_path / "w.toml"
    recipe.write_text(
        f'name = "w"\n[[sources]]\nkind = "jsonl"\npath = "{dump}"\n[lexical]\nengine = "tantivy"\n'
        f'[dense]\nencoder = "onnx-minilm"\narguments = {{ folder = "{folder}" }}\n'
    )
    done = subprocess.run(
        [command("corpus-builder"), "build", "--recipe", str(recipe), "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    content = bytearray((folder / "model.onnx").read_bytes())
    content[len(content) // 2] ^= 1
    (folder / "model.onnx").write_bytes(content)
    assert load("onnx-minilm", {"folder": str(folder)}).dim == 384  # it would load and run
    refused = subprocess.run(
        [command("world-server"), "serve", str(tmp_path / "w"), "--port", "0"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert refused.returncode == 2
    assert "the world was built with" in refused.stderr
    assert "Traceback" not in refused.stderr
