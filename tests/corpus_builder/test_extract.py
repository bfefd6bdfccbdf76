from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus_builder.capture import Capture, Draft, Loss
from corpus_builder.extract import ExtractSettings, extract, prepare
from world_core.types import Link
from world_core.urls import canonical

TIME = 1768464000
URL = "https://x.example/docs/page.html"
BODY = "<p>The ferry between the two harbours of Norrvik leaves at 07:10 on working days.</p>"
CAPTURE = Capture(url=URL, time=TIME, origin="x.warc", offset=12, body=BODY.encode())


def draft(capture: Capture = CAPTURE, **changes: Any) -> Draft:  # noqa: ANN401 - any field of a capture
    found = extract(replace(capture, **changes))
    assert isinstance(found, Draft), found
    return found


def html(text: str, **changes: Any) -> Draft:  # noqa: ANN401 - any field of a capture
    return draft(body=text.encode(), **changes)


def loss(**changes: Any) -> Loss:  # noqa: ANN401 - any field of a capture
    found = extract(replace(CAPTURE, **changes))
    assert isinstance(found, Loss), found
    return found


def test_a_page() -> None:
    page = html(
        '<html lang="en"><head><title>Ferry</title><link rel="canonical" href="/ferry">'
        '<meta property="article:published_time" content="2021-03-04">'
        '<meta property="article:modified_time" content="2022-05-06"></head>'
        f'<body><h1>The ferry</h1>{BODY}<a href="other">Other</a></body></html>'
    )
    assert page == Draft(
        key=canonical(URL),
        url=URL,
        time=TIME,
        origin="x.warc",
        offset=12,
        canonical="https://x.example/ferry",
        title="Ferry",
        text=(
            "# The ferry\n\nThe ferry between the two harbours of Norrvik leaves at 07:10 on "
            "working days.\n\nOther"
        ),
        language="en",
        published=1614816000,
        modified=1651795200,
        links=(Link("https://x.example/docs/other", "Other"),),
    )


@pytest.mark.parametrize("url", ["", "ftp://x.example/", "no address", "https://", "\x00"])
def test_a_capture_without_address_of_the_web(url: str) -> None:
    assert loss(url=url) == Loss("x.warc", 12, "not a web address", url)


def test_the_key_folds_what_the_address_shows() -> None:
    page = draft(url="HTTP://X.example:80/a b?utm_source=x#part")
    assert page.key == "https://x.example/a%20b"
    assert page.url.startswith("HTTP://X.example:80/a")


def test_an_own_canonical_address_is_none() -> None:
    assert html(f'<link rel="canonical" href="{URL}#x">{BODY}').canonical == ""
    assert html(f'<link rel="canonical" href="mailto:a@x.example">{BODY}').canonical == ""


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects(status: int) -> None:
    page = draft(status=status, location="../a?b=1", body=b"")
    assert (page.status, page.redirect, page.text) == (status, "https://x.example/a?b=1", "")


def test_a_redirect_to_no_web_address() -> None:
    found = loss(status=301, location="mailto:a@x.example", body=b"")
    assert (found.reason, found.note) == ("redirect to no web address", True)


@pytest.mark.parametrize(("status", "location"), [(404, ""), (500, "/x"), (301, ""), (403, "")])
def test_dead_links(status: int, location: str) -> None:
    page = draft(status=status, location=location, body=b"<p>Not found")
    assert (page.status, page.redirect, page.text, page.title) == (status, "", "", "")


def test_a_page_that_only_sends_its_reader_on() -> None:
    page = html('<meta http-equiv="refresh" content="0; url=other.html"><p>Moved.')
    assert (page.redirect, page.text) == ("https://x.example/docs/other.html", "")


def test_a_page_that_refreshes_itself_is_a_page() -> None:
    page = html(f'<meta http-equiv="refresh" content="0; url={URL}">{BODY}')
    assert (page.redirect, bool(page.text)) == ("", True)


@pytest.mark.parametrize("status", [200, 201, 203, 206])
def test_all_successful_answers_are_pages(status: int) -> None:
    assert draft(status=status).status == 200


@pytest.mark.parametrize(
    ("mime", "body", "reason", "note"),
    [
        ("text/html", b"%PDF-1.4 x", "no text in PDF", False),
        ("application/pdf", b"%PDF-1.4 x", "no text in PDF", False),
        ("image/png", b"\x89PNG", "not a text type", True),
        ("text/css", b"p {}", "not a text type", True),
        ("text/html", b"", "no text", False),
        ("text/html", b"<div><img src=x></div>", "no text", False),
        ("text/html", b"<!-- nothing -->", "no text", False),
        ("text/html", b"<p>Please enable JavaScript.", "script shell", False),
        ("text/html", b"<div>" * 60_000 + b"text", "too deep", False),
        ("text/plain", b" \n ", "no text", False),
    ],
)
def test_what_gives_no_page(mime: str, body: bytes, reason: str, note: bool) -> None:
    assert loss(mime=mime, body=body) == Loss("x.warc", 12, reason, URL, note)


