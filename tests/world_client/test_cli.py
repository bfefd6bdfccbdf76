"""The command line prints answers and turns every failure into a sentence."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.world_client.test_sync import url as _url
from world_client.cli import main

url = _url


def test_search_prints_the_answer(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--url", url, "search", "lighthouse"]) == 0
    assert json.loads(capsys.readouterr().out)["query"] == "lighthouse"


def test_fetch_prints_the_answer(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--url", url, "fetch", "https://x.example/"]) == 0
    assert json.loads(capsys.readouterr().out)["outcome"] == "not_in_world"


def test_no_server_is_one_sentence(
    unused_tcp_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--url", f"http://127.0.0.1:{unused_tcp_port}", "search", "q"]) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("world-client: connection_failed:")
    assert shown.count("\n") == 1


@pytest.fixture(autouse=True)
def _restore(capsys: pytest.CaptureFixture[str]) -> Iterator[None]:
    yield
    capsys.readouterr()


def test_wrong_usage_exits_with_two(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["dance"])
    assert caught.value.code == 2
