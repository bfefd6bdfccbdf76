from __future__ import annotations

import gzip
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus_builder.capture import Loss
from corpus_builder.sources.records import Record, read_records
from tests.corpus_builder.archives import digest, good, http, packed, page, warc

LIMIT = 100_000


def read(data: bytes, limit: int = LIMIT) -> tuple[list[Record], list[Loss]]:
    items = list(read_records(io.BytesIO(data), "x.warc", limit))
    records = [item for item in items if isinstance(item, Record)]
    return records, [item for item in items if isinstance(item, Loss)]


def uris(data: bytes) -> list[str]:
    return [record.uri.rpartition("/")[2] for record in read(data)[0]]


def reasons(data: bytes, *, notes: bool = False) -> list[tuple[int, str]]:
    return [(loss.offset, loss.reason) for loss in read(data)[1] if notes or not loss.note]


def test_records_of_a_plain_file_with_their_offsets() -> None:
    records, losses = read(good("a") + good("b"))
    assert [(record.offset, record.uri) for record in records] == [
        (0, "https://pages.example/a"),
        (len(good("a")), "https://pages.example/b"),
    ]
    assert losses == []
    assert records[0].kind == "response"
    assert records[0].block == http(page("a"))


def test_offsets_of_a_packed_file_are_those_of_the_members() -> None:
    records, _ = read(packed(good("a"), good("b")))
    assert [record.offset for record in records] == [0, len(packed(good("a")))]


def test_several_records_in_one_member_are_read_with_one_note() -> None:
    records, losses = read(packed(good("a") + good("b") + good("c"), good("d") + good("e")))
    assert len(records) == 5
    assert [(loss.reason, loss.note) for loss in losses] == [
        ("several records in one gzip member", True)
    ]


def test_blocks_of_other_kinds_are_not_loaded() -> None:
    records, _ = read(warc(b"GET / HTTP/1.1\r\n\r\n", kind="request") + good("a"))
    assert [(record.kind, bool(record.block)) for record in records] == [
        ("request", False),
        ("response", True),
    ]


@pytest.mark.parametrize("end", [b"\r\n\r\n", b"\n\n", b"\r\n", b"", b"\r\n\r\n\r\n\r\n"])
def test_the_blank_lines_between_records_may_be_wrong(end: bytes) -> None:
    records = [warc(http(page(name)), uri=f"https://x.example/{name}", end=end) for name in "abc"]
    assert uris(b"".join(records)) == ["a", "b", "c"]
    assert reasons(b"".join(records)) == []


def test_headers_with_line_feeds_only() -> None:
    block = b"HTTP/1.1 200 OK\n\nhello"
    record = (
        b"WARC/1.0\nWARC-Type: response\nWARC-Target-URI: https://x.example/a\n"
        b"Content-Length: " + str(len(block)).encode() + b"\n\n" + block + b"\n\n"
    )
    assert uris(record + record) == ["a", "a"]


def test_folded_and_repeated_headers() -> None:
    record = warc(
        http(page("a")),
        uri=None,
        extra=[("WARC-Target-URI", "https://x.example/a"), ("WARC-Target-URI", "https://no/")],
    ).replace(b"WARC-Date: 2026", b"WARC-Note: one\r\n two\r\nWARC-Date: 2026")
    (found,), losses = read(record)
    assert found.uri == "https://x.example/a"
    assert found.headers["warc-note"] == "one two"
    assert losses == []


def test_target_addresses_in_angle_brackets() -> None:
    (record,), _ = read(warc(http(b"x"), uri="<https://x.example/a>"))
    assert record.uri == "https://x.example/a"


def test_a_length_too_short_is_mended_by_the_http_length() -> None:
    block = http(page("a"))
    data = warc(block, length=len(block) - 5) + good("b")
    records, losses = read(data)
    assert [record.block for record in records] == [block, http(page("b"))]
    assert [(loss.offset, loss.reason, loss.note) for loss in losses] == [
        (0, "wrong length, mended", True)
    ]


def test_a_length_too_long_is_mended_and_its_neighbour_is_not_swallowed() -> None:
    block = http(page("a"))
    data = warc(block, length=len(block) + 100) + good("b") + good("c")
    assert uris(data) == ["a", "b", "c"]
    assert read(data)[0][0].block == block


