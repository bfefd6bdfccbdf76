from __future__ import annotations

import io
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.world_server.conftest import Starter
from world_server import logs
from world_server.logs import SafeFormatter, safe


@pytest.fixture
def written() -> io.StringIO:
    """Collect what the server's loggers write, at every level."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(SafeFormatter("%(levelname)s %(message)s"))
    logger = logging.getLogger("world_server")
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    return stream


@pytest.mark.parametrize(
    "text",
    [
        "GET /search?q=x&api_key=CANARY HTTP/1.1",
        "GET /search?apiKey=CANARY&q=x",
        "Authorization: Bearer CANARY",
        "authorization: bearer CANARY, next",
        "X-API-KEY: CANARY",
        "{'x-api-key': 'CANARY'}",
        "https://user:CANARY@host.example/path",
        "token=CANARY;",
        "password=CANARY",
    ],
)
def test_secrets_are_cut(text: str) -> None:
    assert "CANARY" not in safe(text)


def test_what_is_no_secret_stays() -> None:
    text = "world atlas: 'passages.bin' differs; https://a.example/x?id=3#a@b"
    assert safe(text) == text


def test_a_stranger_cannot_forge_a_line(written: io.StringIO) -> None:
    logging.getLogger("world_server.test").error("url %s", "x\nERROR forged\r\x1b[31m\u2028y")
    assert written.getvalue() == "ERROR url x\\nERROR forged\\x0d\\x1b[31m\\x2028y\n"


def test_a_traceback_keeps_its_lines_and_loses_secrets(written: io.StringIO) -> None:
    try:
        raise ValueError("api_key=CANARY \x1b[0m")
    except ValueError:
        logging.getLogger("world_server.test").exception("failed")
    text = written.getvalue()
    assert text.startswith("ERROR failed\nTraceback")
    assert "CANARY" not in text
    assert "\x1b" not in text


@given(st.text())
def test_no_control_character_passes(text: str) -> None:
    assert not any(ord(one) < 32 and one != "\n" for one in safe(text))


async def test_keys_and_queries_are_not_logged_even_at_debug(
    start: Starter, written: io.StringIO
) -> None:
    running = start(keys=("CANARY-KEY",))
    headers = {"X-API-KEY": "CANARY-KEY", "Authorization": "Bearer CANARY-BEARER"}
    url = "/search?q=CANARY-QUERY&api_key=CANARY-PARAMETER"
    replies = [
        await running.client.get(url, headers=headers),
        await running.client.get(url),
        await running.client.post("/v1/search", content=b'{"query": 3}', headers=headers),
        await running.client.get("/metrics", headers=headers),
    ]
    assert [reply.status_code for reply in replies] == [200, 403, 400, 200]
    assert "serper_search ok" in written.getvalue()
    assert "CANARY" not in written.getvalue()
    for reply in replies[1:]:
        assert "CANARY" not in reply.text


def test_configure_sends_ours_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("warning")
    logging.getLogger("world_server.test").warning("seen")
    logging.getLogger("world_server.test").info("unseen")
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "WARNING world_server.test seen" in shown.err
    assert "unseen" not in shown.err
