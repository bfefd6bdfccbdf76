"""Scripts that are written without spaces: which characters are theirs, and what one is."""

from __future__ import annotations

import re
from typing import Final

PAIRED: Final = (
    "\u0e01-\u0e4e\u0e81-\u0ece\u0edc-\u0edf"  # Thai, Lao
    "\u1000-\u103f\u1050-\u108f\u109a-\u109d\uaa60-\uaa7f"  # Burmese
    "\u1780-\u17d3\u17d7\u17dc\u17dd"  # Khmer
    "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb\uffa0-\uffdc"  # Hangul
    "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
    "\u3041-\u3096\u3099\u309a\u309d-\u309f\u31f0-\u31ff"  # Hiragana
    "\u30a1-\u30fa\u30fc-\u30ff\uff66-\uff9f\U0001b000-\U0001b16f"  # Katakana, kana of plane 1
)
"""Their letters and marks, as the inside of a character class; digits are words like any other."""

PAIRED_RUN: Final = re.compile(f"[{PAIRED}]+")
"""A run of such a script."""

SIMPLE_RUN: Final = re.compile(
    "[\u3005\u3041-\u3096\u30a1-\u30fa\u30fc\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]+"
)
"""A run in which every character stands for itself: NFKC leaves it alone, no mark joins it."""

UNIT: Final = re.compile(
    "[\u1100-\u115f\ua960-\ua97c]+[\u1160-\u11a7\ud7b0-\ud7c6]*[\u11a8-\u11ff\ud7cb-\ud7fb]*"
    "|[\uff66-\uff9d][\uff9e\uff9f]"
    "|.[\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece"
    "\u102b-\u103e\u1056-\u1059\u105e-\u1060\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d"
    "\u108f\u109a-\u109d\u17b4-\u17d3\u17dd\u3099\u309a]*",
    re.DOTALL,
)
"""What a reader takes for one character: a syllable of jamo, half-width kana with its voicing mark,
or a character with the marks behind it."""