def test_a_wrong_length_is_mended_by_the_digest() -> None:
    block = http(page("a"), length=False)
    data = warc(block, length=len(block) - 9, extra=[digest(block)]) + good("b")
    records, _ = read(data)
    assert records[0].block == block


def test_a_wrong_length_that_nothing_proves_is_a_loss() -> None:
    block = http(page("a"), length=False)
    data = warc(block, length=len(block) - 9, uri="https://x.example/a") + good("b")
    assert uris(data) == ["b"]
    assert reasons(data) == [(0, "wrong length")]


def test_a_body_shorter_than_its_http_length_is_not_mended() -> None:
    block = http(page("a"))[:-20]
    data = warc(block, length=len(block) + 20) + good("b")
    assert uris(data) == ["b"]
    assert reasons(data) == [(0, "wrong length")]


def test_junk_after_a_sound_record_is_told_and_skipped() -> None:
    data = good("a") + b"some junk\r\n" + good("b")
    assert uris(data) == ["a", "b"]
    assert reasons(data) == [(len(good("a")), "data between records")]


def test_junk_at_the_end_is_told() -> None:
    data = good("a") + b"some junk\r\n"
    assert uris(data) == ["a"]
    assert reasons(data) == [(len(good("a")), "data between records")]


@pytest.mark.parametrize("length", ["10000000000000", "99999999999999999999999", "-1", "abc", ""])
def test_an_absurd_length_allocates_nothing_and_swallows_nothing(length: str) -> None:
    block = http(page("b"), length=False)
    data = good("a") + warc(block, uri="https://x.example/b", length=length) + good("c")
    assert uris(data) == ["a", "c"]
    assert [offset for offset, _ in reasons(data)] == [len(good("a"))]


def test_a_huge_length_is_a_cut_record_even_if_the_http_length_fits() -> None:
    data = good("a") + warc(http(page("b")), length=10**13) + good("c")
    assert uris(data) == ["a", "c"]
    assert reasons(data) == [(len(good("a")), "cut short")]


def test_a_missing_length_is_made_up_for_by_the_http_length() -> None:
    data = warc(http(page("a")), length="") + good("b")
    assert uris(data) == ["a", "b"]
    assert reasons(data) == []


def test_a_plain_file_that_ends_inside_a_record() -> None:
    data = good("a") + good("b")[:-40]
    assert uris(data) == ["a"]
    assert reasons(data) == [(len(good("a")), "cut short")]


def test_a_plain_file_that_ends_inside_a_header() -> None:
    data = good("a") + good("b")[:60]
    assert uris(data) == ["a"]
    assert len(reasons(data)) == 1


def test_a_last_record_whose_length_counts_other_line_ends_is_kept() -> None:
    block = http(page("a"), newline="\n")
    data = warc(block, length=len(block) + 13, end=b"\n")
    records, losses = read(data)
    assert records[0].block == block
    assert [loss.note for loss in losses] == [True]


def test_a_packed_file_that_ends_inside_a_record() -> None:
    data = packed(good("a"), good("b"))[:-40]
    assert uris(data) == ["a"]
    assert reasons(data) == [(len(packed(good("a"))), "cut short")]


def test_a_packed_file_that_ends_inside_the_checksum_keeps_the_record_with_a_note() -> None:
    data = packed(good("a"), good("b"))[:-3]
    records, losses = read(data)
    assert [record.uri[-1] for record in records] == ["a", "b"]
    assert [(loss.reason, loss.note) for loss in losses] == [("cut short", True)]


def test_a_damaged_member_costs_its_record() -> None:
    middle = bytearray(packed(good("b")))
    middle[-6] ^= 1
    data = packed(good("a")) + bytes(middle) + packed(good("c"))
    assert uris(data) == ["a", "c"]
    assert reasons(data) == [(len(packed(good("a"))), "damaged")]


def test_of_a_damaged_whole_file_gzip_only_proven_records_are_kept() -> None:
    blocks = [http(page(str(number)) + bytes(60_000)) for number in range(4)]
    records = [
        warc(block, uri=f"https://x.example/{number}", extra=[digest(block)] * (number != 1))
        for number, block in enumerate(blocks)
    ]
    data = bytearray(gzip.compress(b"".join(records), mtime=0))
    data[-6] ^= 1
    assert uris(bytes(data)) == ["0", "2"]
    assert [reason for _, reason in reasons(bytes(data))] == ["damaged", "damaged"]


