"""Passages: the mapped file that holds the pieces of all versions as a reader is shown them.

``passage_layout.py`` says where everything lies. Texts stand there without Markdown's marks (see
``shown.py``), each compressed by itself; of a term there is its root and where it begins.
"""

from __future__ import annotations

import mmap
import shutil
import tempfile
import threading
import zlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Final, Self, TypeVar

import numpy as np
import zstandard
from numpy.typing import NDArray

from world_core import passage_layout as layout
from world_core.analysis import Analyzer, term_hash
from world_core.cutting import cut, sentences
from world_core.errors import BadInputError, DamagedFileError
from world_core.passage_layout import FAR, FORMAT, NO_ROOT
from world_core.shown import shown
from world_core.types import Numbers, Span

__all__ = ["FORMAT", "Found", "PassageFile", "PassageWriter", "cut", "sentences", "term_root"]

ROOT_LETTERS: Final = 6
"""Letters by which words count as one: their ends are mostly inflection, in any language."""

_LEVEL: Final = 9
_COLUMNS: Final = ("lows", "highs", "gaps", "breaks")
_U32_END: Final = 2**32
_COPY: Final = 1 << 20

_Number = TypeVar("_Number", np.uint8, np.uint16)


def term_root(term: str) -> int:
    """Return the 24-bit number of the term's first letters, below ``NO_ROOT``."""
    return term_hash(term[:ROOT_LETTERS]) % NO_ROOT


@dataclass(frozen=True, slots=True)
class Found:
    """Where roots stand in some passages, and the sentences of these.

    ``passage``, ``start``, ``root``, ``sentence`` (m,) int64, in text order: the passage's number,
    the character in it, which of the roots asked for, which of the sentences below.
    ``sentence_passage``, ``sentence_start`` (s,) int64, all sentences of these passages in order.
    """

    passage: Numbers
    start: Numbers
    root: Numbers
    sentence: Numbers
    sentence_passage: Numbers
    sentence_start: Numbers


class PassageWriter:
    """Writes a passage file in one go; a context manager that drops the file on an error.

    Memory grows by 36 bytes a passage; the columns wait in unnamed files beside the final one.
    Equal passages give equal bytes, however they came here.
    """

    def __init__(self, path: Path | str, analyzer: Analyzer) -> None:
        self._path = Path(path)
        self._analyzer = analyzer
        self._root = lru_cache(maxsize=1 << 18)(term_root)
        self._packer = zstandard.ZstdCompressor(
            level=_LEVEL, write_checksum=False, write_content_size=True
        )
        self._text_at, self._term_at, self._break_at = (array("Q", [0]) for _ in range(3))
        self._versions, self._starts, self._ends = (array("I") for _ in range(3))
        self._columns: dict[str, IO[bytes]] = {}

    def __enter__(self) -> Self:
        self._file = self._path.open("wb")
        self._columns = {
            name: tempfile.TemporaryFile(dir=self._path.parent)  # noqa: SIM115 - closed in __exit__
            for name in _COLUMNS
        }
        # A file that was not finished names itself, so it is found cut rather than foreign.
        self._file.write(layout.HEADER.pack(layout.MAGIC, FORMAT, 0, 0, 0))
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        try:
            with self._file:
                if kind is None:
                    self._finish()
        finally:
            for column in self._columns.values():
                column.close()
        if kind is not None:
            self._path.unlink()

    def add(self, version: int, text: str, span: Span) -> None:
        """Add the passage ``text[span.start:span.end]`` of a version with this whole text.

        Raises:
            BadInputError: the span lies outside the text, a number outside 32 bits, or the text
                holds a lone surrogate.
        """
        if not 0 <= span.start <= span.end <= len(text) < _U32_END:
            raise BadInputError(f"{span} lies outside a text of {len(text)} characters.")
        if not 0 <= version < _U32_END:
            raise BadInputError(f"Version number {version} does not fit into 32 bits.")
        passage = text[span.start : span.end]
        line, begins = shown(passage, sentences(passage))
        try:
            frame = self._packer.compress(line.encode())
        except UnicodeEncodeError as error:
            raise BadInputError(
                f"The text of version {version} cannot be stored: {error}."
            ) from error
        tokens = self._analyzer.tokens(line)
        gaps, places = _gaps([token.start for token in tokens])
        roots = np.full(gaps.size, NO_ROOT, np.uint32)
        roots[places] = [self._root(token.term) for token in tokens]
        breaks, _ = _gaps(begins)
        self._file.write(frame)
        self._columns["lows"].write((roots & 0xFFFF).astype("<u2").tobytes())
        self._columns["highs"].write((roots >> 16).astype("u1").tobytes())
        self._columns["gaps"].write(gaps.tobytes())
        self._columns["breaks"].write(breaks.tobytes())
        self._text_at.append(self._text_at[-1] + len(frame))
        self._term_at.append(self._term_at[-1] + gaps.size)
        self._break_at.append(self._break_at[-1] + breaks.size)
        self._versions.append(version)
        self._starts.append(span.start)
        self._ends.append(span.end)

    def append(self, other: PassageFile) -> None:
        """Add all passages of a finished file as they are, with their version numbers."""
        parts = other.parts
        self._file.write(parts.texts)
        for name in _COLUMNS:
            self._columns[name].write(getattr(parts, name).data)
        for mine, theirs in (
            (self._text_at, parts.text_at),
            (self._term_at, parts.term_at),
            (self._break_at, parts.break_at),
        ):
            mine.extend((theirs[1:].astype(np.int64) + mine[-1]).tolist())
        self._versions.extend(parts.versions.tolist())
        self._starts.extend(parts.starts.tolist())
        self._ends.extend(parts.ends.tolist())

    def _finish(self) -> None:
        file = self._file
        self._pad(self._text_at[-1])
        for name in _COLUMNS:
            column = self._columns[name]
            size = column.tell()
            column.seek(0)
            shutil.copyfileobj(column, file, _COPY)
            self._pad(size)
        count = len(self._versions)
        offset = file.tell()
        header = layout.HEADER.pack(layout.MAGIC, FORMAT, 0, count, offset)
        checksum = zlib.crc32(header)
        for kind, column_of in (
            ("<u8", (self._text_at, self._term_at, self._break_at)),
            ("<u4", (self._versions, self._starts, self._ends)),
        ):
            for values in column_of:
                data = np.array(values, dtype=kind).tobytes()
                data += bytes(-len(data) % 8)
                checksum = zlib.crc32(data, checksum)
                file.write(data)
        size = file.tell() + layout.FOOTER.size
        file.write(layout.FOOTER.pack(count, size, checksum, 0, layout.END_MAGIC))
        file.seek(0)
        file.write(header)

    def _pad(self, size: int) -> None:
        self._file.write(bytes(-size % 8))


