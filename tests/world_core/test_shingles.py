"""Shingles: the same for every spelling of a text, and inside another text, in every script."""

from __future__ import annotations

import random
import unicodedata

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from world_core import shingles as module
from world_core.scripts import UNIT
from world_core.shingles import CHARACTERS, WORDS, Shingler
from world_core.shown import shown

Numbers = NDArray[np.uint64]

TEXTS = {
    "latin": "The keeper of the old lighthouse counts every ship that passes the pier at dawn.",
    "accents": "Où est passé le gardien du phare ? Il compte les navires à l'aube, près du môle.",
    "chinese": "燈塔的守護者每天清晨都會數一數經過碼頭的船隻,然後把數字寫進一本很舊的帳簿裡。",
    "japanese": "灯台の番人は毎朝ふ頭を通る船をすべて数えて、その数を古い帳面に書きとめている。",
    "thai": "ผู้ดูแลประภาคารนับเรือทุกลำที่ผ่านท่าเรือในตอนเช้าแล้วจดจำนวนลงในสมุดบัญชีเล่มเก่า",
    "arabic": "حارس المنارة القديمة يعد كل سفينة تمر بالرصيف عند الفجر ثم يكتب العدد في الدفتر.",
    "mixed": "東京の Harbour Guide 第3版は pier 番号と船の数をすべて記した本であり、毎年出る。",
}
AROUND = {
    "latin": "Nobody knew why the harbour had been closed for so long during that winter",
    "chinese": "没有人知道港口为什么在那个冬天关闭了那么长的时间",
    "thai": "ไม่มีใครรู้ว่าทำไมท่าเรือจึงถูกปิดนานขนาดนั้นในฤดูหนาวปีนั้น",
}

words = st.text(st.sampled_from("abcdeßéøñابتدгджऀकि"), min_size=1, max_size=8)
characters = st.text(st.sampled_from("天地玄黄宇宙あいうがカキ한국กขคงอา"), min_size=1, max_size=8)
pieces = st.lists(st.one_of(words, characters), max_size=40)


def share(part: Numbers, whole: Numbers) -> float:
    """Return how much of a text another contains: the share of its shingles the other has."""
    return float(np.isin(part, whole).mean())


@pytest.fixture(scope="module")
def shingler() -> Shingler:
    return Shingler()


def of(text: str) -> list[int]:
    found: list[int] = Shingler().shingles(text).tolist()
    return found


def respelled(text: str, draw: random.Random) -> str:
    """Return the text with other case, marks, white space and diacritics between its words."""
    parts = []
    for word in text.split():
        changed = draw.choice([word, word.upper(), unicodedata.normalize("NFD", word)])
        parts.append(draw.choice(["{}", "**{}**", "`{}`", "({})", "„{}“,", "[{}](x.html)"]))
        parts[-1] = parts[-1].format(changed)
    return "## " + "".join(part + draw.choice([" ", "\n", "\n\n> ", "\t"]) for part in parts)


@pytest.mark.parametrize("name", TEXTS)
def test_spelling_leaves_no_trace(name: str) -> None:
    plain = of(TEXTS[name])
    assert len(plain) > 5
    for seed in range(20):
        assert of(respelled(TEXTS[name], random.Random(seed))) == plain