def test_a_capture_without_body() -> None:
    assert loss(body=None).reason == "no text"


def test_too_short_by_setting() -> None:
    capture = replace(CAPTURE, body=b"<p>only three words")
    assert isinstance(extract(capture), Draft)
    found = extract(capture, settings=ExtractSettings(least_words=4))
    assert isinstance(found, Loss)
    assert found.reason == "too short"


def test_plain_text_is_kept_as_it_is() -> None:
    page = draft(
        mime="text/plain", body=b"The title\r\n\r\n  <b>indented</b> \x00\r\n\r\n\r\n\r\nend  \r\n"
    )
    assert page.text == "The title\n\n  <b>indented</b>\n\nend"
    assert (page.title, page.mime) == ("The title", "text/plain")


def test_json_is_kept_as_it_is() -> None:
    page = draft(mime="application/json", body=b'{\n  "a": "word"\n}')
    assert (page.text, page.title) == ('{\n  "a": "word"\n}', "")


def test_charsets_of_header_and_page() -> None:
    text = "<p>Żółw przeszedł 300 metrów.</p>"
    assert "Żółw" in draft(body=text.encode("iso8859-2"), charset="iso-8859-2").text
    assert "Żółw" in draft(body=text.encode(), charset="iso-8859-1").text


def test_dates_of_the_capture_stand_in_for_the_pages() -> None:
    page = draft(published=1000, modified=2000)
    assert (page.published, page.modified) == (1000, 2000)
    late = draft(published=TIME + 1, modified=TIME + 1)
    assert (late.published, late.modified) == (None, None)


ROW = Capture(
    url="https://x.example/row",
    time=TIME,
    origin="x.jsonl",
    offset=3,
    mime="text/plain",
    text="\n\nThe ferry leaves at seven from the old harbour.\n",
    title=" The\nferry ",
    language="en-GB",
    published=1614816000,
)


def test_a_row_of_a_dump_is_a_page_by_declaration() -> None:
    page = draft(ROW)
    assert page == Draft(
        key="https://x.example/row",
        url="https://x.example/row",
        time=TIME,
        origin="x.jsonl",
        offset=3,
        title="The ferry",
        text="The ferry leaves at seven from the old harbour.",
        language="en",
        published=1614816000,
        mime="text/plain",
        declared=True,
    )


def test_a_crawled_page_is_not_declared() -> None:
    assert not draft().declared


def test_a_row_is_cleaned() -> None:
    page = draft(ROW, text="zero\x00byte half \ud83d pair\r\nnext", title="a\x00b \ud83d")
    assert page.text == "zerobyte half \ufffd pair\nnext"
    assert page.title == "ab \ufffd"


def test_a_rows_date_after_its_capture_is_dropped() -> None:
    assert draft(ROW, published=TIME + 1).published is None
    assert draft(ROW, published=TIME + 1, time=0).published == TIME + 1


def test_a_row_without_title() -> None:
    assert draft(ROW, title="").title == ""


def test_a_row_without_text() -> None:
    found = extract(replace(ROW, text=" \n"))
    assert found == Loss("x.jsonl", 3, "no text", "https://x.example/row")


def test_prepare_makes_later_pages_no_different() -> None:
    before = draft()
    prepare()
    assert draft() == before


@settings(max_examples=80, deadline=None)
@given(
    body=st.binary(max_size=400),
    mime=st.sampled_from(["text/html", "text/plain", "", "application/json", "text/xml"]),
    status=st.sampled_from([200, 301, 404]),
    location=st.text(max_size=20),
)
def test_no_capture_raises(body: bytes, mime: str, status: int, location: str) -> None:
    capture = replace(CAPTURE, body=body, mime=mime, status=status, location=location)
    found = extract(capture)
    assert found == extract(capture)
    if isinstance(found, Draft):
        (found.text + found.title + found.url + found.redirect).encode("utf-8")


@settings(max_examples=80, deadline=None)
@given(text=st.text(alphabet=st.characters(), max_size=300), title=st.text(max_size=30))
def test_no_row_raises_and_all_can_be_stored(text: str, title: str) -> None:
    found = extract(replace(ROW, text=text, title=title))
    if isinstance(found, Draft):
        (found.text + found.title).encode("utf-8")
        assert "\x00" not in found.text + found.title
