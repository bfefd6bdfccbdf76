from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus_builder.capture import Capture, Loss
from corpus_builder.errors import BadSourceError
from corpus_builder.sources.jsonl import JsonlSource
from tests.corpus_builder.archives import read_all, written

ROW = {"url": "https://x.example/a", "title": "A", "text": "Some text."}


def read(
    folder: Path, *rows: object, default_time: int = 5, url_template: str = ""
) -> tuple[list[Capture], list[Loss]]:
    lines = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]
    path = written(folder, "x.jsonl", b"\n".join(lines) + b"\n")
    return read_all(JsonlSource([path], default_time, url_template))


def one(folder: Path, row: object, **settings: str) -> Capture:
    (capture,), losses = read(folder, row, **settings)  # type: ignore[arg-type]
    assert losses == []
    return capture


def test_the_plain_form(tmp_path: Path) -> None:
    assert one(tmp_path, ROW) == Capture(
        url="https://x.example/a",
        time=5,
        origin="x.jsonl",
        offset=1,
        mime="text/plain",
        text="Some text.",
        title="A",
    )


@pytest.mark.parametrize(
    "row",
    [
        {"url": "https://x.example/a", "title": "A", "doc": "Some text."},
        {"url": "https://x.example/a", "title": "A", "content": "Some text."},
        {"url": "https://x.example/a", "title": "A", "contents": "Some text."},
        {"id": "7", "text": "Some text.", "metadata": {"url": "https://x.example/a", "title": "A"}},
        {"link": "https://x.example/a", "title": "A", "text": "Some text.", "doc": "Other."},
        {**ROW, "metadata": {"url": "https://other.example/", "title": "Other"}},
        {**ROW, "metadata": "no object"},
    ],
)
def test_other_forms(tmp_path: Path, row: object) -> None:
    capture = one(tmp_path, row)
    assert (capture.url, capture.title, capture.text) == ("https://x.example/a", "A", "Some text.")


@pytest.mark.parametrize(
    ("fields", "time", "published"),
    [
        ({}, 5, None),
        ({"timestamp": "2026-01-15T08:00:00Z"}, 1768464000, None),
        ({"timestamp": 1768464000}, 1768464000, None),
        ({"date": "2026-01-15"}, 1768435200, 1768435200),
        ({"published": "2026-01-15"}, 1768435200, 1768435200),
        ({"published": "2021-03-04", "timestamp": "2026-01-15"}, 1768435200, 1614816000),
        ({"added": "2026-01-15T08:00:00.000Z", "created": "2021-03-04"}, 1768464000, 1614816000),
        (
            {"metadata": {"crawl_date": "2026-01-15", "published_date": "2021-03-04"}},
            1768435200,
            1614816000,
        ),
        ({"date": "2026-01-15", "dump": "CC-MAIN-2026-04"}, 1768435200, None),
        ({"date": "unknown", "timestamp": None}, 5, None),
        ({"date": True}, 5, None),
    ],
)
def test_times(tmp_path: Path, fields: dict[str, object], time: int, published: int | None) -> None:
    capture = one(tmp_path, {**ROW, **fields})
    assert (capture.time, capture.published) == (time, published)


def test_changed_times(tmp_path: Path) -> None:
    assert one(tmp_path, {**ROW, "modified": "2026-01-15"}).modified == 1768435200


@pytest.mark.parametrize(
    "fields", [{"language": "de"}, {"lang": "de"}, {"metadata": {"language": "de"}}]
)
def test_languages(tmp_path: Path, fields: dict[str, object]) -> None:
    assert one(tmp_path, {**ROW, **fields}).language == "de"


def test_a_very_long_language_is_cut(tmp_path: Path) -> None:
    assert len(one(tmp_path, {**ROW, "language": "x" * 1000}).language) == 35


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"title": "no url", "text": "x"}, "no URL"),
        ({"url": "", "text": "x"}, "no URL"),
        ({"url": None, "text": "x"}, "no URL"),
        ({"url": 3, "text": "x"}, "no URL"),
        ({"url": "https://x.example/"}, "no text"),
        ({"url": "https://x.example/", "text": None}, "no text"),
        ({"url": "https://x.example/", "text": ["x"]}, "no text"),
        ({"url": "https://x.example/", "text": " \n "}, "no text"),
        ([1, 2], "not an object"),
        ("text", "not an object"),
        (None, "not an object"),
        (3, "not an object"),
        (b'{"url": "https://x.example/"', "invalid JSON"),
        (b"{'url': 1}", "invalid JSON"),
        (b"[" * 100_000, "invalid JSON"),
        (b'{"n": ' + b"9" * 10_000 + b"}", "invalid JSON"),
        (b"\xff\xfe not utf-8", "not UTF-8"),
        (b'{"url": "caf\xe9"}', "not UTF-8"),
    ],
)
def test_rows_that_give_no_page(tmp_path: Path, row: object, reason: str) -> None:
    captures, losses = read(tmp_path, ROW, row, {**ROW, "url": "https://x.example/b"})
    assert [capture.offset for capture in captures] == [1, 3]
    assert [(loss.origin, loss.offset, loss.reason, loss.note) for loss in losses] == [
        ("x.jsonl", 2, reason, False)
    ]


def test_a_row_with_nan_is_kept_without_the_field(tmp_path: Path) -> None:
    line = b'{"url": "https://x.example/a", "title": NaN, "text": "x", "date": Infinity}'
    capture = one(tmp_path, line)
    assert (capture.title, capture.published) == ("", None)


