"""The language of a text: what the page says, checked against what it is written in."""

from __future__ import annotations

import re
from functools import cache
from typing import Protocol, cast

UNKNOWN = "und"
LEAST_LETTERS = 24
"""Letters of an alphabet below which a text has no reliable language."""
LEAST_IDEOGRAPHS = 8
"""The same for Chinese, Japanese and Korean characters."""

_SURE_LETTERS = 300
_SURE = 0.99
_SAMPLE = 400
_TAG = re.compile(r"([a-z]{2,3})(?:[-_][a-z0-9]+)*", re.IGNORECASE)
_KANA = re.compile("[\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9f]")
_HANGUL = re.compile("[\u1100-\u11ff\u3130-\u318f\uac00-\ud7af]")
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_LETTER = re.compile(r"[^\W\d_]")
# Addresses and code are no language.
_NOISE = re.compile(r"https?://\S+|```.*?```|`[^`\n]*`|\S*[{}<>\\/@_=#|]\S*", re.DOTALL)
_SAME = {
    "nb": "no",
    "nn": "no",
    "iw": "he",
    "in": "id",
    "ji": "yi",
    "mo": "ro",
    "fil": "tl",
    "cmn": "zh",
    "eng": "en",
    "deu": "de",
    "ger": "de",
    "fra": "fr",
    "fre": "fr",
    "spa": "es",
    "ita": "it",
    "por": "pt",
    "rus": "ru",
    "jpn": "ja",
    "kor": "ko",
    "zho": "zh",
    "chi": "zh",
}
_UNSPOKEN = frozenset({"und", "mul", "zxx", "mis", "xx"})


class _Identifier(Protocol):
    def classify(self, text: str) -> tuple[str, float]: ...


def normalise(tag: str) -> str:
    """Return the language of a tag such as ``pt-BR`` as a two-letter code, "" if it names none.

    Languages without a two-letter code keep their three letters.
    """
    found = _TAG.fullmatch(tag.strip())
    code = found[1].lower() if found else ""
    return "" if code in _UNSPOKEN else _SAME.get(code, code)


def language_of(text: str, declared: str = "") -> str:
    """Return the language of a text, ``und`` where it is too short to tell.

    ``declared`` is the tag the page gives; it stands unless the text is long and surely in another
    language. The same text always gives the same answer.
    """
    said = normalise(declared)
    words = _NOISE.sub(" ", _sample(text))
    letters = len(_LETTER.findall(words))
    script = _by_script(words, letters)
    if script:
        return script
    if letters < LEAST_LETTERS:
        return said if said and letters else UNKNOWN
    found, probability = _identifier().classify(words)
    found = UNKNOWN if found in _UNSPOKEN else _SAME.get(found, found)
    if said and said != found and (letters < _SURE_LETTERS or probability < _SURE):
        return said
    return found


def _sample(text: str) -> str:
    """Return the text, or its beginning and middle if it is long."""
    if len(text) <= 2 * _SAMPLE:
        return text
    middle = len(text) // 2
    return text[:_SAMPLE] + "\n" + text[middle : middle + _SAMPLE]


def _by_script(text: str, letters: int) -> str:
    """Return the language that its script alone proves, "" if none does."""
    kana, hangul, han = (len(kind.findall(text)) for kind in (_KANA, _HANGUL, _HAN))
    ideographs = kana + hangul + han
    if ideographs < LEAST_IDEOGRAPHS or ideographs < 0.25 * letters:
        return ""
    if hangul > 0.3 * ideographs:
        return "ko"
    return "ja" if kana > 0.05 * ideographs else "zh"


@cache
def _identifier() -> _Identifier:
    """Return the model, loaded once a process."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    model = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    return cast("_Identifier", model)
