"""The commands of the README, in their order and as they stand there, on a small crawl."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.corpus_builder.archives import http, packed, warc
from tests.journeys.processes import current
from tests.support import RunningServer, running_server

SITE = "https://pages.example"
ADDRESS = "http://127.0.0.1:8000"
PAGES = {
    "ferry": "The ferry between the two harbours of Norrvik leaves at 07:10 on working days.",
    "lighthouse": "The old lighthouse at Skarholm was built in 1874 and automated in 1969.",
    "library": "The reading room of the town library holds 48,200 volumes.",
}


def block(heading: str) -> list[str]:
    """Return the lines of the first code block below a heading of the README."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(rf"## {heading}\n.*?```(?:python)?\n(.*?)```", text, re.DOTALL)
    assert found is not None, heading
    return found[1].splitlines()


def write_crawl(path: Path) -> None:
    """Write a crawl that met each of three pages twice."""
    records = []
    for day, (name, text) in enumerate([*PAGES.items(), *PAGES.items()], start=1):
        html = (
            f"<!doctype html><html lang='en'><head><title>The {name}</title></head><body>"
            f"<main><article><h1>The {name}</h1><p>{text} {text}</p>"
            f"<p><a href='/ferry'>To the ferry</a></p></article></main></body></html>"
        )
        date = f"2026-02-{day:02d}T08:00:00Z"
        records.append(warc(http(html.encode()), uri=f"{SITE}/{name}", date=date))
    path.write_bytes(packed(*records))


def run(line: str, folder: Path) -> str:
    """Run a command line in a folder and return what it printed."""
    ran = subprocess.run(
        shlex.split(line),
        cwd=folder,
        env={**os.environ, "HOME": str(folder)},  # where the vector cache lies
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert ran.returncode == 0, (line, ran.stdout, ran.stderr)
    return ran.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder that looks like a clone with its environment and a crawl in it."""
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
    write_crawl(tmp_path / "crawl.warc.gz")
    return tmp_path


def ask_as_the_table_says(server: RunningServer) -> None:
    """Ask over the routes of the README's table of clients."""
    found = server.ask("/search", {"q": "who automated the lighthouse"}, {"X-API-KEY": "any"})
    assert found.status == 200
    organic = json.loads(found.body)["organic"]
    assert organic[0]["link"] == f"{SITE}/lighthouse"
    assert "1969" in organic[0]["snippet"]
    page = server.ask(f"/{SITE}/ferry")
    assert page.status == 200
    text = page.body.decode("utf-8")
    assert text.startswith(f"Title: The ferry\n\nURL Source: {SITE}/ferry\n")
    assert PAGES["ferry"] in text


@pytest.mark.parametrize("engine", ["tantivy", pytest.param("lucene", marks=[pytest.mark.java])])
def test_from_a_crawl_to_a_search_answer(folder: Path, engine: str) -> None:
    build, serve = block("Serve your own pages")
    said = run(build.replace("tantivy", engine), folder)
    assert "3 pages" in said
    words = shlex.split(serve)
    assert words[0] == ".venv/bin/world-server"
    # What the builder prints at the end is the README's second line.
    assert serve.split(" ", 1)[1] in said
    with running_server(folder, *words[1:], cwd=folder) as server:
        ask_as_the_table_says(server)
        client = f".venv/bin/world-client --url {server.url}"
        answer = json.loads(run(f"{client} search 'reading room' --count 1", folder))
        assert [hit["url"] for hit in answer["hits"]] == [f"{SITE}/library"]
        example = block("Point an agent at it")
        (folder / "example.py").write_text("\n".join(example).replace(ADDRESS, server.url))
        assert f"{SITE}/" in run(f"{sys.executable} example.py", folder)
        page = json.loads(run(f"{client} fetch {SITE}/library", folder))
        assert page["outcome"] == "ok"
        assert page["links"] == [{"url": f"{SITE}/ferry", "text": "To the ferry"}]


@pytest.mark.slow
def test_a_world_is_handed_on_as_one_file(folder: Path) -> None:
    build, serve = block("Serve your own pages")
    run(build, folder)
    facts = json.loads(run(".venv/bin/corpus-builder inspect worlds/mine --json", folder))
    assert facts["name"] == "mine"
    assert facts["counts"]["pages"] == len(PAGES)
    assert facts["hosts"] == {"pages.example": len(PAGES)}
    shown = run(".venv/bin/corpus-builder inspect worlds/mine", folder)
    assert f"world_id: {facts['world_id']}" in shown
    file = run(".venv/bin/corpus-builder pack worlds/mine .", folder).strip()
    assert file == f"mine-{facts['world_id'][:12]}.tar.zst"
    said = run(f".venv/bin/corpus-builder unpack {file} elsewhere/worlds", folder)
    assert "world-server serve elsewhere/worlds/mine" in said
    one, other = (current(folder / place / "mine") for place in ("worlds", "elsewhere/worlds"))
    for path in one.rglob("*"):
        if path.is_file():
            assert (other / path.relative_to(one)).read_bytes() == path.read_bytes()
    assert run(".venv/bin/world-server check elsewhere/worlds/mine", folder).endswith("good\n")
    words = shlex.split(serve)[1:]
    with running_server(folder, *words, cwd=folder / "elsewhere") as server:
        ask_as_the_table_says(server)


@pytest.mark.slow
def test_the_demo_builds_once_and_serves(tmp_path: Path) -> None:
    world = tmp_path / "worlds" / "demo"
    for turn in range(2):
        with running_server(tmp_path, "demo", "--folder", str(world)) as server:
            assert json.loads(server.ask("/search", {"q": "lighthouse"}).body)["organic"]
            log = server.log.read_text("utf-8")
        assert ("Built the demo world" in log) is (turn == 0)
        assert server.process.returncode == 0
    assert len([path for path in world.iterdir() if path.is_dir()]) == 1
    assert [path.name for path in world.parent.iterdir()] == ["demo"]
