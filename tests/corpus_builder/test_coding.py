from __future__ import annotations

import gzip
import tracemalloc
import zlib

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from corpus_builder.coding import CUT, DAMAGED, LARGE, Body, decode_body

HTML = b"<html><body><p>" + b"The ferry leaves at 07:10. " * 200 + b"</p></body></html>"


def raw_deflate(data: bytes) -> bytes:
    return zlib.compress(data)[2:-4]


CODED = {
    "gzip": gzip.compress(HTML),
    "x-gzip": gzip.compress(HTML),
    "GZIP": gzip.compress(HTML),
    "deflate": zlib.compress(HTML),
    "br": brotli.compress(HTML),
    "zstd": zstandard.ZstdCompressor().compress(HTML),
}


def chunked(data: bytes, size: int = 100, *, last: bool = True, ending: bytes = b"\r\n") -> bytes:
    parts = [data[start : start + size] for start in range(0, len(data), size)]
    body = b"".join(b"%x" % len(part) + ending + part + ending for part in parts)
    return body + (b"0" + ending + ending if last else b"")


@pytest.mark.parametrize("name", CODED)
def test_content_codings(name: str) -> None:
    assert decode_body({"content-encoding": name}, CODED[name]) == Body(HTML)


def test_bare_deflate() -> None:
    assert decode_body({"content-encoding": "deflate"}, raw_deflate(HTML)) == Body(HTML)


def test_two_codings_are_undone_from_the_last() -> None:
    raw = brotli.compress(gzip.compress(HTML))
    assert decode_body({"content-encoding": "gzip, br"}, raw) == Body(HTML)


def test_three_codings_are_refused() -> None:
    body = decode_body({"content-encoding": "gzip, gzip, gzip"}, b"x")
    assert body.flaw == "too many content codings"


@pytest.mark.parametrize("name", ["identity", "none", "utf-8", "", "compress"])
def test_other_names_change_nothing(name: str) -> None:
    assert decode_body({"content-encoding": name}, HTML) == Body(HTML)


@pytest.mark.parametrize("name", CODED)
def test_a_header_kept_next_to_a_decoded_body(name: str) -> None:
    assert decode_body({"content-encoding": name}, HTML) == Body(HTML)


@pytest.mark.parametrize("name", CODED)
def test_an_empty_body(name: str) -> None:
    assert decode_body({"content-encoding": name}, b"") == Body(b"")


@pytest.mark.parametrize("name", CODED)
def test_a_cut_coding_is_no_body(name: str) -> None:
    body = decode_body({"content-encoding": name}, CODED[name][:-12])
    assert body == Body(b"", CUT)


@pytest.mark.parametrize("name", ["gzip", "zstd"])
def test_a_damaged_coding_is_no_body(name: str) -> None:
    checked = zstandard.ZstdCompressor(write_checksum=True).compress(HTML)
    raw = bytearray(checked if name == "zstd" else CODED[name])
    raw[12:40] = b"\xaa" * 28
    assert decode_body({"content-encoding": name}, bytes(raw)).flaw == DAMAGED


def test_several_gzip_members_are_one_body() -> None:
    raw = gzip.compress(HTML[:50]) + gzip.compress(HTML[50:])
    assert decode_body({"content-encoding": "gzip"}, raw) == Body(HTML)


def test_junk_after_a_gzip_body_is_dropped() -> None:
    assert decode_body({"content-encoding": "gzip"}, CODED["gzip"] + b"junk") == Body(HTML)


def zeros(name: str) -> bytes:
    data = bytes(64 * 1024 * 1024)
    if name == "gzip":
        return gzip.compress(data, 6)
    if name == "deflate":
        return zlib.compress(data, 6)
    if name == "br":
        return bytes(brotli.compress(data, quality=1))
    return zstandard.ZstdCompressor(level=1).compress(data)


@pytest.mark.parametrize("name", ["gzip", "deflate", "br", "zstd"])
def test_bombs_stop_at_the_limit_without_unfolding(name: str) -> None:
    raw = zeros(name)
    tracemalloc.start()
    try:
        body = decode_body({"content-encoding": name}, raw)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert body == Body(b"", LARGE)
    assert peak < 40 * 1024 * 1024


def test_a_streamed_zstd_bomb_stops_too() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=20)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    raw = compressor.compress(bytes(64 * 1024 * 1024)) + compressor.flush()
    assert decode_body({"content-encoding": "zstd"}, raw) == Body(b"", LARGE)


