from __future__ import annotations

import gzip
from pathlib import Path

import brotli
import lz4.frame
import pytest

from corpus_builder.capture import Capture, Loss, Shard
from corpus_builder.coding import BODY_LIMIT
from corpus_builder.errors import BadSourceError
from corpus_builder.sources.warc import WarcSource
from tests.corpus_builder.archives import good, http, packed, page, read_all, warc, written

TIME = 1768464000  # 2026-01-15T08:00:00Z


def read(folder: Path, data: bytes, name: str = "x.warc") -> tuple[list[Capture], list[Loss]]:
    return read_all(WarcSource([written(folder, name, data)], default_time=7))


def one(folder: Path, data: bytes) -> Capture:
    captures, losses = read(folder, data)
    assert [loss for loss in losses if not loss.note] == []
    (capture,) = captures
    return capture


def lost(folder: Path, data: bytes) -> list[tuple[str, bool]]:
    captures, losses = read(folder, data)
    assert captures == []
    return [(loss.reason, loss.note) for loss in losses]


def test_a_response(tmp_path: Path) -> None:
    assert one(tmp_path, good("a")) == Capture(
        url="https://pages.example/a",
        time=TIME,
        origin="x.warc",
        offset=0,
        status=200,
        mime="text/html",
        charset="utf-8",
        body=page("a"),
    )


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("x.warc", good("a") + good("b")),
        ("x.warc.gz", packed(good("a"), good("b"))),
        ("x.warc.lz4", lz4.frame.compress(good("a")) + lz4.frame.compress(good("b"))),
        ("endings.say.nothing", packed(good("a"), good("b"))),
    ],
)
def test_packings(tmp_path: Path, name: str, data: bytes) -> None:
    captures, losses = read(tmp_path, data, name)
    assert [capture.body for capture in captures] == [page("a"), page("b")]
    assert losses == []
    assert captures[0].origin == name


def test_one_shard_a_file_in_the_order_given(tmp_path: Path) -> None:
    paths = [written(tmp_path, name, good(name)) for name in ("b", "a")]
    source = WarcSource(paths, default_time=3)
    assert source.shards() == [
        Shard("warc", paths[0], {"default_time": "3"}),
        Shard("warc", paths[1], {"default_time": "3"}),
    ]
    assert [capture.origin for capture in read_all(source)[0]] == ["b", "a"]


@pytest.mark.parametrize(
    "data", [b"this is only a note\n", b"PK\x03\x04zip", gzip.compress(b"note")]
)
def test_a_file_that_is_no_warc_is_refused(tmp_path: Path, data: bytes) -> None:
    path = written(tmp_path, "x.warc.gz", data)
    with pytest.raises(BadSourceError, match=r"x\.warc\.gz is not a WARC"):
        WarcSource([path]).shards()


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadSourceError, match="No such file") as caught:
        WarcSource([tmp_path / "gone.warc"]).shards()
    assert caught.value.hint


def test_an_empty_file_gives_a_note(tmp_path: Path) -> None:
    assert lost(tmp_path, b"") == [("empty file", True)]


@pytest.mark.parametrize("kind", ["request", "warcinfo", "metadata", "unknown"])
def test_other_kinds_are_skipped_silently(tmp_path: Path, kind: str) -> None:
    data = warc(b"x: y\r\n", kind=kind, content_type="application/warc-fields") + good("a")
    captures, losses = read(tmp_path, data)
    assert len(captures) == 1
    assert losses == []


def test_json_metadata_is_noted(tmp_path: Path) -> None:
    data = warc(b"{}", kind="metadata", content_type="application/json")
    assert lost(tmp_path, data) == [("metadata record", True)]


def test_a_resource_is_its_own_body(tmp_path: Path) -> None:
    data = warc(page("a"), kind="resource", content_type="Text/HTML; charset=latin-1")
    capture = one(tmp_path, data)
    assert (capture.body, capture.mime, capture.charset) == (page("a"), "text/html", "latin-1")


