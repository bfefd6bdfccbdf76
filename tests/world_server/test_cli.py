from __future__ import annotations

import dataclasses
import json
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from world_core.errors import MissingPartError
from world_server import cli, demo, installing
from world_server.settings import Settings, table


def run(*arguments: str) -> int:
    try:
        return cli.main(arguments)
    except SystemExit as error:
        return int(error.code or 0)


def version_of(world: Path) -> Path:
    return world / (world / "current").read_text("utf-8").strip()


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for row in table():
        monkeypatch.delenv(row.environment, raising=False)


def test_get_answers_without_a_network(
    tiny_world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("get", str(tiny_world), "/search?q=ferry&num=1") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["organic"][0]["link"] == "https://ferry.example/timetable"
    assert run("get", str(tiny_world), "https://harbor.example/lighthouse") == 0
    assert capsys.readouterr().out.startswith("Title: Lighthouse of Alder Point\n\nURL Source:")
    assert run("get", str(tiny_world), "/v1/search", "--data", '{"query": "keeper"}') == 0
    assert json.loads(capsys.readouterr().out)["outcome"] == "ok"
    assert run("get", str(tiny_world), "/nothing") == 1


def test_check_says_that_a_world_is_good(
    tiny_world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("check", str(tiny_world)) == 0
    said = capsys.readouterr().out
    assert said.startswith("tiny@1 ")
    assert "3 pages, 3 versions, 3 passages" in said
    assert said.rstrip().endswith("good")


def test_check_names_every_damaged_file(
    tiny_world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(version_of(tiny_world), copy)
    for name in ("passages.bin", "pages.sqlite"):
        data = bytearray((copy / name).read_bytes())
        data[len(data) // 2] ^= 1
        (copy / name).chmod(0o644)
        (copy / name).write_bytes(data)
    assert run("check", str(copy)) == 2
    said = capsys.readouterr().err
    assert "passages.bin" in said
    assert "pages.sqlite" in said
    assert "2 damaged files" in said


@pytest.mark.parametrize("command", ["serve", "check", "get"])
def test_a_folder_that_is_no_world_is_exit_2_and_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    more = ["/info"] if command == "get" else []
    flags = ["--port", "0"] if command == "serve" else []
    assert run(command, str(tmp_path / "nowhere"), *more, *flags) == 2
    said = capsys.readouterr().err
    assert "nowhere is not a world" in said
    assert "corpus-builder build" in said
    assert "Traceback" not in said


def test_serve_refuses_a_damaged_world_by_the_files_name(
    tiny_world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(version_of(tiny_world), copy)
    (copy / "passages.bin").chmod(0o644)
    (copy / "passages.bin").write_bytes(b"")
    assert run("serve", str(copy), "--port", "0") == 2
    assert "'passages.bin'" in capsys.readouterr().err


def test_serve_without_a_world(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("serve", "--port", "0") == 2
    assert "No world to serve" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["serve", "demo"])
def test_a_port_in_use_comes_before_everything_else(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr(demo, "ensure", lambda folder: pytest.fail("built"))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        words = [command, "--port", port] if command == "demo" else [command, "x", "--port", port]
        assert run(*words) == 2
    said = capsys.readouterr().err
    assert f"port {port}" in said
    assert "--port" in said
    assert "not a world" not in said


def test_a_missing_part_is_exit_2_with_the_command_that_brings_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def opener_for(settings: Settings, *, verify: bool) -> object:
        def opener(folder: Path) -> object:
            raise MissingPartError("The jar is missing.", hint="Run: world-server setup lucene")

        return opener

    monkeypatch.setattr(cli, "opener_for", opener_for)
    assert run("serve", "anything", "--port", "0") == 2
    assert "Run: world-server setup lucene" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["serve", "x", "--host", "192.0.2.1"], "no key is set"),
        (["serve", "x", "--workers", "0"], "workers is 0"),
        (["serve", "x", "--config", "gone.toml"], "gone.toml cannot be read"),
        (["serve", "x", "--log-level", "loud"], "log_level"),
        (["serve", "x", "--port", "many"], "invalid int value"),
        (["setup", "everything"], "invalid choice"),
        ([], "required"),
    ],
)
def test_wrong_usage_is_exit_2(
    capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert run(*words) == 2
    assert said in capsys.readouterr().err


def test_settings_are_shown_with_their_source_resolved(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = tmp_path / "w.toml"
    config.write_text('queue_limit = 7\nkeys = ["hush"]\n')
    monkeypatch.setenv("WORLD_PORT", "9001")
    assert run("settings", "--config", str(config), "--wait-s", "3", "--no-verify", "w1", "w2") == 0
    said = capsys.readouterr().out
    for line in (
        "port = 9001",
        "queue_limit = 7",
        "wait_s = 3.0",
        "verify = False",
        "worlds = w1,w2",
    ):
        assert line in said
    assert "keys = (set)" in said
    assert "hush" not in said
    for row in table():
        assert f"{row.name} = " in said


def test_every_setting_has_its_flag_or_is_a_secret(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("serve", "--help") == 0
    said = capsys.readouterr().out
    for row in table():
        wanted = row.flag.startswith("--")
        flag = f"--{row.name.replace('_', '-')} "
        assert (flag in said.replace("]", " ").replace(",", " ")) is wanted, row.name


def test_setup_runs_the_part(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installing, "PARTS", {"lucene": lambda: "Lucene is ready: x.jar"})
    assert run("setup", "lucene") == 0
    assert capsys.readouterr().out == "Lucene is ready: x.jar\n"


def test_demo_builds_what_is_missing_and_serves_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    served: list[Settings] = []
    monkeypatch.setattr(demo, "ensure", lambda folder: folder.name == "mine")

    def serve_with(settings: Settings) -> int:
        served.append(settings)
        return 0

    monkeypatch.setattr(cli, "_serve_with", serve_with)
    assert run("demo", "--folder", str(tmp_path / "mine"), "--port", "0") == 0
    assert "Built the demo world" in capsys.readouterr().out
    assert served == [dataclasses.replace(Settings(), worlds=(str(tmp_path / "mine"),), port=0)]
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert run("demo", "--port", "0") == 0
    assert served[1].worlds == (str(tmp_path / "searchworld" / "worlds" / "demo"),)


def test_the_command_loads_no_index_engine_and_no_model() -> None:
    code = (
        "import sys, world_server.cli; "
        "heavy = {'faiss', 'jpype', 'onnxruntime', 'torch', 'tantivy', 'tokenizers'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert shown.stdout.strip() == "[]"
