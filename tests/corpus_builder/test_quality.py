from __future__ import annotations

import pytest

from corpus_builder.quality import drop_reason


@pytest.mark.parametrize("text", ["Facebook", "ok", "栈", "a b c", "7", "word " * 1000])
def test_whatever_can_be_read_stays(text: str) -> None:
    assert drop_reason(text) == ""


@pytest.mark.parametrize("text", ["", " \n\t ", "---", "| --- | --- |", "***", "...", "\ufffd"])
def test_marks_alone_are_no_text(text: str) -> None:
    assert drop_reason(text) == "no text"


@pytest.mark.parametrize(
    "text",
    [
        "You need to enable JavaScript to run this app.",
        "Please enable JavaScript to continue.",
        "This site requires Javascript.",
        "JavaScript is disabled in your browser. Turn it on.",
        "JavaScript must be enabled to view this page.",
        "Loading... Activate Java Script in your browser",
    ],
)
def test_script_shells(text: str) -> None:
    assert drop_reason(text) == "script shell"


@pytest.mark.parametrize(
    "text",
    [
        "JavaScript is a language that runs in browsers.",
        "How to write a loop in JavaScript",
        "Please enable JavaScript. " + "The ferry leaves at seven from the old harbour. " * 10,
    ],
)
def test_pages_about_scripts_stay(text: str) -> None:
    assert drop_reason(text) == ""


@pytest.mark.parametrize(
    ("words", "least", "reason"), [(4, 5, "too short"), (5, 5, ""), (1, 1, ""), (1, 0, "")]
)
def test_least_words(words: int, least: int, reason: str) -> None:
    assert drop_reason("word " * words, least_words=least) == reason