def test_a_block_above_the_limit_is_too_large() -> None:
    records, losses = read(warc(bytes(2000)) + good("b"), limit=1000)
    assert [record.uri[-1] for record in records] == ["b"]
    assert [(loss.offset, loss.reason) for loss in losses] == [(0, "too large")]


def test_a_cut_request_costs_no_page() -> None:
    data = good("a") + warc(b"GET / HTTP/1.1\r\n\r\n", kind="request")[:-15]
    assert reasons(data) == []
    assert reasons(data, notes=True) == [(len(good("a")), "cut short")]


def arc(
    url: str, body: bytes, *, length: int | str | None = None, date: str = "20140216050221"
) -> bytes:
    size = len(body) if length is None else length
    return f"{url} 93.184.216.119 {date} text/html {size}\n".encode() + body + b"\n"


ARC_HEAD = (
    b"filedesc://x.arc 127.0.0.1 20140216050221 text/plain 75\n1 0 LiveWeb Capture\n"
    b"URL IP-address Archive-date Content-type Archive-length\n\n"
)


def test_arc_records() -> None:
    records, losses = read(ARC_HEAD + arc("http://x.example/a", http(page("a"))))
    assert [(record.kind, record.uri) for record in records] == [
        ("warcinfo", "filedesc://x.arc"),
        ("response", "http://x.example/a"),
    ]
    assert records[1].headers["warc-date"] == "20140216050221"
    assert losses == []


def test_an_arc_address_with_spaces() -> None:
    records, _ = read(ARC_HEAD + arc("http://x.example/?q=a b c", http(page("a"))))
    assert records[1].uri == "http://x.example/?q=a b c"


def test_arc_of_the_second_version() -> None:
    body = http(page("a"))
    line = f"http://x.example/a 1.2.3.4 20140216050221 text/html 200 - - 0 x.arc {len(body)}\n"
    records, _ = read(ARC_HEAD + line.encode() + body + b"\n")
    assert (records[1].uri, records[1].headers["content-type"]) == (
        "http://x.example/a",
        "text/html",
    )


@pytest.mark.parametrize("length", [-1, "abc"])
def test_a_bad_arc_length_costs_its_record_only(length: int | str) -> None:
    data = (
        ARC_HEAD
        + arc("http://x.example/a", http(page("a"), length=False), length=length)
        + arc("http://x.example/b", http(page("b")))
    )
    assert uris(data)[-1:] == ["b"]
    assert reasons(data) == [(len(ARC_HEAD), "wrong length")]


@settings(max_examples=80, deadline=None)
@given(at=st.integers(0, 10_000), junk=st.binary(min_size=1, max_size=40))
def test_any_insertion_leaves_the_untouched_records(at: int, junk: bytes) -> None:
    parts = [good(name) for name in "abcd"]
    data = b"".join(parts)
    at %= len(data)
    damaged = data[:at] + junk + data[at:]
    found = {record.uri for record in read(damaged)[0]}
    start = 0
    for name, part in zip("abcd", parts, strict=True):
        # A record next to the insertion may lose its neighbour's newline, nothing farther does.
        if at < start - 4 or at > start + len(part) + 4:
            assert f"https://pages.example/{name}" in found
        start += len(part)


@settings(max_examples=80, deadline=None)
@given(data=st.binary(max_size=2000))
def test_no_bytes_raise(data: bytes) -> None:
    list(read_records(io.BytesIO(b"WARC/1.0\r\n" + data), "x", LIMIT))
    list(read_records(io.BytesIO(b"\x1f\x8b\x08" + data), "x", LIMIT))
    list(read_records(io.BytesIO(data), "x", LIMIT))


@settings(max_examples=60, deadline=None)
@given(cut=st.integers(1, 2000), compress=st.booleans())
def test_a_cut_file_never_gives_a_cut_block(cut: int, compress: bool) -> None:
    parts = [good(name) for name in "abc"]
    data = packed(*parts) if compress else b"".join(parts)
    shorter = data[: len(data) - cut % len(data)]
    blocks = {http(page(name)) for name in "abc"}
    assert {record.block for record in read(shorter)[0]} <= blocks
