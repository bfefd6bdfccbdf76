from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus_builder.opening import opening


@pytest.mark.parametrize(
    ("text", "tokens", "kept"),
    [
        ("One two three", 2, "One two"),
        ("One, two", 2, "One,"),
        ("  One  two ", 5, "  One  two "),
        ("\u6e2f\u53e3 opens", 2, "\u6e2f\u53e3"),
        ("\u6e2f\u53e3opens", 3, "\u6e2f\u53e3opens"),
        ("\ud56d\uad6c", 1, "\ud56d"),
        ("gr\u00f6\u00dfe x", 1, "gr\u00f6\u00dfe"),
        ("", 3, ""),
    ],
)
def test_the_opening_ends_behind_its_last_token(text: str, tokens: int, kept: str) -> None:
    assert text[: opening(text, tokens)] == kept


@given(st.text(max_size=60), st.integers(1, 20))
def test_openings_grow_with_the_tokens_up_to_the_whole(text: str, tokens: int) -> None:
    end = opening(text, tokens)

    assert 0 <= end <= opening(text, tokens + 1) <= len(text)
    assert opening(text[:end], tokens) == end
    assert opening(text, len(text) + 1) == len(text)
