"""The mapped passage file."""

from __future__ import annotations

import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from world_core import passages
from world_core.analysis import Analyzer, term_hash
from world_core.errors import (
    BadInputError,
    DamagedFileError,
    ForeignWorldError,
    NewerFormatError,
    WorldError,
)
from world_core.passages import PassageFile, PassageWriter, cut, sentences
from world_core.types import Span

ANALYZER = Analyzer(["en"])
TEXT = (
    "# Harbour\n\nThe ferry leaves at seven. 灯台 is a lighthouse; the 🚢 is white.\n\n"
    "A second paragraph stands here. It is short."
)
VERSIONS = {0: TEXT, 3: "Naïve café: 東京都の図書館。", 2**32 - 1: "!?"}


def write(path: Path, versions: dict[int, str] = VERSIONS) -> list[tuple[int, str, Span]]:
    rows = [
        (version, text, span)
        for version, text in versions.items()
        for span in cut(text, target=60, limit=80)
    ]
    with PassageWriter(path, ANALYZER) as writer:
        for row in rows:
            writer.add(*row)
    return rows


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "passages.bin"


def check(file: PassageFile, rows: list[tuple[int, str, Span]]) -> None:
    assert file.count == len(rows)
    for number, (version, text, span) in enumerate(rows):
        piece = text[span.start : span.end]
        assert file.version(number) == version
        assert file.span(number) == span
        assert file.text(number) == piece
        assert file.sentences(number) == sentences(piece)
        hashes, starts = file.terms(number)
        tokens = ANALYZER.tokens(piece)
        assert hashes.dtype == starts.dtype == np.uint32
        assert hashes.tolist() == [term_hash(token.term) for token in tokens]
        assert starts.tolist() == [token.start for token in tokens]


def test_what_is_written_is_read(path: Path) -> None:
    rows = write(path)
    assert len(rows) > 4
    file = PassageFile.open(path)
    check(file, rows)
    file.close()


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=80), max_size=5))
@settings(
    deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_text_comes_back(tmp_path: Path, texts: list[str]) -> None:
    rows = [(0, text, Span(at, len(text))) for text in texts for at in range(0, len(text) + 1, 7)]
    with PassageWriter(tmp_path / "any.bin", ANALYZER) as writer:
        for row in rows:
            writer.add(*row)
    check(PassageFile.open(str(tmp_path / "any.bin")), rows)


def test_equal_passages_give_equal_bytes(path: Path, tmp_path: Path) -> None:
    write(path)
    with PassageWriter(tmp_path / "again.bin", Analyzer(["en"])) as writer:
        for version, text in VERSIONS.items():
            for span in cut(text, target=60, limit=80):
                writer.add(version, text, span)
    assert (tmp_path / "again.bin").read_bytes() == path.read_bytes()


def test_a_file_of_no_passages(path: Path) -> None:
    write(path, {})
    file = PassageFile.open(path)
    assert file.count == 0
    with pytest.raises(BadInputError, match="no passage 0, it holds 0"):
        file.text(0)


@pytest.mark.parametrize("number", [-1, 10**6])
def test_a_number_that_is_not_there(path: Path, number: int) -> None:
    write(path)
    file = PassageFile.open(path)
    for read in (file.text, file.span, file.version, file.sentences, file.terms):
        with pytest.raises(BadInputError, match=rf"{path.name} has no passage {number}"):
            read(number)


def test_terms_are_views_that_outlive_the_file(path: Path) -> None:
    rows = write(path)
    file = PassageFile.open(path)
    hashes, starts = file.terms(1)
    assert not hashes.flags.owndata
    assert not hashes.flags.writeable
    file.close()
    file.close()
    assert file.count == 0
    tokens = ANALYZER.tokens(rows[1][1][rows[1][2].start : rows[1][2].end])
    assert hashes.tolist() == [term_hash(token.term) for token in tokens]
    assert starts.tolist() == [token.start for token in tokens]
    with pytest.raises(BadInputError, match="holds 0"):
        file.text(0)


def test_threads_read_the_same(path: Path) -> None:
    rows = write(path)
    file = PassageFile.open(path)
    expected = [text[span.start : span.end] for _, text, span in rows] * 200
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(file.text, list(range(len(rows))) * 200)) == expected


def test_files_joined_are_the_file_written_at_once(path: Path, tmp_path: Path) -> None:
    write(path)
    parts = []
    for number, (version, text) in enumerate(VERSIONS.items()):
        write(tmp_path / f"{number}.bin", {version: text})
        parts.append(PassageFile.open(tmp_path / f"{number}.bin"))
    write(tmp_path / "none.bin", {})
    parts.insert(1, PassageFile.open(tmp_path / "none.bin"))
    with PassageWriter(tmp_path / "joined.bin", ANALYZER) as writer:
        for part in parts:
            writer.append(part)
    assert (tmp_path / "joined.bin").read_bytes() == path.read_bytes()