def test_half_surrogates_and_zero_bytes_reach_the_extraction(tmp_path: Path) -> None:
    line = b'{"url": "https://x.example/a", "title": "half \\ud83d", "text": "zero\\u0000byte"}'
    capture = one(tmp_path, line)
    assert (capture.title, capture.text) == ("half \ud83d", "zero\x00byte")


def test_blank_lines_and_windows_line_ends(tmp_path: Path) -> None:
    path = written(tmp_path, "x.jsonl", b"\xef\xbb\xbf" + json.dumps(ROW).encode() + b"\r\n\r\n\n")
    captures, losses = read_all(JsonlSource([path]))
    assert len(captures) == 1
    assert losses == []


@pytest.mark.parametrize("name", ["x.jsonl.gz", "x.jsonl.zst", "x.jsonl"])
def test_packed_files(tmp_path: Path, name: str) -> None:
    data = b"".join(
        json.dumps({**ROW, "url": f"https://x.example/{number}"}).encode() + b"\n"
        for number in range(3000)
    )
    half = data.index(b"\n", len(data) // 2) - 7
    parts = (data[:half], data[half:])
    pack = {"x.jsonl.gz": gzip.compress, "x.jsonl.zst": zstandard.ZstdCompressor().compress}.get(
        name
    )
    path = written(tmp_path, name, b"".join(pack(part) for part in parts) if pack else data)
    captures, losses = read_all(JsonlSource([path]))
    assert [capture.offset for capture in captures] == list(range(1, 3001))
    assert losses == []


def test_a_cut_packed_file_says_where(tmp_path: Path) -> None:
    data = b"".join(
        json.dumps(
            {**ROW, "url": f"https://x.example/{number}", "text": f"{number} " * 50}
        ).encode()
        + b"\n"
        for number in range(3000)
    )
    path = written(tmp_path, "x.jsonl.gz", gzip.compress(data)[:-2000])
    captures, losses = read_all(JsonlSource([path]))
    assert 0 < len(captures) < 3000
    assert [(loss.offset, loss.reason) for loss in losses] == [(len(captures) + 1, "cut short")]


def test_a_line_above_the_limit_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corpus_builder.sources.jsonl.LINE_LIMIT", 1000)
    captures, losses = read(
        tmp_path, ROW, {**ROW, "text": "x" * 600_000}, {**ROW, "url": "https://x.example/b"}
    )
    assert [capture.offset for capture in captures] == [1, 3]
    assert [(loss.offset, loss.reason) for loss in losses] == [(2, "line too long")]


@pytest.mark.parametrize(
    ("template", "row", "expected"),
    [
        ("https://cacm.example/{id}", {"id": "CACM-1"}, "https://cacm.example/CACM-1"),
        ("https://x.example/{id}", {"id": 7}, "https://x.example/7"),
        ("https://x.example/{id}", {"id": "a/b c?d"}, "https://x.example/a%2Fb%20c%3Fd"),
        ("https://x.example/{lang}/{id}", {"id": "1", "lang": "de"}, "https://x.example/de/1"),
        ("https://x.example/{id}", {"id": "half \ud83d"}, "https://x.example/half%20%3F"),
    ],
)
def test_addresses_from_a_template(
    tmp_path: Path, template: str, row: dict[str, object], expected: str
) -> None:
    assert one(tmp_path, {**row, "text": "x"}, url_template=template).url == expected


@pytest.mark.parametrize("row", [{}, {"id": ""}, {"id": None}, {"id": ["x"]}])
def test_a_row_without_the_fields_of_the_template(tmp_path: Path, row: dict[str, object]) -> None:
    captures, losses = read(tmp_path, {**row, "text": "x"}, url_template="https://x.example/{id}")
    assert captures == []
    assert [loss.reason for loss in losses] == ["no URL"]


def test_a_row_with_an_address_needs_no_template(tmp_path: Path) -> None:
    capture = one(tmp_path, {**ROW, "id": "9"}, url_template="https://y.example/{id}")
    assert capture.url == ROW["url"]


@pytest.mark.parametrize("content", [b"just\ntext\n", b"[1]\n[2]\n", b"\x1f\x8b\x08broken"])
def test_a_file_that_is_no_jsonl_is_refused(tmp_path: Path, content: bytes) -> None:
    path = written(tmp_path, "x.jsonl", content)
    with pytest.raises(BadSourceError, match=r"x\.jsonl is not JSONL"):
        JsonlSource([path]).shards()


def test_a_file_whose_objects_come_after_other_lines_is_read(tmp_path: Path) -> None:
    captures, losses = read(tmp_path, b"broken", [1], ROW)
    assert len(captures) == 1
    assert len(losses) == 2


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadSourceError, match="cannot be read"):
        JsonlSource([tmp_path / "gone.jsonl"]).shards()


def test_an_empty_file_gives_a_note(tmp_path: Path) -> None:
    path = written(tmp_path, "x.jsonl", b"")
    assert read_all(JsonlSource([path])) == ([], [Loss("x.jsonl", 0, "empty file", note=True)])


@settings(max_examples=60, deadline=None)
@given(lines=st.lists(st.one_of(st.binary(max_size=60), st.just(json.dumps(ROW).encode()))))
def test_every_line_is_a_capture_or_a_loss(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]
) -> None:
    lines = [line.replace(b"\n", b" ") for line in lines]
    path = written(tmp_path_factory.getbasetemp(), "x.jsonl", b"\n".join(lines))
    source = JsonlSource([path])
    shard = type("S", (), {"path": path, "arguments": {}})()
    items = list(source.read(shard))
    if path.stat().st_size and not path.read_bytes().startswith((b"\x1f\x8b", b"\x28\xb5")):
        assert len(items) == sum(1 for line in lines if line.strip())
