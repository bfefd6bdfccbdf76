from __future__ import annotations

import pytest

from world_core.scripts import PAIRED_RUN, SIMPLE_RUN, UNIT


@pytest.mark.parametrize(
    "text", ["ภาษาไทย", "ພາສາລາວ", "မြန်မာ", "ខ្មែរ", "한국어", "漢字々", "かな", "ｶﾀｶﾅ"]
)
def test_scripts_without_spaces_are_known(text: str) -> None:
    assert PAIRED_RUN.fullmatch(text)


@pytest.mark.parametrize("text", ["word", "слово", "كلمة", "λέξη", "१२", "12", "、", "๑"])
def test_others_are_not(text: str) -> None:
    assert PAIRED_RUN.search(text) is None


def test_simple_runs_have_no_marks() -> None:
    assert SIMPLE_RUN.fullmatch("東京タワーのひかり한국")
    for other in ("ｶﾀ", "กิ", "か\u3099", "\u1112\u1161"):
        assert SIMPLE_RUN.fullmatch(other) is None


@pytest.mark.parametrize(
    ("run", "characters"),
    [
        ("กินข้าว", ["กิ", "น", "ข้", "า", "ว"]),
        ("か\u3099き", ["か\u3099", "き"]),
        ("ｶﾞｷ", ["ｶﾞ", "ｷ"]),
        ("\u1112\u1161\u11ab\u1100\u116e", ["\u1112\u1161\u11ab", "\u1100\u116e"]),
        ("東京", ["東", "京"]),
    ],
)
def test_characters_are_those_of_a_reader(run: str, characters: list[str]) -> None:
    assert UNIT.findall(run) == characters
    assert "".join(UNIT.findall(run)) == run