@pytest.mark.parametrize("name", ["chinese", "japanese", "thai"])
def test_breaks_between_characters_leave_no_trace(name: str) -> None:
    text = TEXTS[name]
    whole = UNIT.findall(text)
    for mark in ("\n", " ", "、", "**"):
        assert of(mark.join(whole)) == of(text)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ガギグゲゴザジズゼゾダヂ", "ｶﾞｷﾞｸﾞｹﾞｺﾞｻﾞｼﾞｽﾞｾﾞｿﾞﾀﾞﾁﾞ"),
        ("مدرسة كبيرة في قلب المدينة القديمة", "مَدْرَسَة كبيرة في قـلـب المدينة القديمة"),
        ("the ﬁrst of ﬁve long days", "THE FIRST OF FIVE LONG DAYS"),
        ("Straße nach Köln am Rhein hin", "STRASSE nach Koln am Rhein hin"),
        ("one two three four five", "o**n**e t`w`o **three** f**our** five"),
        (
            "see the guide to five harbours",
            "see the [guide](http://a.example/x_(y)) to five harbours",
        ),
        ("a b c d e f", "| a | b |\n|---|---|\n| c | d |\n\n- e\n- f"),
    ],
)
def test_folded_spellings_are_one(one: str, other: str) -> None:
    assert of(one)
    assert of(one) == of(other)


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("name", TEXTS)
def test_a_text_inside_another_is_contained(shingler: Shingler, name: str, around: str) -> None:
    inner = shingler.shingles(TEXTS[name])
    outer = shingler.shingles(f"{AROUND[around]}.\n\n{TEXTS[name]}\n\n{AROUND[around]}.")
    assert share(inner, outer) == 1.0
    assert share(outer, inner) < 1.0
    assert share(inner, shingler.shingles(AROUND[around])) == 0.0


@given(pieces, pieces, pieces)
@example(["a"] * 6, [], [])
def test_any_text_of_a_window_is_contained(
    before: list[str], inner: list[str], behind: list[str]
) -> None:
    text = " ".join(inner)
    shingler = Shingler()
    _, shares = shingler._terms(text)
    found = shingler.shingles(text)
    whole = shingler.shingles(" . ".join(map(" ".join, (before, inner, behind))))
    if shares.sum() >= WORDS * CHARACTERS:
        assert share(found, whole) == 1.0
    else:
        assert found.size == min(1, shares.size)
    assert np.all(found[1:] > found[:-1])


@given(st.text(st.sampled_from("ab*`[]()\\!|#>-_ .\n天กิ\u0301é"), max_size=60))
def test_markdown_is_read_wherever_it_matters(text: str) -> None:
    shingler = Shingler()
    read, _ = shingler._terms(shown(text, ())[0])
    if not module._needs_reading(text):
        assert shingler._terms(text)[0] == read


@given(st.text(max_size=80))
def test_every_string_has_shingles(text: str) -> None:
    found = of(text)
    assert found == of(text)
    assert len(found) <= max(1, len(text))


def test_windows_are_five_words_or_nine_characters() -> None:
    assert len(of("one two three four five")) == 1
    assert len(of("one two three four five six")) == 2
    assert len(of("天地玄黄宇宙洪荒日")) == 1
    assert len(of("天地玄黄宇宙洪荒日月")) == 2
    # Three words are 27 of 45 shares, four characters 20 more.
    assert len(of("one two three 天地玄黄")) == 1
    assert of("one two three 天地玄黄") != of("one two three 天地玄")
    assert set(of("天地玄黄 one two three")) < set(of("月 天地玄黄 one two three"))


def test_short_texts_have_what_they_have() -> None:
    assert of("") == of("!?* \n") == []
    assert len(of("word")) == len(of("one two three four")) == len(of("天地")) == 1
    assert of("one two") != of("two one")
    assert of("one one one one one one one one") == of("one one one one one")


def test_numbers_are_stable() -> None:
    assert of("one two three four five") == [16097572282202166377]
    assert of("Five") == [16018555076236783258]


def test_remembered_terms_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_KNOWN_TERMS", 3)
    shingler = Shingler()
    text = " ".join(f"w{n}" for n in range(50))
    assert shingler.shingles(text).tolist() == of(text)
    assert len(shingler._numbers) <= 3


def test_one_word_changes_the_windows_that_hold_it() -> None:
    shingler = Shingler()
    ten = [f"w{n}" for n in range(14)]  # ten shingles
    part = shingler.shingles(" ".join(ten))
    assert part.size == 10
    for kept in range(4, 15):
        whole = shingler.shingles(" ".join([*ten[:kept], "x", "y", "z", "q", "r"]))
        assert share(part, whole) == max(0, kept - 4) / 10
    assert shingler.shingles("").size == 0
