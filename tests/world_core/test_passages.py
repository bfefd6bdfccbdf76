"""The mapped passage file."""

from __future__ import annotations

import struct
import zlib
from bisect import bisect_right
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from world_core import passages
from world_core.analysis import Analyzer
from world_core.errors import (
    BadInputError,
    DamagedFileError,
    ForeignWorldError,
    NewerFormatError,
    WorldError,
)
from world_core.passage_layout import FAR, NO_ROOT
from world_core.passages import PassageFile, PassageWriter, cut, sentences, term_root
from world_core.shown import shown
from world_core.types import Span

ANALYZER = Analyzer(["en"])
ROOTS = np.unique(np.array([term_root(t) for t in ("ferry", "quay", "灯台", "a")], np.uint32))
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
        line, begins = shown(piece, sentences(piece))
        assert file.version(number) == version
        assert file.span(number) == span
        assert file.text(number) == line
        assert file.sentences(number) == begins
        roots, starts = file.terms(number)
        tokens = ANALYZER.tokens(line)
        assert roots.dtype == starts.dtype == np.uint32
        assert roots.tolist() == [term_root(token.term) for token in tokens]
        assert starts.tolist() == [token.start for token in tokens]
        assert len(tokens) <= file.term_count(number)


def test_words_with_one_beginning_have_one_root() -> None:
    assert term_root("lighthouse") == term_root("lighthouses") == term_root("lighth")
    assert term_root("light") != term_root("lighth")
    assert term_root("灯台") != term_root("台灯")
    assert term_root("") == 0
    # The number that no term has belongs to what is no term.
    assert all(term_root(f"{number:06}") < NO_ROOT for number in range(2000))


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
    for read in (
        *(file.text, file.span, file.version, file.sentences, file.terms, file.term_count),
        lambda number: file.find([range(1), range(number, number + 1)], ROOTS),
    ):
        with pytest.raises(BadInputError, match=rf"{path.name} has no passage {number}"):
            read(number)


def test_what_was_read_outlives_the_file(path: Path) -> None:
    rows = write(path)
    file = PassageFile.open(path)
    roots, starts = file.terms(1)
    parts = file.parts
    file.close()
    file.close()
    assert file.count == 0
    line = shown(rows[1][1][rows[1][2].start : rows[1][2].end], [])[0]
    tokens = ANALYZER.tokens(line)
    assert roots.tolist() == [term_root(token.term) for token in tokens]
    assert starts.tolist() == [token.start for token in tokens]
    assert not parts.lows.flags.writeable
    with pytest.raises(BadInputError, match="holds 0"):
        file.text(0)


