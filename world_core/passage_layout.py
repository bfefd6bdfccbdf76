"""Where everything lies in a passage file, and whether a file is one.

All numbers are little-endian. The file has a header, columns over all passages one after another,
a table of where each passage begins in them, and a footer; each begins at a multiple of eight:

    header   magic 8s, format u32, zero u32, passages P u64, offset of the table u64
    texts    one zstd frame a passage, without checksum
    lows     of each term's root the low 16 bits, u16
    highs    and the other 8, u8
    gaps     of each term the characters between its begin and that of the one before, u8
    breaks   the same for sentences, u8
    table    P + 1 begins u64 in texts, then in terms (lows, highs and gaps), then in breaks;
             version u32 of each passage, start u32 and end u32 in the version's text
    footer   passages u64, size of the file u64, CRC-32 of header and table u32, zero u32, magic 8s

The first gap of a passage counts from 0. A gap of ``FAR`` stands for as many characters and no
begin: in ``gaps`` such an entry has the root ``NO_ROOT``, which no term has.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from world_core.errors import DamagedFileError, ForeignWorldError, NewerFormatError

FORMAT: Final = 2
"""Version of the file's layout."""

FAR: Final = 255
"""The gap that has no begin at its end."""

NO_ROOT: Final = 2**24 - 1
"""Root of an entry that is no term."""

MAGIC: Final = b"SWPASSGS"
END_MAGIC: Final = b"SGSSAPWS"
HEADER: Final = struct.Struct("<8sIIQQ")
FOOTER: Final = struct.Struct("<QQII8s")
REBUILD: Final = "Copy the world again or build it anew (corpus-builder build)."


@dataclass(frozen=True, slots=True)
class Layout:
    """The parts of a mapped file: P passages, T terms, B breaks; see the module for their meaning.

    ``texts`` are the frames one after another; ``text_at``, ``term_at`` and ``break_at`` have shape
    (P + 1,); ``lows``, ``highs`` and ``gaps`` (T,); ``breaks`` (B,); the others (P,).
    """

    texts: memoryview
    lows: NDArray[np.uint16]
    highs: NDArray[np.uint8]
    gaps: NDArray[np.uint8]
    breaks: NDArray[np.uint8]
    text_at: NDArray[np.uint64]
    term_at: NDArray[np.uint64]
    break_at: NDArray[np.uint64]
    versions: NDArray[np.uint32]
    starts: NDArray[np.uint32]
    ends: NDArray[np.uint32]

    @property
    def count(self) -> int:
        """Number of passages."""
        return int(self.versions.size)


def padded(size: int) -> int:
    """Return the next multiple of eight."""
    return size + -size % 8


def table_size(count: int) -> int:
    """Return the bytes of the table of a file with ``count`` passages."""
    return 3 * 8 * (count + 1) + 3 * padded(4 * count)


def layout_of(path: Path, data: memoryview) -> Layout:
    """Return the parts of a file after every check that needs no passage's bytes.

    Raises:
        DamagedFileError: the file is cut or changed.
        ForeignWorldError: the file is no passage file, or of an older format.
        NewerFormatError: a newer program wrote it.
    """
    count, offset = _checked_frame(path, data)
    table = _Reader(data, offset)
    text_at, term_at, break_at = (table.take("<u8", count + 1) for _ in range(3))
    versions, starts, ends = (table.take("<u4", count) for _ in range(3))
    begins = (text_at, term_at, break_at)
    if any(at[0] or np.any(at[1:] < at[:-1]) for at in begins):
        refuse(path, "its table does not ascend")
    texts, terms, breaks = (int(at[-1]) for at in begins)
    columns = _Reader(data, HEADER.size)
    found = Layout(
        columns.bytes(texts),
        columns.take("<u2", terms),
        columns.take("u1", terms),
        columns.take("u1", terms),
        columns.take("u1", breaks),
        *(text_at, term_at, break_at, versions, starts, ends),
    )
    if columns.at != offset:
        refuse(path, "its columns do not end where its table begins")
    return found


def empty_layout() -> Layout:
    """Return the parts of a file without passages."""
    none: NDArray[Any] = np.zeros(0, np.uint32)
    begins = np.zeros(1, np.uint64)
    lows, small = np.zeros(0, np.uint16), np.zeros(0, np.uint8)
    return Layout(
        memoryview(b""), lows, small, small, small, begins, begins, begins, none, none, none
    )


def refuse(path: Path, reason: str) -> NoReturn:
    """Raise DamagedFileError for the file."""
    raise DamagedFileError(f"Passage file {path} is damaged: {reason}.", hint=REBUILD)


class _Reader:
    """Takes arrays off a buffer one after another; what would leave it comes back short."""

    def __init__(self, data: memoryview, at: int) -> None:
        self._data = data
        self.at = at

    def bytes(self, size: int) -> memoryview:
        part = self._data[self.at : self.at + size]
        self.at += padded(size)
        return part

    def take(self, kind: str, count: int) -> NDArray[Any]:
        part = self.bytes(np.dtype(kind).itemsize * count)
        return np.frombuffer(part[: len(part) - len(part) % np.dtype(kind).itemsize], kind)


def _checked_frame(path: Path, data: memoryview) -> tuple[int, int]:
    """Return the number of passages and the offset of the table."""
    size = len(data)
    if bytes(data[: len(MAGIC)]) != MAGIC[:size]:
        raise ForeignWorldError(f"{path} is no passage file.", hint=REBUILD)
    if size < HEADER.size:
        refuse(path, f"it has only {size} bytes")
    _, form, _, count, offset = HEADER.unpack_from(data, 0)
    if form > FORMAT:
        raise NewerFormatError(
            f"Passage file {path} has format {form}, this program reads up to {FORMAT}.",
            hint="Install a newer searchworld.",
        )
    if form < FORMAT:
        raise ForeignWorldError(
            f"Passage file {path} has format {form}, this program reads only {FORMAT}.",
            hint="Build the world again: corpus-builder build.",
        )
    if size < HEADER.size + table_size(0) + FOOTER.size:
        refuse(path, f"it has only {size} bytes")
    footer = FOOTER.unpack_from(data, size - FOOTER.size)
    if footer[4] != END_MAGIC or footer[1] != size:
        refuse(path, "its end is missing or does not belong to it")
    if footer[0] != count or offset + table_size(count) + FOOTER.size != size:
        refuse(path, "its header and footer disagree")
    table = data[offset : size - FOOTER.size]
    if zlib.crc32(table, zlib.crc32(data[: HEADER.size])) != footer[2]:
        refuse(path, "the checksum of its table is wrong")
    return int(count), int(offset)
