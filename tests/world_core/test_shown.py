"""What a reader is shown of Markdown."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from world_core.cutting import sentences
from world_core.shown import shown
from world_core.types import Span

texts = st.text(st.characters(codec="utf-8"), max_size=400) | st.lists(
    st.sampled_from(
        [
            *("ferry ", "harbour ", "e\u0301", "word", "Dr. ", ". ", "! ", "。", "灯台", "図書館"),
            *(" ", "\n", "\n\n", "\t", "# H\n", "- ", "* ", "**", "`", "| a |", "|---|", "> "),
            *("[t](http://x.example/a_(b))", "![i](u)", "[![i](u)](v)", "[1]", "](", "[", "\\*"),
            *("👩\u200d🚀", "x" * 90, "2*3", "สวัสดี", "---", "===", "C#", "[a. B. c](u)"),
        ]
    ),
    max_size=60,
).map("".join)


def line_of(text: str) -> str:
    return shown(text, sentences(text))[0]


@given(texts)
def test_the_line_is_clean_and_its_sentences_fill_it(text: str) -> None:
    line, begins = shown(text, sentences(text))
    assert line == " ".join(line.split())
    assert not set(line) & set("*|`\n")
    assert bool(begins) == bool(line)
    edges = [*begins, len(line)]
    assert not begins or begins[0] == 0
    assert all(first < last and line[first] != " " for first, last in pairwise(edges))
    assert len(begins) <= len(sentences(text))


@given(texts)
def test_nothing_is_shown_that_the_text_does_not_say(text: str) -> None:
    letters = iter(text)
    assert all(letter in letters for letter in line_of(text) if letter.isalnum())


@given(st.lists(st.sampled_from(["One ferry.", "Two!", "A third one?", "灯台。", "図書館。"])))
def test_plain_sentences_begin_where_they_stand(parts: list[str]) -> None:
    text = " ".join(parts)
    line, begins = shown(text, sentences(text))
    assert line == text
    assert begins == [span.start for span in sentences(text)]


def test_sentences_of_marked_text_begin_where_they_are_shown() -> None:
    text = "# Head\n\nSee **the** [text](http://x.example/a). Then *go*.\n\n- one\n- two\n"
    line, begins = shown(text, sentences(text))
    edges = [*begins, len(line)]
    assert [line[first:last].strip() for first, last in pairwise(edges)] == [
        *("Head", "See the text.", "Then go.", "one", "two"),
    ]


def test_a_sentence_of_marks_alone_is_left_out() -> None:
    text = "One.\n\n|---|\n\nTwo."
    assert shown(text, sentences(text)) == ("One. Two.", [0, 5])
    assert shown("|---|", sentences("|---|")) == ("", [])


def test_sentences_without_space_between_stay_together() -> None:
    text = "朝。**昼**。夜。"
    assert shown(text, sentences(text)) == ("朝。昼。夜。", [0, 2, 4])


def test_what_stands_before_the_first_sentence_belongs_to_it() -> None:
    assert shown("one two", [Span(4, 7)]) == ("one two", [0, 4])
    assert shown("one two", []) == ("one two", [0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("   \n\n ", ""),
        ("|---|:--:|\n", ""),
        ("# Head\n\nText **bold** and *soft* `code`.", "Head Text bold and soft code."),
        ("## A\n### B\ntext", "A B text"),
        ("- one\n* two\n+ three\n• four\n  - five", "one two three four five"),
        ("> quoted\n>> twice", "quoted twice"),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "a b 1 2"),
        ("Head\n====\nText\n---\nMore", "Head Text More"),
        ('See [the text](http://x.example/a_(b) "title") now.', "See the text now."),
        ("![alt](image.png) [![in](i.png)](http://x.example/)", "alt in"),
        ("A note [1] and [2](#n).", "A note [1] and 2."),
        ("C# and #5 and 2*3 and a|b and well-known", "C# and #5 and 2 3 and a b and well-known"),
        ("un**believ**able `x`s", "unbelievable xs"),
        ("\\*not soft\\* \\[x\\]", "not soft [x]"),
        ("one\ttwo\u00a0three  four\r\nfive", "one two three four five"),
        ("x -- y --- z", "x -- y z"),
        ("a](b c", "a](b c"),
        ("<b>bold</b> & co", "<b>bold</b> & co"),
    ],
)
def test_marks_are_taken_out(text: str, expected: str) -> None:
    assert line_of(text) == expected
