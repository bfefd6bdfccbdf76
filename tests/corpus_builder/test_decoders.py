from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable

import brotli
import lz4.frame
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from corpus_builder.decoders import (
    PIECE,
    DecoderFactory,
    PackedError,
    brotli_decoder,
    gzip_decoder,
    lz4_decoder,
    raw_deflate_decoder,
    unpacked,
    zlib_decoder,
    zstd_decoder,
    zstd_size,
)

Pack = Callable[[bytes], bytes]


def raw_deflate(data: bytes) -> bytes:
    return zlib.compress(data)[2:-4]


KINDS: list[tuple[DecoderFactory, Pack]] = [
    (gzip_decoder, gzip.compress),
    (zlib_decoder, zlib.compress),
    (raw_deflate_decoder, raw_deflate),
    (brotli_decoder, brotli.compress),
    (zstd_decoder, zstandard.ZstdCompressor().compress),
    (lz4_decoder, lz4.frame.compress),
]
NAMES = ["gzip", "zlib", "raw", "brotli", "zstd", "lz4"]
TEXT = b"The ferry between the two harbours leaves at 07:10. " * 5000


@pytest.mark.parametrize(("factory", "pack"), KINDS, ids=NAMES)
def test_a_stream_comes_back(factory: DecoderFactory, pack: Pack) -> None:
    decoder = factory()
    assert b"".join(decoder.feed(pack(TEXT))) == TEXT
    assert decoder.eof
    assert decoder.unused == 0


@pytest.mark.parametrize(("factory", "pack"), KINDS, ids=NAMES)
def test_a_stream_comes_back_fed_byte_by_byte(factory: DecoderFactory, pack: Pack) -> None:
    data = pack(TEXT[:5000])
    decoder = factory()
    found = b"".join(
        piece for byte in data if not decoder.eof for piece in decoder.feed(bytes([byte]))
    )
    assert found == TEXT[:5000]
    assert decoder.eof


@pytest.mark.parametrize(("factory", "pack"), KINDS, ids=NAMES)
def test_a_bomb_unfolds_in_bounded_pieces(factory: DecoderFactory, pack: Pack) -> None:
    data = streamed() if factory is zstd_decoder else pack(bytes(12 * 1024 * 1024))
    assert len(next(factory().feed(data))) <= 8 * 1024 * 1024 + PIECE


def streamed() -> bytes:
    """Return zeros as a zstd frame with a small window, as a server would stream them."""
    parameters = zstandard.ZstdCompressionParameters(window_log=20)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return compressor.compress(bytes(32 * 1024 * 1024)) + compressor.flush()


@pytest.mark.parametrize(("factory", "pack"), KINDS, ids=NAMES)
def test_a_cut_stream_has_no_end(factory: DecoderFactory, pack: Pack) -> None:
    decoder = factory()
    list(decoder.feed(pack(TEXT)[:-8]))
    assert not decoder.eof


@pytest.mark.parametrize(("factory", "pack"), KINDS[:1] + KINDS[4:], ids=["gzip", "zstd", "lz4"])
def test_damage_raises_what_was_said(factory: DecoderFactory, pack: Pack) -> None:
    decoder = factory()
    with pytest.raises(decoder.errors):
        list(decoder.feed(b"\x00" * 20 + pack(TEXT)[20:]))


@pytest.mark.parametrize(
    ("factory", "pack"),
    [KINDS[0], KINDS[1], KINDS[4], KINDS[5]],
    ids=["gzip", "zlib", "zstd", "lz4"],
)
@pytest.mark.parametrize("size", [10, 300_000])
def test_what_follows_the_stream_is_counted(factory: DecoderFactory, pack: Pack, size: int) -> None:
    decoder = factory()
    assert b"".join(decoder.feed(pack(TEXT[:size]) + b"more data")) == TEXT[:size]
    assert decoder.unused == len(b"more data")


def test_the_declared_size_of_a_zstd_frame() -> None:
    assert zstd_size(zstandard.ZstdCompressor().compress(TEXT)) == len(TEXT)
    assert zstd_size(streamed()) == -1
    assert zstd_size(b"no frame") == -1


@given(st.lists(st.binary(max_size=200), min_size=1, max_size=5))
def test_streams_in_a_row_are_one_file(parts: list[bytes]) -> None:
    data = b"".join(gzip.compress(part) for part in parts)
    assert b"".join(unpacked(io.BytesIO(data), gzip_decoder)) == b"".join(parts)


def test_zeros_after_the_last_stream_are_padding() -> None:
    data = gzip.compress(b"text") + bytes(100)
    assert b"".join(unpacked(io.BytesIO(data), gzip_decoder)) == b"text"


def test_an_empty_file_is_cut() -> None:
    with pytest.raises(PackedError, match="cut short"):
        list(unpacked(io.BytesIO(b""), gzip_decoder))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (gzip.compress(TEXT)[:-5], "cut short"),
        (gzip.compress(TEXT) + gzip.compress(TEXT)[:30], "cut short"),
        (gzip.compress(TEXT)[:-5] + b"\xff\xff\xff\xff\xff", "damaged"),
        (gzip.compress(TEXT) + b"junk", "damaged"),
    ],
)
def test_packed_files_that_end_badly(data: bytes, reason: str) -> None:
    with pytest.raises(PackedError, match=reason):
        list(unpacked(io.BytesIO(data), gzip_decoder))
