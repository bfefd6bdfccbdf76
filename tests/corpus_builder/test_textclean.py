from __future__ import annotations

import os
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus_builder.textclean import clean, header_text, one_line, path_text, tidy


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\x00b", "ab"),
        ("a\x07b\x1b[31mc", "ab[31mc"),
        ("a\tb\nc", "a\tb\nc"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("a\u2028b\u2029c\x0bd\x0ce\x85f", "a\nb\nc\nd\ne\nf"),
        ("half \ud83d pair", "half \ufffd pair"),
        ("\udc00\ud800", "\ufffd\ufffd"),
        ("\ufeffmark", "mark"),
        ("a\ufffeb\uffffc\U0001fffed", "abcd"),
        ("a\x7fb\x80c\x9fd", "abcd"),
        ("e\u0301 stays decomposed", "e\u0301 stays decomposed"),
        ("\u200b\u200d stay", "\u200b\u200d stay"),
        ("\U0001f600", "\U0001f600"),
        ("", ""),
    ],
)
def test_clean(text: str, expected: str) -> None:
    assert clean(text) == expected


def test_tidy() -> None:
    assert tidy("\n\n a  \t\nb\n\n\n\n  \nc\x00\n\n") == " a\nb\n\nc"


def test_one_line() -> None:
    assert one_line("  a\n\tb\u00a0 c\x00\r\nd ") == "a b c d"


@pytest.mark.parametrize(
    ("value", "expected"),
    [(b" a ", "a"), ("Ż".encode(), "Ż"), (b"caf\xe9", "café"), (b"a\x00\r\nb", "a b"), (b"", "")],
)
def test_header_text(value: bytes, expected: str) -> None:
    assert header_text(value) == expected


@given(st.text(alphabet=st.characters()))
def test_clean_text_can_be_stored_and_stays_as_it_is(text: str) -> None:
    cleaned = clean(text)
    cleaned.encode("utf-8")
    assert "\x00" not in cleaned
    assert all(char in "\t\n" or unicodedata.category(char) not in ("Cc", "Cs") for char in cleaned)
    assert clean(cleaned) == cleaned
    assert tidy(tidy(text)) == tidy(text)
    assert one_line(one_line(text)) == one_line(text)


def test_a_path_is_text_whatever_its_bytes() -> None:
    assert path_text("d/\xe9.html") == "d/\xe9.html"
    assert path_text(os.fsdecode(b"d/caf\xe9.html")) == "d/caf\\xe9.html"
