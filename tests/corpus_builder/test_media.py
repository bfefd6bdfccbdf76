from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus_builder.media import Media, media_of

HTML = b"<!doctype html><html><body>x</body></html>"


@pytest.mark.parametrize(
    ("mime", "body", "expected"),
    [
        ("text/html", HTML, Media.HTML),
        ("text/html", b"just text", Media.HTML),
        ("text/html", b"", Media.HTML),
        ("application/xhtml+xml", HTML, Media.HTML),
        ("text/xml", b"<?xml version='1.0'?><rss/>", Media.HTML),
        ("application/rss+xml", b"<rss/>", Media.HTML),
        ("image/svg+xml", b"<svg/>", Media.OTHER),
        ("text/plain", b"words", Media.TEXT),
        ("text/plain", HTML, Media.TEXT),
        ("text/markdown", b"# words", Media.TEXT),
        ("text/csv", b"a,b", Media.TEXT),
        ("text/x-unknown", HTML, Media.HTML),
        ("application/json", b"{}", Media.TEXT),
        ("application/ld+json", b"{}", Media.TEXT),
        ("text/css", b"p {}", Media.OTHER),
        ("text/javascript", b"alert(1)", Media.OTHER),
        ("application/javascript", b"alert(1)", Media.OTHER),
        ("application/x-javascript", b"alert(1)", Media.OTHER),
        ("image/png", b"\x89PNG\r\n", Media.OTHER),
        ("image/png", b"no png", Media.OTHER),
        ("font/woff2", b"wOF2", Media.OTHER),
        ("application/zip", b"PK\x03\x04", Media.OTHER),
        ("video/mp4", b"", Media.OTHER),
        ("", HTML, Media.HTML),
        ("", b"\xef\xbb\xbf\r\n <HTML>", Media.HTML),
        ("", b"<!-- c --> <!-- d --><head>", Media.HTML),
        ("application/octet-stream", HTML, Media.HTML),
        ("application/octet-stream", b"words", Media.TEXT),
        ("", b"words < more words", Media.TEXT),
    ],
)
def test_labels_and_first_bytes(mime: str, body: bytes, expected: Media) -> None:
    assert media_of(mime, body) is expected


@pytest.mark.parametrize("mime", ["text/html", "text/plain", "application/pdf", "", "image/png"])
@pytest.mark.parametrize("body", [b"%PDF-1.4\n", b"\xef\xbb\xbf%PDF-1.7", b"\r\n %PDF-1.4"])
def test_a_pdf_is_one_whatever_its_label(mime: str, body: bytes) -> None:
    assert media_of(mime, body) is Media.PDF


def test_a_pdf_by_its_label() -> None:
    assert media_of("application/pdf", b"") is Media.PDF


@pytest.mark.parametrize("mime", ["text/html", "text/plain", ""])
@pytest.mark.parametrize(
    "body",
    [
        b"\x89PNG\r\n\x1a\n", b"GIF89a", b"\xff\xd8\xff\xe0", b"PK\x03\x04", b"\x1f\x8b\x08\x00",
        b"\x7fELF", b"OggS", bytes(range(256)) * 4 + bytes(500), bytes(100),
    ],
)  # fmt: skip
def test_binary_bodies_are_no_text_whatever_their_label(mime: str, body: bytes) -> None:
    assert media_of(mime, body) is Media.OTHER


@pytest.mark.parametrize("name", ["utf-16", "utf-16-le", "utf-16-be"])
def test_text_in_two_byte_units_is_text(name: str) -> None:
    body = "<html><body>Voilà une page encodée en UTF-16.</body></html>".encode(name)
    assert media_of("text/html", body) is Media.HTML


def test_a_stray_zero_byte_makes_no_binary() -> None:
    assert media_of("text/html", b"<html><title>Nul\x00 page</title>" + b"word " * 20) is Media.HTML


@given(st.text(max_size=30), st.binary(max_size=300))
def test_nothing_raises(mime: str, body: bytes) -> None:
    assert isinstance(media_of(mime, body), Media)
