"""Passages: the mapped block file that holds the pieces of all versions.

The file has a header, one record a passage, a table of the records' offsets, and a footer. All
numbers are little-endian, every record begins at a multiple of four bytes:

    header   magic 8s, format u32, zero u32, count u64, offset of the table u64
    record   version, start, end, bytes of text, sentences S, terms T (u32 each);
             S pairs (start, end) u32; T hashes u32; T starts u32; text in UTF-8; zeros
    table    count + 1 offsets u64, the last one the end of the last record
    footer   count u64, size of the file u64, CRC-32 of header and table u32, zero u32, magic 8s
"""

from __future__ import annotations

import mmap
import struct
import zlib
from array import array
from functools import lru_cache
from pathlib import Path
from typing import Final, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from world_core.analysis import Analyzer, term_hash
from world_core.cutting import cut, sentences
from world_core.errors import (
    BadInputError,
    DamagedFileError,
    ForeignWorldError,
    NewerFormatError,
)
from world_core.types import Span

__all__ = ["FORMAT", "PassageFile", "PassageWriter", "cut", "sentences"]

FORMAT: Final = 1
"""Version of the file's layout."""

_MAGIC: Final = b"SWPASSGS"
_END_MAGIC: Final = b"SGSSAPWS"
_HEADER: Final = struct.Struct("<8sIIQQ")
_RECORD: Final = struct.Struct("<6I")
_FOOTER: Final = struct.Struct("<QQII8s")
_U32_END: Final = 2**32
_REBUILD: Final = "Copy the world again or build it anew (corpus-builder build)."


class PassageWriter:
    """Writes a passage file in one go; a context manager that drops the file on an error.

    Memory does not grow but for eight bytes a passage. Equal passages give equal bytes.
    """

    def __init__(self, path: Path | str, analyzer: Analyzer) -> None:
        self._path = Path(path)
        self._analyzer = analyzer
        self._hash = lru_cache(maxsize=1 << 18)(term_hash)
        self._offsets = array("Q", [_HEADER.size])

    def __enter__(self) -> Self:
        self._file = self._path.open("wb")
        # A file that was not finished names itself, so it is found cut rather than foreign.
        self._file.write(_HEADER.pack(_MAGIC, FORMAT, 0, 0, 0))
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        with self._file:
            if kind is None:
                self._finish()
        if kind is not None:
            self._path.unlink()

    def add(self, version: int, text: str, span: Span) -> None:
        """Add the passage ``text[span.start:span.end]`` of a version with this whole text.

        Raises:
            BadInputError: the span lies outside the text, the number outside 32 bits, or the text
                holds a lone surrogate.
        """
        if not 0 <= span.start <= span.end <= len(text):
            raise BadInputError(f"{span} lies outside a text of {len(text)} characters.")
        if not 0 <= version < _U32_END:
            raise BadInputError(f"Version number {version} does not fit into 32 bits.")
        passage = text[span.start : span.end]
        try:
            encoded = passage.encode()
        except UnicodeEncodeError as error:
            raise BadInputError(
                f"The text of version {version} cannot be stored: {error}."
            ) from error
        bounds = [edge for part in sentences(passage) for edge in (part.start, part.end)]
        tokens = self._analyzer.tokens(passage)
        hashes = [self._hash(token.term) for token in tokens]
        numbers = np.array([*bounds, *hashes, *(token.start for token in tokens)], dtype="<u4")
        head = _RECORD.pack(
            version, span.start, span.end, len(encoded), len(bounds) // 2, len(tokens)
        )
        record = b"".join((head, numbers.tobytes(), encoded, bytes(-len(encoded) % 4)))
        self._file.write(record)
        self._offsets.append(self._offsets[-1] + len(record))

    def append(self, other: PassageFile) -> None:
        """Add all passages of a finished file as they are, with their version numbers."""
        records, offsets = other.records()
        shift = self._offsets[-1] - int(offsets[0])
        self._file.write(records)
        self._offsets.extend((offsets[1:].astype(np.int64) + shift).tolist())

    def _finish(self) -> None:
        end = self._offsets[-1]
        padding = -end % 8
        table = np.array(self._offsets, dtype="<u8").tobytes()
        count = len(self._offsets) - 1
        header = _HEADER.pack(_MAGIC, FORMAT, 0, count, end + padding)
        size = end + padding + len(table) + _FOOTER.size
        checksum = zlib.crc32(table, zlib.crc32(header))
        self._file.write(bytes(padding) + table)
        self._file.write(_FOOTER.pack(count, size, checksum, 0, _END_MAGIC))
        self._file.seek(0)
        self._file.write(header)


