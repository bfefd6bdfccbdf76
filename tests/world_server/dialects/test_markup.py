from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from world_server.dialects.markup import count_tokens, cut_to_tokens, plain_text


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("# Title\n\nText", "Title\n\nText"),
        ("### Deep ###", "Deep ###"),
        ("a [link](https://x.example/a?b=1) b", "a link b"),
        ('a [link](https://x.example "title") b', "a link b"),
        ("![picture](https://x.example/p.png)", "picture"),
        ("**bold** and __strong__", "bold and strong"),
        ("`code` and ```more```", "code and more"),
        ("```python\nx = 1\n```\nafter", "x = 1\nafter"),
        ("> quoted\n> > twice", "quoted\ntwice"),
        ("- item\n- other", "- item\n- other"),
        ("2 * 3 ** 4 and snake_case_name", "2 * 3 ** 4 and snake_case_name"),
        ("[not a link] (x)", "[not a link] (x)"),
        ("#hashtag", "#hashtag"),
        ("", ""),
    ],
)
def test_marks_go_and_words_stay(markdown: str, text: str) -> None:
    assert plain_text(markdown) == text


@given(st.text())
def test_no_text_raises_or_grows(text: str) -> None:
    assert len(plain_text(text)) <= len(text)


@pytest.mark.parametrize("unit", ["[", "[a](", "**", "`", "> ", "![", "#", "[](", "__a", "(", "*a"])
def test_time_is_linear(unit: str) -> None:
    """A quadratic pattern would take minutes here; the bound is far above any machine's noise."""
    started = time.process_time()
    plain_text(unit * 100_000)
    assert time.process_time() - started < 30


@given(st.text(), st.integers(0, 40))
def test_a_cut_is_the_longest_beginning_that_fits(text: str, tokens: int) -> None:
    clean = text.encode("utf-8", "ignore").decode()
    cut = cut_to_tokens(clean, tokens)
    assert clean.startswith(cut)
    assert count_tokens(cut) <= tokens
    if len(cut) < len(clean):
        assert count_tokens(clean[: len(cut) + 1]) > tokens


def test_tokens_are_four_bytes_rounded_up() -> None:
    assert [count_tokens(text) for text in ("", "a", "abcd", "abcde", "\u56fe\u4e66")] == [
        0, 1, 1, 2, 2,
    ]  # fmt: skip
    assert cut_to_tokens("abc", -1) == ""
