from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import html

from corpus_builder.html_page import parse_html
from corpus_builder.markdown import to_markdown


def markdown(body: str) -> str:
    return to_markdown(html.document_fromstring(f"<html><body>{body}</body></html>"))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<p>one</p><p>two</p>", "one\n\ntwo"),
        ("text <b>bold</b> <i>more</i>\n  text", "text bold more text"),
        ("<p>one<br>two<br/>three</p>", "one\ntwo\nthree"),
        ("<p>a&nbsp;b &amp; c &lt;d&gt;</p>", "a b & c <d>"),
        ("<div>one<div>two</div>three</div>", "one\n\ntwo\n\nthree"),
        ("<p>a <a href='x'>link</a>, <img src='x' alt='picture'>end</p>", "a link, end"),
        ("<p>with <code>code</code> in it</p>", "with `code` in it"),
        ("<p>with <code>a`b</code> in it</p>", "with a`b in it"),
        ("<p> </p><div></div><span></span>", ""),
        ("before<hr>after", "before\n\nafter"),
        ("<p>one</p>tail<p>two</p>", "one\n\ntail\n\ntwo"),
    ],
)
def test_paragraphs(body: str, expected: str) -> None:
    assert markdown(body) == expected


@pytest.mark.parametrize("level", range(1, 7))
def test_headings(level: int) -> None:
    body = f"<p>before</p><h{level}>The <b>heading</b>\n of it</h{level}><p>after</p>"
    assert markdown(body) == f"before\n\n{'#' * level} The heading of it\n\nafter"


def test_an_empty_heading_is_left_out() -> None:
    assert markdown("<h1> </h1><p>text</p>") == "text"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<ul><li>one<li>two</ul>", "- one\n- two"),
        ("<ol><li>one</li><li>two</li></ol>", "1. one\n2. two"),
        ("<p>a</p><ul><li>one</li></ul><p>b</p>", "a\n\n- one\n\nb"),
        ("<ul><li>one<ul><li>in</li></ul></li><li>two</li></ul>", "- one\n  - in\n- two"),
        ("<ol><li>one<ul><li>in</li></ul></li></ol>", "1. one\n   - in"),
        ("<ul><li><p>one</p><p>more</p></li><li>two</li></ul>", "- one\n\n  more\n- two"),
        ("<ul><li>one<br>two</li></ul>", "- one\n  two"),
        ("<ul><li></li><li>two</li></ul>", "- two"),
        ("<ul><p>stray</p><li>one</li></ul>", "stray\n- one"),
        ("<dl><dt>term</dt><dd>meaning</dd></dl>", "term\n\nmeaning"),
        ("<ul><li><h3>head</h3>text</li></ul>", "- head\n\n  text"),
    ],
)
def test_lists(body: str, expected: str) -> None:
    assert markdown(body) == expected


def test_code_blocks_are_verbatim() -> None:
    body = "<p>a</p><pre><code>\n\nfor x in y:\n    <b>print</b>(x)\n\n  </code></pre><p>b</p>"
    assert markdown(body) == "a\n\n```\nfor x in y:\n    print(x)\n```\n\nb"


def test_a_code_block_in_a_list() -> None:
    assert markdown("<ul><li>one<pre>a\n b</pre></li></ul>") == "- one\n\n  ```\n  a\n   b\n  ```"


def test_an_empty_code_block_is_left_out() -> None:
    assert markdown("<pre> \n </pre><p>x</p>") == "x"


def test_code_with_fences_gets_longer_ones() -> None:
    assert markdown("<pre>```\nx\n```</pre>").startswith("````\n```")


def test_quotes() -> None:
    body = "<blockquote><p>one</p><p>two<br>three</p></blockquote><p>after</p>"
    assert markdown(body) == "> one\n\n> two\n> three\n\nafter"


def test_tables() -> None:
    body = (
        "<table><caption>Hours</caption><thead><tr><th>Day</th><th>Open</th></tr></thead>"
        "<tbody><tr><td>Mon</td><td>10 | 20</td></tr><tr><td></td><td> </td></tr>"
        "<tr><td>Tue</td><td><ul><li>closed</li><li>all day</li></ul></td></tr></tbody></table>"
    )
    assert markdown(body) == (
        "Hours\n\n| Day | Open |\n| --- | --- |\n| Mon | 10 \\| 20 |\n| Tue | closed all day |"
    )


def test_widths_of_cells_are_not_believed() -> None:
    cells = '<td colspan="200000000">a</td><td colspan="100%" rowspan="-3">b</td>'
    body = f"<table><tr>{cells}</tr></table>"
    assert markdown(body) == "| a | b |\n| --- | --- |"


@pytest.mark.parametrize(
    "body",
    [
        "<table><tr><td><table><tr><td>one</td></tr></table></td><td>two</td></tr></table>",
        "<table><tr><td>one</td></tr><tr><td>two</td></tr></table>",
        '<table role="presentation"><tr><td>one</td><td>two</td></tr></table>',
        "<table><tr><td><p>one</p></td><td><h2></h2>two</td></tr></table>",
    ],
)
def test_tables_for_layout_are_no_tables(body: str) -> None:
    assert markdown(body) == "one\n\ntwo"


def test_a_table_with_long_cells_is_layout() -> None:
    long = "word " * 100
    assert "|" not in markdown(f"<table><tr><td>{long}</td><td>x</td></tr></table>")


def test_table_rows_of_nested_pages_keep_their_order() -> None:
    rows = "".join(f"<tr><td>{i}</td><td>{i * i}</td></tr>" for i in range(50))
    lines = markdown(f"<table>{rows}</table>").split("\n")
    assert lines[0] == "| 0 | 0 |"
    assert lines[-1] == "| 49 | 2401 |"
    assert len(lines) == 51


def test_heads_scripts_and_comments_are_left_out() -> None:
    root = html.document_fromstring(
        "<html><head><title>T</title></head>"
        "<body><script>x</script><!-- c --><p>text</p></body></html>"
    )
    assert to_markdown(root) == "text"


PIECES = [
    *("<p>", "</p>", "<ul>", "<li>", "</ul>", "<table>", "<tr>", "<td>", "</table>", "<pre>"),
    *("</pre>", "<h2>", "</h2>", "<blockquote>", "</blockquote>", "<br>", "<b>", "</b>", "<div>"),
    *("</div>", "word"),
]


@given(st.lists(st.sampled_from(PIECES), max_size=40))
def test_no_word_is_lost(parts: list[str]) -> None:
    page = parse_html(" ".join(parts), "https://x.example/")
    if page is not None:
        shown = sum(text.count("word") for text in page.root.itertext())
        assert to_markdown(page.root).count("word") == shown
