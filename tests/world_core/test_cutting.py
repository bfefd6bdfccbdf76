"""Sentences and passages of a text."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from world_core.cutting import cluster_start, cut, sentences
from world_core.errors import BadInputError
from world_core.types import Span

texts = st.text(st.characters(), max_size=200) | st.lists(
    st.sampled_from(
        [
            "word ",
            "Dr. ",
            "a",
            "é",
            "e\u0301",
            "\n",
            "\n\n",
            "# H\n",
            "- ",
            "1. ",
            "。",
            ". ",
            "! ",
            "...",
            "灯台",
            " ",
            "\t",
            "\u3000",
            "\x1c",
            "\x85",
            '"',
            "| a |",
            "🚢\u200d🚢",
            "\ud83d",
        ]
    ),
    max_size=80,
).map("".join)


def shown(text: str, spans: list[Span]) -> list[str]:
    return [text[span.start : span.end] for span in spans]


def check_cover(text: str, spans: list[Span]) -> None:
    done = 0
    for span in spans:
        assert done <= span.start < span.end <= len(text)
        assert not text[done : span.start].strip()
        piece = text[span.start : span.end]
        assert piece == piece.strip()
        done = span.end
    assert not text[done:].strip()


@given(texts)
@example("\n.")
@example("1. a")
@example(" . . ")
@settings(deadline=None, max_examples=300)
def test_sentences_hold_everything_that_is_seen(text: str) -> None:
    check_cover(text, sentences(text))


@given(texts, st.integers(1, 60), st.integers(0, 60))
@example("a" * 61, 10, 0)
@example("a" + " " * 50 + "b", 10, 5)
@example("# a\n# b\n# c\n# d\n", 4, 4)
@settings(deadline=None, max_examples=400)
def test_passages_hold_everything_within_the_limit(text: str, target: int, more: int) -> None:
    spans = cut(text, target=target, limit=target + more)
    check_cover(text, spans)
    assert all(span.end - span.start <= target + more for span in spans)


@given(texts)
@settings(deadline=None)
def test_cutting_is_repeatable_and_keeps_whole_sentences(text: str) -> None:
    spans = cut(text, target=100, limit=1000)
    assert spans == cut(text, target=100, limit=1000)
    edges = {span.start for span in spans}
    assert edges <= {span.start for span in sentences(text)}


@pytest.mark.parametrize("text", ["", " \n\t\u3000 ", "\u2028\u2029"])
def test_nothing_seen_gives_nothing(text: str) -> None:
    assert sentences(text) == []
    assert cut(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four… Five", ["One.", "Two!", "Three?", "Four…", "Five"]),
        ('He said "Hi." She (too.) Left', ['He said "Hi."', "She (too.)", "Left"]),
        ("**Bold.** Next", ["**Bold.**", "Next"]),
        (
            "Dr. Who met J. Smith, e.g. Mrs. Jones vs. him. Yes",
            ["Dr. Who met J. Smith, e.g. Mrs. Jones vs. him.", "Yes"],
        ),
        ("It costs 3.14 at a.example now. and more", ["It costs 3.14 at a.example now. and more"]),
        ("It was in 1999. Then", ["It was in 1999.", "Then"]),
        ("1. First thing\n2. Second", ["1. First thing", "2. Second"]),
        ("x\n   12. Indented", ["x", "12. Indented"]),
        ("3. Alone", ["3. Alone"]),
        (". Odd", [".", "Odd"]),
        ("Wait ... what", ["Wait ...", "what"]),
        (
            "东京是首都。人口很多！对吗？“是的。”好",
            ["东京是首都。", "人口很多！", "对吗？", "“是的。”", "好"],
        ),
        ("यह वाक्य है। दूसरा॥", ["यह वाक्य है।", "दूसरा॥"]),
        ("هل هذا؟ نعم۔ لا", ["هل هذا؟", "نعم۔", "لا"]),
        ("# Head. With stop\nText", ["# Head. With stop", "Text"]),
        ("Text\n## Head\nMore", ["Text", "## Head", "More"]),
        ("wrapped\nline", ["wrapped\nline"]),
        ("one\n\ntwo\n \n\nthree", ["one", "two", "three"]),
        (
            "- a\n- b\n* c\n+ d\n> e\n| f |\n|---|\n• g",
            ["- a", "- b", "* c", "+ d", "> e", "| f |", "|---|", "• g"],
        ),
        ("\ud800. A", ["\ud800.", "A"]),
    ],
)
def test_where_sentences_end(text: str, expected: list[str]) -> None:
    assert shown(text, sentences(text)) == expected


def test_a_passage_ends_with_a_paragraph_where_one_ends_late_enough() -> None:
    first, second, third = "Alpha beta. " * 6, "Gamma delta. " * 3, "Epsilon zeta. " * 3
    text = f"{first}\n\n{second}\n\n{third}"
    assert shown(text, cut(text, target=130, limit=200)) == [
        f"{first}\n\n{second}".strip(),
        third.strip(),
    ]
    # The paragraph's end in the first half is no reason to leave the passage half empty.
    text = f"Alpha.\n\n{first}"
    assert (
        shown(text, cut(text, target=60, limit=80))[0]
        == "Alpha.\n\n" + ("Alpha beta. " * 4).strip()
    )


def test_a_heading_begins_a_passage_and_keeps_its_text() -> None:
    text = "Alpha beta gamma delta.\n\n# Head\n\nEpsilon zeta eta theta iota kappa."
    assert shown(text, cut(text, target=45, limit=60)) == [
        "Alpha beta gamma delta.",
        "# Head\n\nEpsilon zeta eta theta iota kappa.",
    ]
    # Even where it comes too early in the passage to be preferred as a break.
    text = "Alpha.\n# Head\nEpsilon zeta eta theta iota kappa."
    assert shown(text, cut(text, target=40, limit=60)) == [
        "Alpha.",
        "# Head\nEpsilon zeta eta theta iota kappa.",
    ]
    assert len(cut(text, target=40, limit=40)) == 3


def test_a_short_tail_joins_the_passage_before_it() -> None:
    text = "Alpha beta gamma. Delta epsilon zeta. Eta."
    assert shown(text, cut(text, target=38, limit=60)) == [text]
    assert shown(text, cut(text, target=38, limit=40)) == [text[:37], "Eta."]


def test_a_sentence_is_cut_only_over_the_limit_and_then_between_words() -> None:
    words = " ".join(["word"] * 30)  # 149 characters
    assert shown(words, cut(words, target=50, limit=149)) == [words]
    pieces = shown(words, cut(words, target=50, limit=148))
    assert [len(piece) for piece in pieces] == [49, 49, 49]
    assert " ".join(pieces) == words


@pytest.mark.parametrize("gap", [" ", " " * 500, "\n"])
def test_white_space_at_a_cut_is_in_no_passage(gap: str) -> None:
    text = "a" * 50 + gap + "b" * 50 + gap
    assert shown(text, cut(text, target=50, limit=60)) == ["a" * 50, "b" * 50]


@pytest.mark.parametrize(
    "unit", ["e\u0301", "👩\u200d🚀", "👍🏽", "\u1112\u1161\u11ab", "ｶﾞ", "नी", "\ud83d\ude00"]
)
def test_a_cut_inside_a_word_splits_no_character(unit: str) -> None:
    text = unit * 100
    for span in cut(text, target=10, limit=11):
        assert text[span.start : span.end] == unit * ((span.end - span.start) // len(unit))


def test_a_cluster_start_gives_up_in_what_no_reader_takes_for_a_character() -> None:
    marks = "a" + "\u0301" * 500
    assert cluster_start(marks, 300) == 300
    assert cluster_start(marks, 30) == 0 or cluster_start(marks, 30) == 30
    assert cluster_start("xe\u0301", 2) == 1
    assert cluster_start("xe\u0301", 2, 1) == 2  # lowest is never the answer to a cut after it
    assert cluster_start("xe\u0301", 3) == 3
    assert cluster_start("xe", 1) == 1


@pytest.mark.parametrize(
    "text",
    [
        "w" * 10**6,
        "." * 10**6,
        "\n" * 10**6,
        "a" + "\u0301" * 10**6,
        "." + '"' * 10**6 + "x",
        "a" + " " * 10**6 + "b",
        "\n" + "\t" * 10**6,
        "#" * 10**6,
        "東" * 10**6,
        '."' * 500_000,
    ],
    ids=lambda text: repr(text[:4]),
)
def test_a_megabyte_without_an_end_is_cut_in_linear_time(text: str) -> None:
    spans = cut(text)
    assert all(span.end - span.start <= 1500 for span in spans)
    assert sum(span.end - span.start for span in spans) == len("".join(text.split()))


@pytest.mark.parametrize(("target", "limit"), [(0, 10), (-1, 10), (11, 10)])
def test_impossible_lengths_are_refused(target: int, limit: int) -> None:
    with pytest.raises(BadInputError, match=str(target)):
        cut("text", target=target, limit=limit)


@pytest.mark.shared
@pytest.mark.parametrize("language", ["en", "zh"])
def test_real_paragraphs_are_cut_near_the_target(shared_dir: Path, language: str) -> None:
    path = shared_dir / f"data/ir/xquad/{language}/docs.jsonl"
    documents = [json.loads(line)["text"] for line in path.read_text("utf-8").splitlines()]
    text = "\n\n".join(documents)
    spans = cut(text, target=300, limit=500)
    check_cover(text, spans)
    lengths = sorted(span.end - span.start for span in spans)
    assert 180 < lengths[len(lengths) // 2] <= 300
    assert lengths[-1] <= 500
    assert not any(unicodedata.combining(text[span.start]) for span in spans)