class PassageFile:
    """A mapped passage file; reading is safe from several threads and copies one passage only."""

    def __init__(self, path: Path, parts: layout.Layout) -> None:
        self._path = path
        self._parts = parts
        self._local = threading.local()

    @classmethod
    def open(cls, path: Path | str) -> Self:
        """Map a file and check its frame; the passages are covered by the manifest's digest.

        Raises:
            DamagedFileError: the file is missing, cut or changed.
            ForeignWorldError: the file is no passage file, or of an older format.
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
                f"Passage file {path} cannot be read: {error}.", hint=layout.REBUILD
            ) from error
        return cls(path, layout.layout_of(path, data))

    @property
    def count(self) -> int:
        """Number of passages; 0 after ``close``."""
        return self._parts.count

    @property
    def parts(self) -> layout.Layout:
        """The columns of the file, views into it."""
        return self._parts

    def text(self, passage: int) -> str:
        """Return the passage as it is shown: one line without marks.

        Raises:
            BadInputError: there is no such passage.
            DamagedFileError: its bytes are not what was written.
        """
        parts = self._checked(passage)
        first, end = parts.text_at[passage : passage + 2].tolist()
        unpacker = getattr(self._local, "unpacker", None)
        if unpacker is None:
            # One serves one thread at a time, and making one costs more than its work.
            unpacker = self._local.unpacker = zstandard.ZstdDecompressor()
        try:
            return str(unpacker.decompress(parts.texts[first:end]), "utf-8")
        except (zstandard.ZstdError, UnicodeDecodeError) as error:
            raise DamagedFileError(
                f"Passage {passage} of {self._path} is damaged.", hint=layout.REBUILD
            ) from error

    def span(self, passage: int) -> Span:
        """Return where the passage stands in its version's text."""
        parts = self._checked(passage)
        return Span(int(parts.starts[passage]), int(parts.ends[passage]))

    def version(self, passage: int) -> int:
        """Return the number of the version the passage was cut from."""
        return int(self._checked(passage).versions[passage])

    def term_count(self, passage: int) -> int:
        """Return the number of the passage's terms; one more for each long gap between two."""
        first, end = self._checked(passage).term_at[passage : passage + 2].tolist()
        return int(end - first)

    def sentences(self, passage: int) -> list[int]:
        """Return where the passage's sentences begin in its shown text; the first at 0."""
        parts = self._checked(passage)
        first, end = parts.break_at[passage : passage + 2].tolist()
        gaps = parts.breaks[first:end]
        found: list[int] = np.cumsum(gaps, dtype=np.int64)[gaps < FAR].tolist()
        return found

    def terms(self, passage: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Return roots and starts of the passage's terms, each (T,) uint32, in text order.

        A start is a character of the shown text.
        """
        parts = self._checked(passage)
        first, end = parts.term_at[passage : passage + 2].tolist()
        roots = parts.lows[first:end] | parts.highs[first:end].astype(np.uint32) << 16
        starts = np.cumsum(parts.gaps[first:end], dtype=np.uint32)
        real = roots != NO_ROOT
        return roots[real], starts[real]

    def find(self, ranges: Sequence[range], roots: NDArray[np.uint32]) -> Found:
        """Return where the roots stand in ranges of passages, and all sentences of these.

        Args:
            ranges: numbers of passages, ascending and disjoint.
            roots: distinct, ascending, shape (r,).

        Raises:
            BadInputError: there is no such passage.
        """
        for some in ranges:
            if len(some):
                self._checked(some[0])
                self._checked(some[-1])
        return _found(self._parts, ranges, roots)

    def close(self) -> None:
        """Let go of the file; it stays mapped until the last view into it is gone."""
        self._parts = layout.empty_layout()

    def _checked(self, passage: int) -> layout.Layout:
        parts = self._parts
        if not 0 <= passage < parts.count:
            raise BadInputError(f"{self._path} has no passage {passage}, it holds {parts.count}.")
        return parts


def _found(parts: layout.Layout, ranges: Sequence[range], roots: NDArray[np.uint32]) -> Found:
    terms = _Slices(parts.term_at, ranges)
    lows = terms.of(parts.lows)
    asked = np.zeros(1 << 16, np.bool_)
    asked[roots & 0xFFFF] = True
    places = np.flatnonzero(asked[lows])
    whole = lows[places] | parts.highs[terms.global_of(places)].astype(np.uint32) << 16
    root = np.minimum(np.searchsorted(roots, whole), max(0, roots.size - 1))
    right = roots[root] == whole if roots.size else np.zeros(0, np.bool_)
    places, root = places[right], root[right]
    passage, start = terms.begins(parts.gaps, places)
    breaks = _Slices(parts.break_at, ranges)
    cuts = np.flatnonzero(breaks.of(parts.breaks) < FAR)
    sentence_passage, sentence_start = breaks.begins(parts.breaks, cuts)
    sentence = np.searchsorted(
        sentence_passage << 32 | sentence_start, passage << 32 | start, side="right"
    )
    return Found(passage, start, root, sentence - 1, sentence_passage, sentence_start)


class _Slices:
    """The entries that ranges of passages have in a column, one after another."""

    def __init__(self, begins: NDArray[np.uint64], ranges: Sequence[range]) -> None:
        filled = [some for some in ranges if len(some)]
        edges = [begins[some.start : some.stop + 1].astype(np.int64) for some in filled]
        self._bounds = [(int(some[0]), int(some[-1])) for some in edges]
        lengths = np.array([end - first for first, end in self._bounds], np.int64)
        self._ends = np.cumsum(lengths)
        self._shifts = np.array([first for first, _ in self._bounds], np.int64) - (
            self._ends - lengths
        )
        self._passages = _joined([np.arange(some.start, some.stop) for some in filled])
        self._firsts = _joined(
            [some[:-1] - shift for some, shift in zip(edges, self._shifts.tolist(), strict=True)]
        )

    def of(self, column: NDArray[_Number]) -> NDArray[_Number]:
        """Return the entries."""
        return np.concatenate([column[:0], *(column[first:end] for first, end in self._bounds)])

    def global_of(self, places: Numbers) -> Numbers:
        """Return where in the column the entries at these places stand."""
        moved: Numbers = places + self._shifts[np.searchsorted(self._ends, places, side="right")]
        return moved

    def begins(self, gaps: NDArray[np.uint8], places: Numbers) -> tuple[Numbers, Numbers]:
        """Return passage and begin in it of the entries at these places."""
        sums = np.concatenate(([0], np.cumsum(self.of(gaps), dtype=np.int64)))
        # The last passage that begins there: one without entries begins where the next one does.
        at = np.searchsorted(self._firsts, places, side="right") - 1
        return self._passages[at], sums[places + 1] - sums[self._firsts[at]]


def _joined(parts: Sequence[Numbers]) -> Numbers:
    joined: Numbers = np.concatenate([np.zeros(0, np.int64), *parts])
    return joined


def _gaps(begins: Sequence[int]) -> tuple[NDArray[np.uint8], Numbers]:
    """Return the gaps between ascending begins, and at which of them each begin stands."""
    edges = np.array([0, *begins], np.int64)
    steps: Numbers = edges[1:] - edges[:-1]
    filled: Numbers = steps // FAR
    places: Numbers = np.cumsum(filled + 1) - 1
    gaps = np.full(int(filled.sum()) + steps.size, FAR, np.uint8)
    gaps[places] = steps % FAR
    return gaps, places
