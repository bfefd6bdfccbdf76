from __future__ import annotations

from datetime import UTC, datetime

import pytest

from corpus_builder.html_page import parse_html
from corpus_builder.page_dates import PageDates, page_dates

CAPTURED = int(datetime(2026, 1, 15, 8, tzinfo=UTC).timestamp())


def at(year: int, month: int, day: int) -> int:
    return int(datetime(year, month, day, tzinfo=UTC).timestamp())


def dates(html: str, captured: int = CAPTURED) -> PageDates:
    page = parse_html(f"<html>{html}</html>", "https://x.example/page")
    assert page is not None
    return page_dates(page, captured)


@pytest.mark.parametrize(
    "html",
    [
        '<meta property="article:published_time" content="2021-03-04T00:00:00Z">',
        '<meta name="date" content="2021-03-04">',
        '<meta name="DC.date.issued" content="2021-03-04">',
        '<meta itemprop="datePublished" content="2021-03-04">',
        '<meta name="citation_publication_date" content="2021-03-04">',
        '<script type="application/ld+json">{"datePublished": "2021-03-04"}</script>',
        '<script type="application/ld+json">{"@graph":[{"datePublished" : "2021-03-04"}]}</script>',
        '<script type="application/ld+json">{"broken": , "datePublished":"2021-03-04"</script>',
        '<time pubdate datetime="2021-03-04">x</time>',
        '<time itemprop="datePublished" datetime="2021-03-04">x</time>',
        '<time class="entry-date published" datetime="2021-03-04">x</time>',
        '<header><time datetime="2021-03-04">x</time></header>',
        "<article><h1>Bridge</h1><p class='byline'>4 March 2021</p></article>",
    ],
)
def test_dates_of_publication(html: str) -> None:
    assert dates(html).published == at(2021, 3, 4)


@pytest.mark.parametrize(
    "html",
    [
        '<meta property="article:modified_time" content="2022-05-06">',
        '<meta property="og:updated_time" content="2022-05-06">',
        '<script type="application/ld+json">{"dateModified": "2022-05-06"}</script>',
        '<meta name="last-modified" content="2022-05-06">',
    ],
)
def test_dates_of_change(html: str) -> None:
    assert dates(html).modified == at(2022, 5, 6)


def test_structured_data_comes_first() -> None:
    html = (
        '<meta property="article:published_time" content="2020-01-01">'
        '<script type="application/ld+json">{"datePublished": "2021-03-04"}</script>'
    )
    assert dates(html).published == at(2021, 3, 4)


def test_the_first_date_that_can_be_believed_counts() -> None:
    html = (
        '<meta property="article:published_time" content="2031-12-31">'
        '<meta name="date" content="soon"><meta name="pubdate" content="2021-03-04">'
    )
    assert dates(html).published == at(2021, 3, 4)


@pytest.mark.parametrize(
    "html",
    [
        '<meta name="date" content="2026-01-16">',
        '<meta name="date" content="2031-12-31">',
        '<meta name="date" content="1901-01-01">',
        '<meta name="date" content="0000-00-00">',
        '<script>var promo = {"expires": "2031-12-31"};</script>',
        '<script>var x = {"datePublished": "2021-03-04"};</script>',
        "<footer>Copyright 1998-2026</footer>",
        "<p>In 1874 the old lighthouse was built.</p>",
        '<p>Posted on <time datetime="2031-12-31">31 December 2031</time></p>',
        "<p>no date</p>",
    ],
)
def test_what_is_no_date_of_publication(html: str) -> None:
    assert dates(html).published is None


def test_a_date_of_the_day_of_the_capture_is_believed() -> None:
    assert dates('<meta name="date" content="2026-01-15">').published == at(2026, 1, 15)


def test_a_change_after_the_capture_is_not_believed() -> None:
    assert dates('<meta name="last-modified" content="2026-02-01">').modified is None


def test_an_unknown_time_of_capture_bounds_nothing() -> None:
    assert dates('<meta name="date" content="2031-12-31">', 0).published == at(2031, 12, 31)


def test_escaped_slashes_in_structured_data() -> None:
    date = r"2021-03-04T00:00:00\u002b00:00"
    html = f'<script type="application/ld+json">{{"datePublished": "{date}"}}</script>'
    assert dates(html).published == at(2021, 3, 4)


def test_a_page_that_names_a_wrong_date_is_not_searched_for_another() -> None:
    html = '<meta name="date" content="2031-12-31"><p>Posted on 4 March 2021</p>'
    assert dates(html).published is None