@given(
    st.lists(
        st.lists(st.sampled_from(["ferry", "harbour", "quay", "灯台", "x" * 300, "-" * 600])).map(
            ". ".join
        ),
        min_size=1,
        max_size=6,
    ),
    st.data(),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_roots_are_found_where_they_stand(
    tmp_path: Path, texts: list[str], data: st.DataObject
) -> None:
    with PassageWriter(tmp_path / "any.bin", ANALYZER) as writer:
        for text in texts:
            writer.add(0, text, Span(0, len(text)))
    file = PassageFile.open(tmp_path / "any.bin")
    cuts = sorted(data.draw(st.sets(st.integers(0, len(texts)))))
    ranges = [range(first, end) for first, end in pairwise(cuts)][::2]
    found = file.find(ranges, ROOTS)
    wanted: list[tuple[int, ...]] = []
    sentences_of: list[tuple[int, int]] = []
    for number in (number for some in ranges for number in some):
        begins = file.sentences(number)
        edge = len(sentences_of)
        sentences_of += [(number, begin) for begin in begins]
        for root, start in zip(*(values.tolist() for values in file.terms(number)), strict=True):
            if root in ROOTS:
                sentence = edge + bisect_right(begins, start) - 1
                wanted.append((number, start, ROOTS.tolist().index(root), sentence))
    columns = (found.passage, found.start, found.root, found.sentence)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == wanted
    places = zip(found.sentence_passage.tolist(), found.sentence_start.tolist(), strict=True)
    assert list(places) == sentences_of
    assert file.find(ranges, ROOTS[:0]).passage.size == 0
    file.close()


def test_roots_that_share_their_low_bits_are_told_apart(path: Path) -> None:
    write(path)
    file = PassageFile.open(path)
    root = int(file.terms(0)[0][0])
    twins = np.unique(np.array([root ^ 0x10000, root, root ^ 0x800000], np.uint32))
    found = file.find([range(file.count)], twins)
    assert set(found.root.tolist()) == {twins.tolist().index(root)}


def test_threads_read_the_same(path: Path) -> None:
    rows = write(path)
    file = PassageFile.open(path)
    pieces = [text[span.start : span.end] for _, text, span in rows]
    expected = [shown(piece, sentences(piece))[0] for piece in pieces] * 200
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


@given(st.lists(st.integers(0, 2000)))
def test_any_gap_between_terms_is_kept(gaps: list[int]) -> None:
    begins = list(accumulate(gaps))
    column, places = passages._gaps(begins)
    assert column.dtype == np.uint8
    assert np.cumsum(column, dtype=np.int64)[places].tolist() == begins
    assert (column[places] < FAR).all()
    assert column.size - len(gaps) == np.count_nonzero(column == FAR)


def test_a_passage_takes_half_of_what_its_parts_would(path: Path) -> None:
    text = "The ferry to Alder Point leaves the north harbour at seven on working days. " * 12
    words = [f"{word}{number}" for number, word in enumerate(text.split())]
    passage = " ".join(words)
    with PassageWriter(path, ANALYZER) as writer:
        for version in range(100):
            writer.add(version, passage, Span(0, len(passage)))
    each = path.stat().st_size / 100
    assert each < (len(passage) + 8 * len(words)) / 2


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


def test_an_older_file_names_the_way_to_a_new_one(path: Path) -> None:
    # The whole frame of an empty file of format 1: header, one offset, footer.
    frame = struct.pack("<8sIIQQ", b"SWPASSGS", 1, 0, 0, 32) + struct.pack("<Q", 32)
    footer = struct.pack("<QQII8s", 0, len(frame) + 32, zlib.crc32(frame), 0, b"SGSSAPWS")
    path.write_bytes(frame + footer)
    with pytest.raises(ForeignWorldError, match=r"format 1, .* only 2\..* corpus-builder build"):
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


def test_a_frame_with_a_table_that_cannot_be_is_refused(path: Path) -> None:
    write(path)
    content = path.read_bytes()
    table = struct.unpack_from("<Q", content, 24)[0]
    count = struct.unpack_from("<Q", content, 16)[0]
    for at, value, reason in (
        (table, 1, "does not ascend"),
        (table + 8 * count, 0, "does not ascend"),
        (table + 8 * count, 2**40, "columns do not end"),
        (table + 8 * (2 * count + 1), 2**50, "columns do not end"),
    ):
        changed = bytearray(content)
        struct.pack_into("<Q", changed, at, value)
        checksum = zlib.crc32(changed[table:-32], zlib.crc32(changed[:32]))
        struct.pack_into("<I", changed, len(changed) - 16, checksum)
        path.write_bytes(changed)
        with pytest.raises(DamagedFileError, match=reason):
            PassageFile.open(path)


def test_a_text_that_is_damaged_is_refused_when_read(path: Path) -> None:
    write(path)
    content = bytearray(path.read_bytes())
    content[32] ^= 0xFF  # the first frame's magic
    path.write_bytes(content)
    file = PassageFile.open(path)
    with pytest.raises(DamagedFileError, match=rf"Passage 0 of .*{path.name} is damaged"):
        file.text(0)
    assert file.text(1)


def test_text_that_is_no_utf8_is_refused_when_read(path: Path) -> None:
    write(path, {0: "Harbour"})
    content = bytearray(path.read_bytes())
    content[content.index(b"Harbour")] = 0xFF
    path.write_bytes(content)
    file = PassageFile.open(path)
    with pytest.raises(DamagedFileError, match="Passage 0"):
        file.text(0)
    assert file.version(0) == 0