def test_a_conversion_is_plain_text_in_utf8(tmp_path: Path) -> None:
    data = warc("Żółw".encode(), kind="conversion", content_type="text/plain")
    capture = one(tmp_path, data)
    assert (capture.mime, capture.charset, capture.text) == ("text/plain", "utf-8", None)
    assert capture.body == "Żółw".encode()


def test_a_response_without_http_head_but_with_a_page_type(tmp_path: Path) -> None:
    capture = one(tmp_path, warc(page("a"), content_type="text/html"))
    assert (capture.status, capture.body) == (200, page("a"))


@pytest.mark.parametrize("block", [b"", page("a")])
def test_a_response_without_http_head(tmp_path: Path, block: bytes) -> None:
    assert lost(tmp_path, warc(block)) == [("no HTTP response", False)]


@pytest.mark.parametrize(
    "uri",
    ["dns:pages.example", "urn:x", "metadata://gnu.org/wget.log", "ftp://x.example/", "file:///a"],
)
def test_other_schemes_are_skipped_silently(tmp_path: Path, uri: str) -> None:
    assert lost(tmp_path, warc(b"text", uri=uri, content_type="text/plain")) == []


def test_a_cut_record_of_another_scheme_is_only_noted(tmp_path: Path) -> None:
    data = good("a") + warc(bytes(100), uri="dns:pages.example")[:-40]
    captures, losses = read(tmp_path, data)
    assert len(captures) == 1
    assert [(loss.reason, loss.note) for loss in losses] == [("cut short", True)]


def test_a_response_without_target(tmp_path: Path) -> None:
    captures, losses = read(tmp_path, warc(http(page("a")), uri=None) + good("b"))
    assert [capture.url for capture in captures] == ["https://pages.example/b"]
    assert losses == [Loss("x.warc", 0, "no URI")]


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("<https://x.example/a>", "https://x.example/a"),
        ("https://x.example/a b", "https://x.example/a%20b"),
        (" HTTP://X.example/a ", "HTTP://X.example/a"),
    ],
)
def test_targets_are_cleaned(tmp_path: Path, uri: str, expected: str) -> None:
    assert one(tmp_path, warc(http(page("a")), uri=uri)).url == expected


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_keep_their_target(tmp_path: Path, status: int) -> None:
    data = warc(http(b"moved", status=f"{status} Moved", headers=[("Location", "/b?x=1")]))
    capture = one(tmp_path, data)
    assert (capture.status, capture.location, capture.body) == (status, "/b?x=1", b"")


@pytest.mark.parametrize("status", [404, 410, 500, 503])
def test_errors_keep_their_status_and_lose_their_body(tmp_path: Path, status: int) -> None:
    capture = one(tmp_path, warc(http(b"gone", status=f"{status} X", headers=[("Location", "/b")])))
    assert (capture.status, capture.location, capture.body) == (status, "", b"")


def test_an_unchanged_answer_is_noted(tmp_path: Path) -> None:
    assert lost(tmp_path, warc(http(b"", status="304 Not Modified"))) == [("unchanged", True)]


@pytest.mark.parametrize(
    ("range_", "whole"),
    [("bytes 0-4/5", True), ("bytes 0-4/9", False), ("bytes 4-8/9", False), ("", False)],
)
def test_a_part_of_a_body_is_no_page(tmp_path: Path, range_: str, whole: bool) -> None:
    data = warc(http(b"hello", status="206 Partial", headers=[("Content-Range", range_)]))
    captures, losses = read(tmp_path, data)
    assert len(captures) == int(whole)
    assert [loss.reason for loss in losses] == ([] if whole else ["part of a body"])


def test_what_the_crawler_cut_is_no_page(tmp_path: Path) -> None:
    data = warc(http(page("a")), extra=[("WARC-Truncated", "length")])
    assert lost(tmp_path, data) == [("cut short by the crawler", False)]


def test_segmented_records_are_told(tmp_path: Path) -> None:
    data = warc(http(page("a")), extra=[("WARC-Segment-Number", "1")])
    data += warc(b"more", kind="continuation", extra=[("WARC-Segment-Number", "2")])
    assert lost(tmp_path, data) == [("segmented record", False)] * 2


