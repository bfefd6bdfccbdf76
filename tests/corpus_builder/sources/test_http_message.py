from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus_builder.sources.http_message import charset_of, parse_headers, parse_message
from tests.corpus_builder.archives import http


def test_status_headers_and_body() -> None:
    message = parse_message(http(b"hello", status="404 Not Found"))
    assert message is not None
    assert message.status == 404
    assert message.mime == "text/html"
    assert message.charset == "utf-8"
    assert message.length == 5
    assert message.body == b"hello"


@pytest.mark.parametrize(
    "line",
    ["HTTP/1.1 200 OK", "HTTP/1.0 200", "HTTP/1.1 200 ", "HTTP/2 200", "HTTP/1.1  200 OK"],
)
@pytest.mark.parametrize("newline", ["\r\n", "\n"])
def test_status_lines(line: str, newline: str) -> None:
    block = newline.join([line, "A: 1", "", "body"]).encode()
    message = parse_message(block)
    assert message is not None
    assert (message.status, message.headers, message.body) == (200, {"a": "1"}, b"body")


@pytest.mark.parametrize(
    "block", [b"", b"<html>", b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n"]
)
def test_what_is_no_response(block: bytes) -> None:
    assert parse_message(block) is None


def test_a_head_without_body() -> None:
    message = parse_message(b"HTTP/1.1 301 Moved\r\nLocation: /x")
    assert message is not None
    assert (message.headers["location"], message.body) == ("/x", b"")


def test_mixed_line_ends_end_the_head() -> None:
    message = parse_message(b"HTTP/1.1 200 OK\nA: 1\r\n\nbody\r\n\r\nmore")
    assert message is not None
    assert message.body == b"body\r\n\r\nmore"


def test_blank_lines_before_the_status_line() -> None:
    message = parse_message(b"\r\nHTTP/1.1 200 OK\r\n\r\nbody")
    assert message is not None
    assert message.body == b"body"


def test_the_first_value_of_a_repeated_header_wins() -> None:
    assert parse_headers([b"Link: <a>", b"link: <b>", b"LINK: <c>"]) == {"link": "<a>"}


def test_folded_headers_are_joined_and_broken_lines_ignored() -> None:
    lines = [b" orphan", b"A: one", b"\ttwo", b"no colon here", b" three", b"B:", b""]
    assert parse_headers(lines) == {"a": "one two", "b": ""}


def test_header_bytes_outside_ascii() -> None:
    assert parse_headers(["A: Żółw".encode(), b"B: caf\xe9"]) == {"a": "Żółw", "b": "café"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("text/html; charset=UTF-8", "utf-8"),
        ('text/html; charset="iso-8859-1"', "iso-8859-1"),
        ("text/html; Charset = 'EUC-JP'", "euc-jp"),
        ("text/html;charset=utf-8;x=1", "utf-8"),
        ("text/html", ""),
        ("text/html; charset=", ""),
        ("", ""),
    ],
)
def test_charset_of(value: str, expected: str) -> None:
    assert charset_of(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [("12", 12), (" 12 ", 12), ("0", 0), ("-1", None), ("1e3", None), ("", None), ("9" * 30, None)],
)
def test_announced_lengths(value: str, expected: int | None) -> None:
    message = parse_message(f"HTTP/1.1 200 OK\r\nContent-Length: {value}\r\n\r\n".encode())
    assert message is not None
    assert message.length == expected


@given(st.binary(max_size=400))
def test_no_bytes_raise(data: bytes) -> None:
    message = parse_message(b"HTTP/1.1 200 OK\r\n" + data)
    assert message is not None
    assert isinstance(message.mime + message.charset, str)
    parse_message(data)
