from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus_builder.html_page import parse_html
from corpus_builder.nesting import DEPTH_LIMIT, REFUSED_DEPTH, within_depth

SENTENCE = "The signal mast on the western pier shows two green lights."


def nested(depth: int, tag: str = "div", inner: str = f"<p>{SENTENCE}</p>") -> str:
    return f"<html><body>{f'<{tag}>' * depth}{inner}{f'</{tag}>' * depth}</body></html>"


def depth_of(html: str) -> int:
    page = parse_html(html, "https://x.example/")
    assert page is not None
    deepest, waiting = 0, [(page.root, 1)]
    while waiting:
        element, depth = waiting.pop()
        deepest = max(deepest, depth)
        waiting.extend((child, depth + 1) for child in element)
    return deepest


@pytest.mark.parametrize("depth", [0, 1, 10, DEPTH_LIMIT])
def test_ordinary_pages_are_returned_as_they_are(depth: int) -> None:
    html = nested(depth)
    assert within_depth(html) is html


@pytest.mark.parametrize("depth", [DEPTH_LIMIT + 1, 330, 1000, 5000, 20_000])
@pytest.mark.parametrize("tag", ["div", "span", "table", "blockquote", "b", "x-own"])
def test_deep_pages_keep_their_text(depth: int, tag: str) -> None:
    html = within_depth(nested(depth, tag))
    assert html is not None
    assert SENTENCE in html
    assert html.count(f"<{tag}>") == DEPTH_LIMIT
    assert html.count(f"</{tag}>") == DEPTH_LIMIT
    assert depth_of(html) <= DEPTH_LIMIT + 5


def test_a_page_deeper_than_any_page_is_refused() -> None:
    assert within_depth(nested(REFUSED_DEPTH + 1)) is None


def test_elements_that_close_themselves_do_not_count() -> None:
    html = (
        "<ul>" + "<li>item" * 5000 + "</ul>" + "<p>" * 5000 + "<br>" * 5000 + "<img src=x>" * 5000
    )
    assert within_depth(html) is html


def test_the_text_of_deep_hidden_elements_goes_with_them() -> None:
    inner = (
        '<div style="display:none">secret <div>more</div> words</div>'
        "<div hidden>second</div><p>shown</p>"
    )
    html = within_depth(nested(400, inner=inner))
    assert html is not None
    assert "shown" in html
    assert not any(word in html for word in ("secret", "more", "words", "second"))


def test_scripts_and_comments_are_no_elements() -> None:
    inner = "<script>" + "'<div>'" * 400 + "</script><!--" + "<div>" * 400 + f"-->{SENTENCE}"
    html = within_depth(nested(10, inner=inner))
    assert html is not None
    assert SENTENCE in html


def test_content_after_the_deep_part_stays() -> None:
    html = within_depth("<div><p>before</p>" + nested(500) + "<p>after</p></div>")
    assert html is not None
    assert "before" in html
    assert "after" in html


@given(st.text(alphabet="<>/divspan hidden=\"'!-\n", max_size=300))
def test_any_markup_is_taken(text: str) -> None:
    assert within_depth(text, 3) is not None


@given(
    st.lists(
        st.sampled_from(["<div>", "</div>", "<b>", "</b>", "<p>", "text ", "<br>"]), max_size=60
    )
)
def test_words_outside_tags_are_never_lost(parts: list[str]) -> None:
    html = within_depth("".join(parts), 3)
    assert html is not None
    assert html.count("text") == parts.count("text ")