def test_a_revisit_of_the_same_address_adds_nothing(tmp_path: Path) -> None:
    same = [("WARC-Refers-To-Target-URI", "https://pages.example/a")]
    data = good("a") + warc(http(b""), kind="revisit", extra=same) + warc(b"", kind="revisit")
    captures, losses = read(tmp_path, data)
    assert len(captures) == 1
    assert [(loss.reason, loss.note) for loss in losses] == [("unchanged", True)] * 2


def test_a_revisit_of_another_address_is_an_alias_of_it(tmp_path: Path) -> None:
    other = [("WARC-Refers-To-Target-URI", "<https://pages.example/b c>")]
    capture = one(tmp_path, warc(http(b""), kind="revisit", extra=other))
    assert (capture.status, capture.location) == (308, "https://pages.example/b%20c")
    assert capture.url == "https://pages.example/a"


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ([("Content-Encoding", "gzip")], gzip.compress(page("a"))),
        ([("Content-Encoding", "br")], brotli.compress(page("a"))),
        (
            [("Transfer-Encoding", "chunked")],
            b"5\r\n"
            + page("a")[:5]
            + b"\r\n%x\r\n" % (len(page("a")) - 5)
            + page("a")[5:]
            + b"\r\n0\r\n\r\n",
        ),
    ],
)
def test_bodies_are_decoded(tmp_path: Path, headers: list[tuple[str, str]], body: bytes) -> None:
    assert one(tmp_path, warc(http(body, headers=headers, length=False))).body == page("a")


@pytest.mark.parametrize(
    ("headers", "body", "reason"),
    [
        ([("Content-Encoding", "gzip")], gzip.compress(page("a"))[:-20], "cut short"),
        ([("Content-Encoding", "gzip")], gzip.compress(bytes(BODY_LIMIT + 1)), "too large"),
        ([("Content-Encoding", "gzip, br, gzip")], b"x", "too many content codings"),
        ([("Content-Length", "900")], b"short", "cut short"),
    ],
)
def test_bodies_that_cannot_be_decoded(
    tmp_path: Path, headers: list[tuple[str, str]], body: bytes, reason: str
) -> None:
    assert lost(tmp_path, warc(http(body, headers=headers, length=False))) == [(reason, False)]


def test_a_body_above_the_limit_is_told(tmp_path: Path) -> None:
    assert lost(tmp_path, warc(http(bytes(BODY_LIMIT + 1)))) == [("too large", False)]
    resource = warc(b"a" * (BODY_LIMIT + 1), kind="resource", content_type="text/plain")
    assert lost(tmp_path, resource) == [("too large", False)]


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        ("2026-01-15T08:00:00Z", TIME),
        ("2026-01-15T08:00:00.123456Z", TIME),
        ("20260115080000", TIME),
        ("2008-10-294T05:21:46-0700", 1233162356),  # unreadable, so the HTTP date counts
    ],
)
def test_capture_times(tmp_path: Path, date: str, expected: int) -> None:
    headers = [("Date", "Wed, 28 Jan 2009 17:05:56 GMT")]
    assert one(tmp_path, warc(http(page("a"), headers=headers), date=date)).time == expected


def test_a_record_without_usable_date_gets_the_default_with_a_note(tmp_path: Path) -> None:
    captures, losses = read(tmp_path, warc(http(page("a")), date="yesterday"))
    assert [capture.time for capture in captures] == [7]
    assert [(loss.reason, loss.note) for loss in losses] == [("no usable date", True)]


def test_nothing_is_lost_between_damaged_records(tmp_path: Path) -> None:
    names = [f"p{number}" for number in range(30)]
    parts = []
    for number, name in enumerate(names):
        part = bytearray(packed(good(name)))
        if number % 3 == 0:
            part[-6] ^= 0xFF
        parts.append(bytes(part))
    captures, losses = read(tmp_path, b"".join(parts))
    assert [capture.url.rpartition("/")[2] for capture in captures] == [
        name for number, name in enumerate(names) if number % 3
    ]
    assert [loss.reason for loss in losses] == ["damaged"] * 10
    assert losses[1].offset == sum(len(part) for part in parts[:3])
