from __future__ import annotations

import gzip
import io

import lz4.frame
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus_builder.sources.members import Member, holds_record, members, starts_record
from tests.corpus_builder.archives import good, packed


def pieces(data: bytes) -> list[tuple[int, bytes, bool, bool]]:
    found = []
    for member in members(io.BytesIO(data)):
        member.stream.seek(0)
        found.append((member.offset, member.stream.read(), member.sound, member.whole))
    return found


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"WARC/1.0\r\nWARC-Type: response\r\n", True),
        (b"WARC/1.1\n", True),
        (b"WARC/0.18\r\n", True),
        (b"\r\n\r\nWARC/1.0\r\n", True),
        (b"warc/1.0\r\n", True),
        (b"filedesc://x.arc 0.0.0.0 20140216050221 text/plain 75\n1 0 Name\n", True),
        (b"http://example.com/a b 1.2.3.4 20140216050221 text/html 12\n", True),
        (b"WARC/", False),
        (b"WARCS and peace\n", False),
        (b"this file is only a note about a crawl\nwith two lines\n", False),
        (b"http://example.com/ is down\n", False),
        (b"PK\x03\x04", False),
        (b"", False),
    ],
)
def test_starts_record(head: bytes, expected: bool) -> None:
    assert starts_record(head) is expected


def test_a_plain_file_is_one_member() -> None:
    data = good("a") + good("b")
    assert pieces(data) == [(0, data, True, True)]
    assert [member.packed for member in members(io.BytesIO(data))] == [False]


def test_one_member_a_record() -> None:
    first, second = good("a"), good("b")
    assert pieces(packed(first, second)) == [
        (0, first, True, True),
        (len(packed(first)), second, True, True),
    ]


def test_lz4_frames() -> None:
    first, second = good("a"), good("b")
    frame = lz4.frame.compress(first)
    assert pieces(frame + lz4.frame.compress(second)) == [
        (0, first, True, True),
        (len(frame), second, True, True),
    ]


def test_a_member_without_head_continues_the_one_before() -> None:
    record = good("a")
    data = packed(record[:200], record[200:300], record[300:], good("b"))
    assert pieces(data) == [
        (0, record, True, True),
        (len(packed(record[:200], record[200:300], record[300:])), good("b"), True, True),
    ]


def test_a_file_cut_inside_a_member() -> None:
    data = packed(good("a"), good("b"))[:-30]
    first, second = pieces(data)
    assert first[2:] == (True, True)
    assert second[0] == len(packed(good("a")))
    assert second[2:] == (True, False)
    assert good("b").startswith(second[1])


def test_reading_resumes_after_a_wrong_checksum() -> None:
    first, second, third = packed(good("a")), bytearray(packed(good("b"))), packed(good("c"))
    second[-6] ^= 0xFF
    found = pieces(first + bytes(second) + third)
    assert [(offset, sound) for offset, _, sound, _ in found] == [
        (0, True),
        (len(first), False),
        (len(first) + len(second), True),
    ]
    assert found[2][1] == good("c")


def test_reading_resumes_after_a_broken_stream() -> None:
    first, second, third = packed(good("a")), bytearray(packed(good("b"))), packed(good("c"))
    second[20:60] = b"\xff" * 40
    found = pieces(first + bytes(second) + third)
    assert [item[1] for item in found if item[2] and item[3]] == [good("a"), good("c")]
    assert not found[1][2]


def test_a_damaged_piece_is_never_glued_to_a_sound_one() -> None:
    broken = bytearray(packed(b"no record at all, just text"))
    broken[-6] ^= 0xFF
    found = pieces(packed(good("a")) + bytes(broken) + packed(good("b")))
    assert [item[1] for item in found if item[2]] == [good("a"), good("b")]


def test_zero_padding_between_members_is_skipped() -> None:
    first = packed(good("a"))
    found = pieces(first + bytes(512) + packed(good("b")))
    assert [item[0] for item in found] == [0, len(first) + 512]


def test_a_magic_number_inside_a_member_is_no_member() -> None:
    # Stored, not deflated, so that the bytes of the body stand in the file as they are.
    body = b"\x1f\x8b\x08" * 50
    record = good("a") + body
    first = gzip.compress(record, 0, mtime=0)
    found = pieces(first + packed(good("b")))
    assert [item[0] for item in found] == [0, len(first)]


def test_a_magic_number_in_a_damaged_member_is_not_taken_for_the_next() -> None:
    record = good("a") + b"\x1f\x8b\x08\x00" * 50
    first = bytearray(gzip.compress(record, 0, mtime=0))
    first[-6] ^= 0xFF
    found = pieces(bytes(first) + packed(good("b")))
    assert [item[1] for item in found if item[2]] == [good("b")]
    assert len(found) == 2


def test_a_member_beyond_the_limit_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corpus_builder.sources.members.MEMBER_LIMIT", 100_000)
    found = pieces(packed(good("a") + bytes(1_000_000), good("b")))
    assert not found[0][3]
    assert len(found[0][1]) < 200_000
    assert found[1][1] == good("b")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (good("a"), True),
        (packed(good("a")), True),
        (lz4.frame.compress(good("a")), True),
        (gzip.compress(b"just text"), False),
        (gzip.compress(b"just text") + packed(good("a")), True),
        (b"\x1f\x8b\x08broken" + packed(good("a")), True),
        (b"just text", False),
        (b"PK\x03\x04" + good("a"), False),
        (b"", False),
    ],
)
def test_holds_record(data: bytes, expected: bool) -> None:
    assert holds_record(io.BytesIO(data)) is expected


def test_members_close_nothing_they_do_not_own() -> None:
    file = io.BytesIO(good("a"))
    member = next(members(file))
    assert isinstance(member, Member)
    assert member.stream is file


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_flipped_byte_costs_at_most_its_own_member(data: st.DataObject) -> None:
    names = ["a", "b", "c"]
    parts = [packed(good(name)) for name in names]
    broken = data.draw(st.integers(0, 2))
    at = data.draw(st.integers(0, len(parts[broken]) - 1))
    damaged = bytearray(parts[broken])
    damaged[at] ^= data.draw(st.integers(1, 255))
    whole = b"".join(bytes(damaged) if i == broken else part for i, part in enumerate(parts))
    if broken == 0 and at < 3:
        return  # without its first bytes the file is no gzip file
    sound = {item[1] for item in pieces(whole) if item[2] and item[3]}
    assert {good(name) for i, name in enumerate(names) if i != broken} <= sound
