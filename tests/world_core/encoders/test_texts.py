from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from world_core.encoders.texts import readable, unit_rows
from world_core.errors import EncoderError

any_text = st.text(
    st.characters(exclude_categories=()) | st.sampled_from("\0\ud83d\ude00\udfff "), max_size=60
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("plain words", "plain words"),
        ("a\0b", "a b"),
        ("a\ud800b", "a\ufffdb"),
        ("\ud83d\ude00", "\U0001f600"),
        ("\ud800\ud83d\ude00", "\ufffd\U0001f600"),
        ("héllo 世界 \U0001f600", "héllo 世界 \U0001f600"),
    ],
)
def test_what_tokenizers_cannot_take_is_replaced(text: str, expected: str) -> None:
    assert readable(text, 100) == expected


def test_a_lone_second_half_is_replaced_too() -> None:
    assert readable("a\udc00b\ud800", 100) == "a\ufffdb\ufffd"


def test_no_more_than_the_limit_is_kept() -> None:
    assert readable("abcdef", 4) == "abcd"
    assert readable("世界世界世界", 4) == "世界世界"


@given(any_text)
def test_every_text_becomes_valid_utf_8_without_nul(text: str) -> None:
    clean = readable(text, 100)

    assert "\0" not in clean
    assert clean.encode("utf-8").decode("utf-8") == clean
    assert readable(clean, 100) == clean


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=60))
def test_a_text_that_is_fine_stays_as_it_is(text: str) -> None:
    assert readable(text, 100) == text


def test_rows_get_length_one_and_keep_their_direction() -> None:
    units = unit_rows(np.array([[3.0, 4.0], [0.0, -2.0]]), "any")

    assert units.dtype == np.float32
    assert units.tolist() == [[np.float32(0.6), np.float32(0.8)], [0.0, -1.0]]


def test_very_short_and_very_long_rows_get_length_one() -> None:
    rows = np.array([[1e-30, 1e-30], [1e30, 1e30]], dtype=np.float32)

    assert np.allclose(np.linalg.norm(unit_rows(rows, "any"), axis=1), 1.0)


def test_no_rows_stay_no_rows() -> None:
    assert unit_rows(np.zeros((0, 7)), "any").shape == (0, 7)


@pytest.mark.parametrize("bad", [[0.0, 0.0], [np.nan, 1.0], [np.inf, 1.0]])
def test_a_row_without_a_direction_is_refused_with_encoder_and_text(bad: list[float]) -> None:
    with pytest.raises(EncoderError, match=r"minilm gave .* for text 1 of 2"):
        unit_rows(np.array([[1.0, 0.0], bad]), "minilm")
