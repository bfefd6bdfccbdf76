"""Text and charset: RB-017 to RB-021, the dirty dump, and short texts of RB-028."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.worlds import SHORT_TEXTS, TIMES, Built, Served, parsed

pytestmark = pytest.mark.shared


@pytest.mark.parametrize(
    ("name", "title", "words"),
    [
        ("gb18030-ascii-prefix", "新闻", ["市图书馆延长开放时间", "四万八千册图书"]),
        ("latin1-meta", "Smörgås", ["Frühstück", "süße Brötchen", "90 Öre"]),
        ("utf8-declared-latin1", "Żółw", ["Żółw przeszedł 300 metrów; naïve café Größe"]),
        ("shiftjis-nometa", "図書館", ["町の図書館は四月から午後八時半まで開いています"]),
        ("utf16le-bom", "Résumé", ["Voilà une page encodée en UTF-16"]),
    ],
)
def test_rb_017_and_018_no_mojibake(
    name: str, title: str, words: list[str], served: Served
) -> None:
    page = served.fetch("crawl", f"https://pages.example/{name}")
    assert page["title"] == title
    for word in words:
        assert word in str(page["text"])
    assert "\ufffd" not in str(page["text"])


def test_rb_018_the_header_goes_before_the_page(served: Served) -> None:
    text = served.text("crawl", "https://made.example/header")
    assert "Паром отходит от пристани каждое утро" in text


def test_rb_019_controls_are_taken_out_and_the_rest_stays(served: Served) -> None:
    page = served.fetch("crawl", "https://pages.example/nul-and-controls")
    text = str(page["text"])
    assert page["title"] == "Nul page"
    assert text.count("Beforeafter the zero byte") == 4
    assert text.count("the end of the text is here") == 4
    assert not {letter for letter in text if ord(letter) < 32} - {"\n", "\t"}
    row = served.text("dumps", "https://pages.example/d")
    assert row.startswith("zerobyte The old lighthouse")


def test_rb_020_half_a_pair_becomes_the_replacement_character(served: Served) -> None:
    assert served.text("dumps", "https://pages.example/e").startswith(
        "half \ufffd pair The reading"
    )
    query = b'{"q": "a \\ud83d b"}'
    for path in ("/w/dumps/search", "/w/crawl/search"):
        assert served.ask(path, query).status == 200
    native = served.ask("/w/dumps/v1/search", b'{"query": "half \\ud83d pair"}')
    hits = parsed(native)["hits"]
    assert isinstance(hits, list)
    assert hits[0]["url"] == "https://pages.example/e"
    reader = served.reads("dumps", "/jina/", b'{"url": "https://pages.example/\\ud83d"}')
    assert reader.status == 422


def test_rb_021_a_pdf_is_no_page_without_text(served: Served, builds: dict[str, Built]) -> None:
    reasons = [reason for name, _, reason in builds["crawl"].losses if name == "made.warc"]
    assert reasons.count("no text in PDF") == 2
    for name in ("pdf", "pdf-as-html"):
        url = f"https://made.example/{name}"
        assert served.fetch("crawl", url)["outcome"] == "not_in_world"
        assert b"%PDF" not in served.reads("crawl", f"/{url}").body


def test_the_dirty_dump_keeps_every_good_row(served: Served, builds: dict[str, Built]) -> None:
    told = {
        (line, reason)
        for name, line, reason in builds["dumps"].losses
        if name == "corpus-dirty.jsonl"
    }
    assert told == {
        (2, "invalid JSON"),
        (3, "no text"),
        (4, "no URL"),
        (8, "duplicate url"),
        (9, "not UTF-8"),
        (10, "not an object"),
    }
    outcomes = {
        letter: served.fetch("dumps", f"https://pages.example/{letter}") for letter in "abcdefgz"
    }
    kept = {letter for letter, answer in outcomes.items() if answer["outcome"] == "ok"}
    assert kept == set("adefgz")
    assert outcomes["f"]["title"] == ""
    assert outcomes["a"]["title"] == "Good page"


def test_rb_028_short_texts_get_one_label_each(served: Served, builds: dict[str, Built]) -> None:
    unread = [
        line
        for name, line, reason in builds["dumps"].losses
        if (name, reason) == ("rows.jsonl", "no text")
    ]
    assert len(unread) == TIMES
    for number, text in enumerate(SHORT_TEXTS, 1):
        pages = [
            served.fetch("dumps", f"https://short.example/{number}/{time}") for time in range(TIMES)
        ]
        assert {page["text"] for page in pages} == {text}
        assert {page["language"] for page in pages} == {"und"}


def test_rule_1_neighbours_of_bad_rows_are_there(inputs: Path, served: Served) -> None:
    lines = (inputs / "corpus-cjk.jsonl").read_text().splitlines()
    assert len(lines) == 3
    for name in ("zh", "ja", "en"):
        assert served.text("dumps", f"https://pages.example/{name}")