class PassageFile:
    """A mapped passage file; reading is safe from several threads and copies one passage only."""

    def __init__(self, path: Path, data: memoryview, table: NDArray[np.uint64]) -> None:
        self._path = path
        self._data = data
        self._table = table

    @classmethod
    def open(cls, path: Path | str) -> Self:
        """Map a file and check its frame; the records are covered by the manifest's digest.

        Raises:
            DamagedFileError: the file is missing, cut or changed.
            ForeignWorldError: the file is no passage file.
            NewerFormatError: a newer program wrote it.
        """
        path = Path(path)
        try:
            with path.open("rb") as file:
                size = file.seek(0, 2)
                # An empty file cannot be mapped.
                data = memoryview(
                    mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
                )
        except OSError as error:
            raise DamagedFileError(
                f"Passage file {path} cannot be read: {error}.", hint=_REBUILD
            ) from error
        return cls(path, data, _checked_table(path, data))

    @property
    def count(self) -> int:
        """Number of passages; 0 after ``close``."""
        return len(self._table) - 1

    def text(self, passage: int) -> str:
        """Return the passage's text."""
        at, head = self._record(passage)
        first = at + _RECORD.size + 8 * (head[4] + head[5])
        try:
            return str(self._data[first : first + head[3]], "utf-8")
        except UnicodeDecodeError as error:
            raise self._damaged(passage) from error

    def span(self, passage: int) -> Span:
        """Return where the passage stands in its version's text."""
        _, head = self._record(passage)
        return Span(head[1], head[2])

    def version(self, passage: int) -> int:
        """Return the number of the version the passage was cut from."""
        return self._record(passage)[1][0]

    def sentences(self, passage: int) -> list[Span]:
        """Return the passage's sentences, offsets relative to the passage."""
        at, head = self._record(passage)
        bounds = self._numbers(at + _RECORD.size, 2 * head[4]).tolist()
        return [Span(start, end) for start, end in zip(bounds[::2], bounds[1::2], strict=True)]

    def terms(self, passage: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Return hashes and starts of the passage's terms, each (T,) uint32, in text order.

        A start is a character offset relative to the passage. Both are views into the file.
        """
        at, head = self._record(passage)
        first = at + _RECORD.size + 8 * head[4]
        return self._numbers(first, head[5]), self._numbers(first + 4 * head[5], head[5])

    def records(self) -> tuple[memoryview, NDArray[np.uint64]]:
        """Return the bytes of all records and the (count + 1,) offsets that bound each in the file.

        The bytes begin at the first offset.
        """
        return self._data[int(self._table[0]) : int(self._table[-1])], self._table

    def close(self) -> None:
        """Let go of the file; it stays mapped until the last view into it is gone."""
        self._table = np.zeros(1, dtype=np.uint64)
        self._data = memoryview(b"")

    def _record(self, passage: int) -> tuple[int, tuple[int, ...]]:
        """Return a record's offset and head.

        Raises:
            BadInputError: there is no such passage.
            DamagedFileError: the record's parts do not fill it.
        """
        table, data = self._table, self._data
        if not 0 <= passage < len(table) - 1:
            raise BadInputError(
                f"{self._path} has no passage {passage}, it holds {len(table) - 1}."
            )
        at, end = int(table[passage]), int(table[passage + 1])
        head = _RECORD.unpack_from(data, at)
        length = _RECORD.size + 8 * (head[4] + head[5]) + head[3]
        if length + -length % 4 != end - at:
            raise self._damaged(passage)
        return at, head

    def _numbers(self, offset: int, count: int) -> NDArray[np.uint32]:
        return np.frombuffer(self._data, dtype="<u4", count=count, offset=offset)

    def _damaged(self, passage: int) -> DamagedFileError:
        return DamagedFileError(f"Passage {passage} of {self._path} is damaged.", hint=_REBUILD)


def _checked_table(path: Path, data: memoryview) -> NDArray[np.uint64]:
    """Return the offset table after every check that needs no record."""
    size = len(data)
    if bytes(data[: len(_MAGIC)]) != _MAGIC[:size]:
        raise ForeignWorldError(f"{path} is no passage file.", hint=_REBUILD)
    if size < _HEADER.size + 8 + _FOOTER.size:
        _refuse(path, f"it has only {size} bytes")
    _, form, _, count, offset = _HEADER.unpack_from(data, 0)
    if form > FORMAT:
        raise NewerFormatError(
            f"Passage file {path} has format {form}, this program reads up to {FORMAT}.",
            hint="Install a newer searchworld.",
        )
    footer = _FOOTER.unpack_from(data, size - _FOOTER.size)
    if footer[4] != _END_MAGIC or footer[1] != size:
        _refuse(path, "its end is missing or does not belong to it")
    if footer[0] != count or offset + 8 * (count + 1) + _FOOTER.size != size:
        _refuse(path, "its header and footer disagree")
    stored = data[offset : size - _FOOTER.size]
    if zlib.crc32(stored, zlib.crc32(data[: _HEADER.size])) != footer[2]:
        _refuse(path, "the checksum of its offsets is wrong")
    return np.frombuffer(stored, dtype="<u8")


def _refuse(path: Path, reason: str) -> NoReturn:
    raise DamagedFileError(f"Passage file {path} is damaged: {reason}.", hint=_REBUILD)
