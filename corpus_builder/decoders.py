"""Decompressors with one face: gzip, deflate, brotli, zstd, lz4, a bounded piece at a time.

Each takes coded data and hands out pieces of at most about ``PIECE`` bytes, so that the caller can
stop at a limit before a bomb has unfolded.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO, Protocol

PIECE = 64 * 1024
ZSTD_WINDOW_LIMIT = 16 * 1024 * 1024
_ZSTD_SLICE = 256  # coded bytes fed at once: 64 run-length blocks, at most 8 MiB of output


class Decoder(Protocol):
    """Undoes one compressed stream.

    Attributes:
        errors: what ``feed`` raises on damaged data.
    """

    errors: tuple[type[Exception], ...]

    @property
    def eof(self) -> bool:
        """True when the stream came to its own end."""
        ...

    @property
    def unused(self) -> int:
        """How many bytes of the last data given stood after the end of the stream."""
        ...

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what the data unfolds to, piece by piece."""
        ...


class _Zlib:
    errors: tuple[type[Exception], ...] = (zlib.error,)

    def __init__(self, window_bits: int) -> None:
        self._zlib = zlib.decompressobj(window_bits)

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def unused(self) -> int:
        return len(self._zlib.unused_data)

    def feed(self, data: bytes) -> Iterator[bytes]:
        piece = self._zlib.decompress(data, PIECE)
        while piece:
            yield piece
            if self._zlib.eof:
                return  # more calls would count the unused data twice
            piece = self._zlib.decompress(self._zlib.unconsumed_tail, PIECE)


class _Lz4:
    errors: tuple[type[Exception], ...] = (RuntimeError, EOFError)

    def __init__(self) -> None:
        from lz4.frame import LZ4FrameDecompressor

        self._lz4 = LZ4FrameDecompressor()

    @property
    def eof(self) -> bool:
        return bool(self._lz4.eof)

    @property
    def unused(self) -> int:
        return len(self._lz4.unused_data or b"")

    def feed(self, data: bytes) -> Iterator[bytes]:
        piece = self._lz4.decompress(data, max_length=PIECE)
        while piece:
            yield piece
            if self._lz4.eof or self._lz4.needs_input:
                return
            piece = self._lz4.decompress(b"", max_length=PIECE)


class _Brotli:
    def __init__(self) -> None:
        import brotli

        self.errors: tuple[type[Exception], ...] = (brotli.error,)
        self._brotli = brotli.Decompressor()

    @property
    def eof(self) -> bool:
        return bool(self._brotli.is_finished())

    @property
    def unused(self) -> int:
        return 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        piece = self._brotli.process(data, output_buffer_limit=PIECE)
        while piece:
            yield piece
            piece = self._brotli.process(b"", output_buffer_limit=PIECE)


class _Zstd:
    def __init__(self) -> None:
        import zstandard

        self.errors: tuple[type[Exception], ...] = (zstandard.ZstdError,)
        decompressor = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_LIMIT)
        self._zstd = decompressor.decompressobj()
        self._left = 0

    @property
    def eof(self) -> bool:
        return self._zstd.eof

    @property
    def unused(self) -> int:
        return len(self._zstd.unused_data) + self._left

    def feed(self, data: bytes) -> Iterator[bytes]:
        for start in range(0, len(data), _ZSTD_SLICE):
            piece = self._zstd.decompress(data[start : start + _ZSTD_SLICE])
            if piece:
                yield piece
            if self.eof:
                self._left = max(0, len(data) - start - _ZSTD_SLICE)
                return


def gzip_decoder() -> Decoder:
    """Return a decoder of one gzip member."""
    return _Zlib(31)


def zlib_decoder() -> Decoder:
    """Return a decoder of one zlib stream, which HTTP calls ``deflate``."""
    return _Zlib(15)


def raw_deflate_decoder() -> Decoder:
    """Return a decoder of a bare deflate stream, which many servers send as ``deflate``."""
    return _Zlib(-15)


def brotli_decoder() -> Decoder:
    """Return a decoder of one brotli stream."""
    return _Brotli()


def zstd_decoder() -> Decoder:
    """Return a decoder of one zstd frame with a window of at most 16 MiB."""
    return _Zstd()


def zstd_size(data: bytes) -> int:
    """Return the decoded size that a zstd frame declares, -1 if it declares none."""
    import zstandard

    try:
        return zstandard.frame_content_size(data)
    except zstandard.ZstdError:
        return -1


def lz4_decoder() -> Decoder:
    """Return a decoder of one lz4 frame."""
    return _Lz4()


DecoderFactory = Callable[[], Decoder]


class PackedError(Exception):
    """A packed file cannot be read on: its only argument is the reason."""


def unpacked(file: BinaryIO, factory: DecoderFactory) -> Iterator[bytes]:
    """Yield the content of a file of one or more packed streams.

    Raises:
        PackedError: the file is damaged or ends inside a stream.
    """
    decoder = factory()
    data = file.read(PIECE)
    while data:
        try:
            yield from decoder.feed(data)
        except decoder.errors as error:
            raise PackedError("damaged") from error
        rest = data[len(data) - decoder.unused :] if decoder.eof and decoder.unused else b""
        if decoder.eof:
            rest = rest or file.read(PIECE)
            if not rest.strip(b"\x00"):
                return
            decoder, data = factory(), rest
        else:
            data = file.read(PIECE)
    raise PackedError("cut short")