def test_the_limit_itself_is_allowed() -> None:
    raw = gzip.compress(b"a" * 1000)
    assert decode_body({"content-encoding": "gzip"}, raw, 1000) == Body(b"a" * 1000)
    assert decode_body({"content-encoding": "gzip"}, raw, 999) == Body(b"", LARGE)
    assert decode_body({}, b"a" * 1000, 1000) == Body(b"a" * 1000)
    assert decode_body({}, b"a" * 1000, 999) == Body(b"", LARGE)


@pytest.mark.parametrize("ending", [b"\r\n", b"\n"])
@pytest.mark.parametrize("size", [1, 7, 100, 100_000])
def test_chunks(ending: bytes, size: int) -> None:
    raw = chunked(HTML, size, ending=ending)
    assert decode_body({"transfer-encoding": "chunked"}, raw) == Body(HTML)


@pytest.mark.parametrize(
    "raw",
    [
        b"5;name=value\r\nhello\r\n0\r\n\r\n",
        b"0005\r\nhello\r\n0\r\n\r\n",
        b"5   \r\nhello\r\n0\r\nTrailer: x\r\n\r\n",
        b"2\r\nhe\r\n3\r\nllo\r\n000\r\n\r\nmore",
        b"\r\n5\r\nhello\r\n0\r\n\r\n",
    ],
)
def test_chunk_sizes_as_servers_write_them(raw: bytes) -> None:
    assert decode_body({"transfer-encoding": "Chunked"}, raw) == Body(b"hello")


def test_a_chunked_and_coded_body() -> None:
    headers = {"transfer-encoding": "gzip, chunked", "content-encoding": "gzip"}
    assert decode_body(headers, chunked(CODED["gzip"])) == Body(HTML)


@pytest.mark.parametrize("raw", [HTML, b"", b"plain words", b"12\nbottles of milk"])
def test_a_body_that_is_not_chunked_after_all(raw: bytes) -> None:
    assert decode_body({"transfer-encoding": "chunked"}, raw) == Body(raw)


def test_a_chunk_that_is_cut() -> None:
    raw = chunked(b"a" * 500)[:250]
    body = decode_body({"transfer-encoding": "chunked"}, raw)
    assert body.flaw == CUT


def test_a_missing_last_chunk_is_a_cut_body() -> None:
    body = decode_body({"transfer-encoding": "chunked"}, chunked(b"a" * 500, last=False))
    assert body.flaw == CUT


def test_a_missing_last_chunk_is_forgiven_where_the_page_ends() -> None:
    raw = chunked(HTML + b"\n", last=False)
    assert decode_body({"transfer-encoding": "chunked"}, raw) == Body(HTML + b"\n")


def test_a_missing_last_chunk_is_forgiven_where_the_coding_ends() -> None:
    headers = {"transfer-encoding": "chunked", "content-encoding": "gzip"}
    plain = gzip.compress(b"a" * 500)
    assert decode_body(headers, chunked(plain, last=False)) == Body(b"a" * 500)


def test_wrong_chunk_sizes_damage_the_body() -> None:
    raw = b"5\r\nhello world\r\n5\r\nagain\r\n0\r\n\r\n"
    assert decode_body({"transfer-encoding": "chunked"}, raw).flaw == DAMAGED


@pytest.mark.parametrize(
    ("length", "flaw"),
    [("5", ""), ("4", ""), ("6", CUT), ("900", CUT), ("abc", ""), ("-9", ""), ("9" * 40, "")],
)
def test_an_announced_length(length: str, flaw: str) -> None:
    assert decode_body({"content-length": length}, b"hello").flaw == flaw


def test_the_announced_length_of_a_coded_body_is_not_that_of_the_page() -> None:
    headers = {"content-length": "100000", "content-encoding": "gzip"}
    assert decode_body(headers, CODED["gzip"]) == Body(HTML)


@given(
    raw=st.binary(max_size=500),
    coding=st.sampled_from(["", "gzip", "deflate", "br", "zstd", "gzip, br", "br, zstd"]),
    transfer=st.sampled_from(["", "chunked"]),
)
def test_no_bytes_raise_or_pass_the_limit(raw: bytes, coding: str, transfer: str) -> None:
    body = decode_body({"content-encoding": coding, "transfer-encoding": transfer}, raw, 1000)
    assert len(body.data) <= 1000


@given(data=st.binary(min_size=1, max_size=2000), size=st.integers(1, 50))
def test_any_chunked_body_comes_back(data: bytes, size: int) -> None:
    assert decode_body({"transfer-encoding": "chunked"}, chunked(data, size)) == Body(data)
