"""The text and extraction rows of the case table."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from corpus_builder.capture import Capture, Draft, Loss
from corpus_builder.extract import extract
from corpus_builder.sources.html_folder import HtmlFolderSource
from tests.corpus_builder.archives import read_all

pytestmark = pytest.mark.shared

TIME = 1768464000  # 2026-01-15
XSS = '<img src=x onerror=alert(1)> "><script>alert(2)</script>'
SIGNAL = (
    "The signal mast on the western pier shows two green lights when the harbour is open "
    "and one red light when ships have to wait outside."
)


@pytest.fixture(scope="module")
def drafts(case_inputs: Path) -> dict[str, Draft]:
    """Return what every HTML case gives, by file name without ending."""
    source = HtmlFolderSource(case_inputs, "https://pages.example/", TIME, strip_ending=True)
    captures, losses = read_all(source)
    assert {loss.reason for loss in losses} == {"not HTML"}
    assert all(loss.note for loss in losses)
    found = {capture.url.rpartition("/")[2]: extract(capture) for capture in captures}
    lost = [item for item in found.values() if isinstance(item, Loss)]
    assert lost == []
    return {name: item for name, item in found.items() if isinstance(item, Draft)}


@pytest.mark.parametrize(
    ("name", "title", "language", "passage"),
    [
        ("gb18030-ascii-prefix", "新闻", "zh", "市图书馆延长开放时间"),
        ("latin1-meta", "Smörgås", "de", "Frühstück"),
        ("utf8-declared-latin1", "Żółw", "pl", "Żółw przeszedł 300 metrów; naïve café Größe."),
        ("shiftjis-nometa", "図書館", "ja", "町の図書館は四月から"),
        ("utf16le-bom", "Résumé", "fr", "Voilà une page encodée en UTF-16."),
        ("nul-and-controls", "Nul page", "en", "Beforeafter the zero byte, bell, escape[31m, and"),
        ("body-ul", "", "en", "- Saturday 09:00 to 13:00"),
        ("list-in-table", "Opening hours", "en", "| Sat | 11:00 - 18:00 |"),
        ("colspan-bomb", "Wide table", "en", "| a | b | c |"),
        ("footer-dates", "Bridge reopened", "en", "Posted on 4 March 2021"),
        ("prompt-injection", "Tram timetable", "en", "The last tram leaves at 23:40."),
        ("xss", XSS, "en", "Mix 200 g flour. more"),
    ],
)
def test_pages(
    drafts: dict[str, Draft], name: str, title: str, language: str, passage: str
) -> None:
    draft = drafts[name]
    assert draft.key == f"https://pages.example/{name}"
    assert draft.title == title
    assert draft.language == language
    assert passage in draft.text
    assert "\ufffd" not in draft.text
    assert not any(char < " " and char not in "\t\n" for char in draft.text + draft.title)


@pytest.mark.parametrize("name", ["gb18030-ascii-prefix", "shiftjis-nometa", "latin1-meta"])
def test_no_mojibake(drafts: dict[str, Draft], name: str) -> None:
    assert not {"Ã", "å", "‚", "Œ"} & set(drafts[name].text)


def test_each_weekday_stands_next_to_its_hours(drafts: dict[str, Draft]) -> None:
    lines = drafts["list-in-table"].text.split("\n")
    for day, hours in (("Mon", "10:00 - 20:00"), ("Tue", "closed"), ("Sat", "11:00 - 18:00")):
        assert any(day in line and hours in line for line in lines)


def test_hidden_orders_are_absent(drafts: dict[str, Draft]) -> None:
    text = drafts["prompt-injection"].text
    assert "Ignore all earlier" not in text
    assert "169.254" not in text
    assert drafts["prompt-injection"].links == ()


def test_scripts_are_text_or_absent(drafts: dict[str, Draft]) -> None:
    assert "alert" not in drafts["xss"].text
    assert drafts["xss"].links == ()


def test_dates(drafts: dict[str, Draft]) -> None:
    assert drafts["footer-dates"].published == 1614816000  # 4 March 2021
    assert all(draft.published is None or draft.published <= TIME for draft in drafts.values())


def test_a_wide_table_stays_small(drafts: dict[str, Draft]) -> None:
    assert len(drafts["colspan-bomb"].text) < 1000


@pytest.mark.parametrize("mime", ["text/html", "application/pdf"])
def test_a_pdf_is_no_page(shared_dir: Path, mime: str) -> None:
    body = (shared_dir / "cases" / "inputs" / "data-only.pdf").read_bytes()
    found = extract(Capture("https://pages.example/x", TIME, "x", 0, mime=mime, body=body))
    assert isinstance(found, Loss)
    assert (found.reason, found.note) == ("no text in PDF", False)


@pytest.mark.parametrize("depth", [330, 1000, 5000, 20_000])
def test_nested_pages_keep_their_sentence(depth: int) -> None:
    body = f"<html><body>{'<div>' * depth}<p>{SIGNAL}</p>{'</div>' * depth}</body></html>"
    found = extract(Capture("https://pages.example/x", TIME, "x", 0, body=body.encode()))
    assert isinstance(found, Draft)
    assert found.text == SIGNAL


def test_a_page_nested_beyond_all_measure_is_refused() -> None:
    body = f"<html><body>{'<div>' * 200_000}<p>{SIGNAL}</p>{'</div>' * 200_000}</body></html>"
    found = extract(Capture("https://pages.example/x", TIME, "x", 0, body=body.encode()))
    assert isinstance(found, Loss)
    assert found.reason == "too deep"


def test_many_line_breaks_and_a_zero_byte() -> None:
    body = (
        b"<html><body>" + b"<br/>" * 24_000 + b"\x00<p>" + SIGNAL.encode() + b"</p></body></html>"
    )
    found = extract(Capture("https://pages.example/x", TIME, "x", 0, body=body))
    assert isinstance(found, Draft)
    assert found.text == SIGNAL


@pytest.mark.parametrize("text", ["栈", "404 error", "ok", "ՆԵՐԱԾԱԿԱՆ"])
def test_short_texts_have_no_language(text: str) -> None:
    capture = Capture("https://pages.example/x", TIME, "x", 0, text=text)
    found = [extract(capture) for _ in range(20)]
    assert {item.language for item in found if isinstance(item, Draft)} == {"und"}
    assert len(found) == 20


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_pages() -> None:
    def page(number: int) -> bytes:
        rows = "".join(f"<p>Paragraph {number} {row} {SIGNAL}</p>" for row in range(30))
        share = '<div class="share">x</div>' if number % 2 else ""
        return f"<html><title>Page {number}</title><body>{share}{rows}</body></html>".encode()

    def run(start: int, end: int) -> int:
        for number in range(start, end):
            capture = Capture(f"https://pages.example/{number}", TIME, "x", 0, body=page(number))
            assert isinstance(extract(capture), Draft)
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    early = run(0, 500)
    assert run(500, 1500) - early < 20 * 1024