def test_the_records_are_the_file_without_its_frame(path: Path) -> None:
    write(path)
    file = PassageFile.open(path)
    records, offsets = file.records()
    assert len(offsets) == file.count + 1
    assert path.read_bytes()[int(offsets[0]) : int(offsets[-1])] == bytes(records)


@pytest.mark.parametrize(
    ("version", "text", "span", "match"),
    [
        (0, "abcd", Span(0, 9), "outside a text of 4"),
        (0, "abcd", Span(-1, 2), "outside a text of 4"),
        (0, "abcd", Span(3, 2), "outside a text of 4"),
        (-1, "abcd", Span(0, 2), "-1 does not fit"),
        (2**32, "abcd", Span(0, 2), "4294967296 does not fit"),
        (7, "abc\ud800", Span(0, 4), "version 7 cannot be stored"),
    ],
)
def test_what_cannot_be_written_is_refused(
    path: Path, version: int, text: str, span: Span, match: str
) -> None:
    with PassageWriter(path, ANALYZER) as writer:
        writer.add(0, "fine", Span(0, 4))
        with pytest.raises(BadInputError, match=match):
            writer.add(version, text, span)
    check(PassageFile.open(path), [(0, "fine", Span(0, 4))])


def test_an_error_leaves_no_file(path: Path) -> None:
    def fail() -> None:
        with PassageWriter(path, ANALYZER) as writer:
            writer.add(0, "fine", Span(0, 4))
            writer.add(0, "fine", Span(0, 5))

    with pytest.raises(BadInputError):
        fail()
    assert not path.exists()


def test_a_file_that_is_still_written_is_refused(path: Path) -> None:
    with PassageWriter(path, ANALYZER) as writer:
        for _ in range(1000):
            writer.add(0, TEXT, Span(0, 50))
        with pytest.raises(DamagedFileError, match=path.name):
            PassageFile.open(path)
    assert PassageFile.open(path).count == 1000


def test_a_missing_file_is_named(path: Path) -> None:
    with pytest.raises(DamagedFileError, match=path.name):
        PassageFile.open(path)


@pytest.mark.parametrize("content", [b"SQLite format 3\x00" * 20, b"x", b"SWPASSGX" + bytes(200)])
def test_a_foreign_file_is_named(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(ForeignWorldError, match=rf"{path.name} is no passage file"):
        PassageFile.open(path)


def test_a_newer_file_is_refused(path: Path) -> None:
    write(path)
    content = bytearray(path.read_bytes())
    struct.pack_into("<I", content, 8, passages.FORMAT + 1)
    path.write_bytes(content)
    with pytest.raises(NewerFormatError, match=f"format {passages.FORMAT + 1}"):
        PassageFile.open(path)


def test_a_file_cut_anywhere_is_refused(path: Path) -> None:
    write(path)
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(DamagedFileError, match=path.name):
            PassageFile.open(path)


def test_a_file_grown_or_joined_is_refused(path: Path) -> None:
    write(path)
    content = path.read_bytes()
    for grown in (content + b"\x00", content + content, content[:32] + content[40:]):
        path.write_bytes(grown)
        with pytest.raises(DamagedFileError, match=path.name):
            PassageFile.open(path)


def test_a_flipped_bit_in_the_frame_is_found(path: Path) -> None:
    write(path)
    content = path.read_bytes()
    table = struct.unpack_from("<Q", content, 24)[0]
    zeros = range(len(content) - 12, len(content) - 8)  # the footer's reserved field
    for at in [*range(32), *(place for place in range(table, len(content)) if place not in zeros)]:
        changed = bytearray(content)
        changed[at] ^= 1 << at % 8
        path.write_bytes(changed)
        with pytest.raises(WorldError, match=path.name):
            PassageFile.open(path)


def test_a_record_that_does_not_add_up_is_refused_when_read(path: Path) -> None:
    write(path)
    content = bytearray(path.read_bytes())
    content[32 + 12] ^= 0x40  # the first record's bytes of text
    path.write_bytes(content)
    file = PassageFile.open(path)
    with pytest.raises(DamagedFileError, match=rf"Passage 0 of .*{path.name} is damaged"):
        file.text(0)
    assert file.text(1)


def test_text_that_is_no_utf8_is_refused_when_read(path: Path) -> None:
    write(path)
    content = bytearray(path.read_bytes())
    content[content.index(b"Harbour")] = 0xFF
    path.write_bytes(content)
    file = PassageFile.open(path)
    with pytest.raises(DamagedFileError, match="Passage 0"):
        file.text(0)
    assert file.version(0) == 0
