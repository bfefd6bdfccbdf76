from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus_builder.language import UNKNOWN, language_of, normalise

TEXTS = {
    "en": "The ferry between the two harbours leaves at seven on working days.",
    "de": "Die Fähre zwischen den beiden Häfen fährt an Werktagen um sieben Uhr.",
    "fr": "Le bac entre les deux ports part à sept heures les jours ouvrables.",
    "es": "El transbordador entre los dos puertos sale a las siete los días laborables.",
    "pl": "Prom między dwoma portami odpływa o siódmej w dni robocze i zabiera bardzo wielu ludzi.",
    "ru": "Паром между двумя гаванями отходит в семь часов по рабочим дням и берёт много людей.",
    "ar": "تغادر العبارة بين المرفأين في الساعة السابعة في أيام العمل وتحمل الكثير من الناس.",
    "el": "Το πλοίο ανάμεσα στα δύο λιμάνια φεύγει στις επτά τις εργάσιμες και παίρνει πολύ κόσμο.",
    "zh": "两个港口之间的渡轮在工作日七点出发，可以载很多人。",
    "ja": "二つの港の間のフェリーは平日の七時に出発し、多くの人を運びます。",
    "ko": "두 항구 사이의 여객선은 평일 일곱 시에 출발하며 많은 사람을 태웁니다.",
}


@pytest.mark.parametrize("language", TEXTS)
def test_languages(language: str) -> None:
    assert language_of(TEXTS[language]) == language
    assert language_of(TEXTS[language] * 50) == language


@pytest.mark.parametrize(
    "text", ["", " ", "栈", "404 error", "ok", "ՆԵՐԱԾԱԿԱՆ", "12345", "https://x.example/a/b"]
)
def test_short_texts_have_no_language(text: str) -> None:
    assert {language_of(text) for _ in range(20)} == {UNKNOWN}


@pytest.mark.parametrize("text", ["404 error", "ok", "Ein Wort"])
def test_a_short_text_has_the_language_the_page_declares(text: str) -> None:
    assert language_of(text, "de-AT") == "de"


def test_a_text_without_letters_has_none_whatever_is_declared() -> None:
    assert language_of("12345", "de") == UNKNOWN


def test_a_declared_language_is_believed_for_a_short_text() -> None:
    assert language_of("Hotel Restaurant Bar Telefon Taxi Information", "sv") == "sv"


def test_a_long_text_that_is_surely_in_another_language_is_not_believed() -> None:
    assert language_of(TEXTS["de"] * 10, "en") == "de"
    assert language_of(TEXTS["ja"] * 3, "en") == "ja"


def test_code_and_addresses_do_not_decide() -> None:
    noise = (
        "https://x.example/the/ferry/and/the/harbour " * 20
        + "```\nfor the_ferry in harbour:\n```\n"
    )
    assert language_of(TEXTS["pl"] + noise) == "pl"


def test_a_foreign_menu_around_a_text_does_not_decide_for_scripts() -> None:
    assert language_of("Home About Contact " + TEXTS["zh"] * 3, "en") == "zh"


@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        ("en", "en"),
        ("pt-BR", "pt"),
        ("zh_CN", "zh"),
        ("zh-Hant-TW", "zh"),
        ("EN", "en"),
        (" de ", "de"),
        ("nb-NO", "no"),
        ("nn", "no"),
        ("iw", "he"),
        ("eng", "en"),
        ("deu", "de"),
        ("ast", "ast"),
        ("und", ""),
        ("mul", ""),
        ("zxx", ""),
        ("", ""),
        ("english", ""),
        ("x-default", ""),
        ("en,de", ""),
        ("e", ""),
    ],
)
def test_normalise(tag: str, expected: str) -> None:
    assert normalise(tag) == expected


@settings(max_examples=50, deadline=None)
@given(st.text(alphabet=st.characters(), max_size=300), st.text(max_size=10))
def test_nothing_raises_and_answers_repeat(text: str, declared: str) -> None:
    text = text.encode("utf-8", "replace").decode()
    found = language_of(text, declared)
    assert found == language_of(text, declared)
    assert found == UNKNOWN or 2 <= len(found) <= 8
