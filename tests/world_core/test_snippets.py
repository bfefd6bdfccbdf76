"""The part of a passage that answers the query."""

from __future__ import annotations

import json
import statistics
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from world_core.analysis import Analyzer, term_hash
from world_core.errors import BadInputError
from world_core.passages import PassageFile, PassageWriter, sentences
from world_core.snippets import best_passage, snippet
from world_core.types import Span

ANALYZER = Analyzer(["en"])
FILLER = "Nothing of note was said about the weather on that long and rather quiet day. "

texts = st.text(st.characters(codec="utf-8"), max_size=400) | st.lists(
    st.sampled_from(
        [
            *("ferry ", "harbour ", "e\u0301", "word", "Dr. ", ". ", "! ", "。", "灯台", "図書館"),
            *(" ", "\n", "\n\n", "\t", "# H\n", "- ", "* ", "**", "`", "| a |", "|---|", "> "),
            *("[t](http://x.example/a_(b))", "![i](u)", "[![i](u)](v)", "[1]", "](", "[", "\\*"),
            *("👩\u200d🚀", "x" * 90, "東" * 90, "2*3", "สวัสดี", "---", "===", "C#"),
        ]
    ),
    max_size=60,
).map("".join)


def weights_of(query: str | Mapping[str, float]) -> dict[int, float]:
    if isinstance(query, str):
        query = dict.fromkeys((token.term for token in ANALYZER.tokens(query)), 1.0)
    return {term_hash(term): weight for term, weight in query.items()}


def arrays(text: str) -> tuple[np.ndarray[tuple[int], np.dtype[np.uint32]], ...]:
    tokens = ANALYZER.tokens(text)
    return (
        np.array([term_hash(token.term) for token in tokens], dtype=np.uint32),
        np.array([token.start for token in tokens], dtype=np.uint32),
    )


def shown(text: str, query: str | Mapping[str, float] = "", limit: int = 320) -> str:
    hashes, starts = arrays(text)
    return snippet(text, sentences(text), hashes, starts, weights_of(query), limit=limit)


def visible(text: str) -> str:
    return "".join(c for c in text if c.isalnum())


@given(
    texts,
    st.sampled_from(["", "ferry", "ferry harbour 灯台 図書館", "x a i t"]),
    st.integers(32, 400),
)
@example("x" * 2000, "", 32)
@example("# ", "", 32)
@settings(deadline=None, max_examples=400)
def test_every_snippet_is_one_clean_line_within_the_limit(
    text: str, query: str, limit: int
) -> None:
    line = shown(text, query, limit)
    assert len(line) <= limit
    assert line == " ".join(line.split())
    assert not set(line) & set("*|`\n")
    assert line == shown(text, query, limit)


@given(texts)
@settings(deadline=None, max_examples=200)
def test_a_snippet_says_nothing_the_passage_does_not(text: str) -> None:
    line = shown(text, "ferry harbour").removeprefix("...").removesuffix("...")
    assert not line or _is_subsequence(visible(line), visible(text))


@given(texts, st.integers(32, 100))
@settings(deadline=None, max_examples=200)
def test_no_snippet_begins_inside_a_character(text: str, limit: int) -> None:
    line = shown(text, "ferry 図書館", limit).removeprefix("... ")
    if line and unicodedata.category(line[0]) in ("Mn", "Mc"):
        # Only where the passage itself, or a word of it, does.
        assert any(word[0] == line[0] for word in text.replace("*", " ").replace("`", " ").split())


def _is_subsequence(part: str, whole: str) -> bool:
    letters = iter(whole)
    return all(letter in letters for letter in part)


@given(
    st.lists(
        st.sampled_from(["aa", "bb", "cc", "dd", "filler", "words."]), min_size=1, max_size=40
    ),
    st.permutations([1.0, 2.0, 4.0, 8.0]),
)
@settings(deadline=None, max_examples=200)
def test_the_heaviest_term_is_in_the_snippet(
    words: Sequence[str], weights: Sequence[float]
) -> None:
    text = " ".join(f"{word} {'pad ' * 7}" for word in words)
    query = dict(zip(("aa", "bb", "cc", "dd"), weights, strict=True))
    found = {word for word in words if word in query}
    line = shown(text, query)
    if found:
        assert max(found, key=query.__getitem__) in line or sum(
            query[word] for word in found if word in line
        ) >= max(query[word] for word in found)


@pytest.mark.parametrize("at", range(0, 12, 3))
def test_the_sentence_that_answers_is_shown_whole(at: int) -> None:
    fact = "The ferry to Alder Point leaves the north harbour at 07:10 on working days. "
    text = FILLER * at + fact + FILLER * (12 - at)
    line = shown(text, "ferry harbour leaves")
    assert fact.strip() in line
    assert "..." not in line
    assert len(line) <= 210


def test_a_sentence_at_the_end_is_shown_with_the_one_before_it() -> None:
    text = FILLER * 8 + "The ferry is white."
    assert shown(text, "ferry") == f"{FILLER}The ferry is white."
    assert shown("Short. " * 3 + "The ferry is white.", "ferry").startswith("Short. Short.")


def test_the_window_with_the_most_distinct_weight_wins() -> None:
    many = "Ferry ferry ferry ferry ferry ferry is what it says. "
    both = "The ferry meets the harbour here. "
    text = many + FILLER * 4 + both + FILLER * 4
    assert both.strip() in shown(text, "ferry harbour")
    heavy = {"ferry": 1.0, "harbour": 0.1, "quay": 3.0}
    quay = "Only the quay counts. "
    assert quay.strip() in shown(text + quay + FILLER * 4, heavy)


def test_of_equal_windows_the_first_is_shown() -> None:
    text = FILLER * 3 + "One ferry. " + FILLER * 5 + "Two ferry. " + FILLER * 5
    assert "One ferry." in shown(text, "ferry")
    assert "Two ferry." not in shown(text, "ferry")


def test_words_without_weight_do_not_count() -> None:
    text = FILLER * 5 + "The ferry is white. " + FILLER * 5
    opening = shown(text)
    assert opening == (FILLER * 2).strip()
    assert shown(text, {"ferry": 0.0}) == shown(text, {"ferry": -1.0}) == opening
    assert shown(text, "zebra quantum") == opening


def test_a_match_deep_in_a_long_sentence_is_shown_between_ellipses() -> None:
    text = "word " * 100 + "ferry " + "word " * 100
    line = shown(text, "ferry")
    assert line.startswith("... word")
    assert line.endswith("word ...")
    assert "ferry" in line
    assert 120 < len(line) < 200


def test_the_opening_of_a_long_sentence_has_one_ellipsis() -> None:
    line = shown("word " * 100)
    assert line.startswith("word")
    assert line.endswith("word ...")
    assert 20 <= len(line.split()) <= 36
    end = shown("word " * 100 + "ferry", "ferry")
    assert end.startswith("... word")
    assert end.endswith("ferry")


def test_a_long_word_at_the_end_of_the_window_is_shown_whole_where_it_fits() -> None:
    word = "ferry" + "x" * 120
    text = "pad " * 36 + word + " more" * 40
    line = shown(text, {f"{word[:64]}": 2.0, "pad": 1.0})
    assert word in line
    assert len(line) <= 320


def test_a_word_longer_than_any_snippet_is_cut() -> None:
    text = "pad " * 33 + "ferry" + "x" * 600
    line = shown(text, {("ferry" + "x" * 600)[:64]: 2.0, "pad": 1.0})
    assert "ferryxxx" in line
    assert line.endswith("x ...")
    assert len(line) <= 320


@pytest.mark.parametrize("unit", ["e\u0301", "👩\u200d🚀", "ｶﾞ", "नी"])
def test_a_cut_inside_a_word_splits_no_character(unit: str) -> None:
    line = shown(unit * 500).removesuffix(" ...")
    assert len(line) > 80
    assert line == unit * (len(line) // len(unit))


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("図書館は朝九時に開きます" * 100, "図書館"),
        ("图书馆早上九点开门，" * 120, "图书馆"),
        ("도서관은아침아홉시에문을엽니다" * 80, "도서관"),
        ("ห้องสมุดเปิดเวลาเก้าโมงเช้า" * 60, "ห้องสมุด"),
    ],
)
def test_scripts_without_spaces_get_shorter_snippets(text: str, query: str) -> None:
    middle = "灯" + text
    for line in (shown(text), shown(text, query), shown(middle, query)):
        assert 60 <= len(line) <= 168
        assert line.endswith("...")


def test_a_match_deep_in_a_script_without_spaces() -> None:
    text = "天" * 300 + "図書館" + "地" * 300
    line = shown(text, "図書館")
    assert "図書館" in line
    assert line.startswith("... 天")
    assert line.endswith("地 ...")
    assert 60 <= len(line) <= 160


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
    assert shown(text) == expected


def test_a_match_in_a_target_is_none() -> None:
    text = "[here](http://ferry.example/ferry) " + FILLER * 6 + "A ferry comes. " + FILLER * 3
    assert "A ferry comes." in shown(text, "ferry")


def test_a_match_behind_many_marks_is_found_in_place() -> None:
    text = "**a** [b](http://x.example/long/target) " * 30 + "the ferry. " + "**c** " * 100
    line = shown(text, "ferry")
    assert "the ferry." in line
    assert "http" not in line


def test_without_sentences_the_passage_is_one() -> None:
    hashes, starts = arrays("some ferry text")
    line = snippet("some ferry text", [], hashes, starts, weights_of("ferry"))
    assert line == "some ferry text"
    late = [Span(5, 15)]  # offsets that leave out the match do no harm
    assert "some" in snippet("some ferry text", late, hashes, starts, weights_of("some"))


@pytest.mark.parametrize("limit", [31, 0, -5])
def test_a_limit_that_shows_nothing_is_refused(limit: int) -> None:
    with pytest.raises(BadInputError, match=str(limit)):
        shown("text", limit=limit)


def test_a_small_limit_still_shows_the_match() -> None:
    text = FILLER * 5 + "The ferry is white. " + FILLER * 5
    for limit in (32, 40, 80, 120):
        line = shown(text, "ferry", limit)
        assert "ferry" in line
        assert len(line) <= limit


def test_thousands_of_query_terms_are_no_trouble() -> None:
    query = {f"w{number}": 1.0 for number in range(5000)} | {"ferry": 50.0}
    assert "ferry" in shown(FILLER * 5 + "w1 w2 ferry. " + FILLER, query)


def passage_file(path: Path, texts: Iterable[str]) -> PassageFile:
    with PassageWriter(path, ANALYZER) as writer:
        for text in texts:
            writer.add(0, text, Span(0, len(text)))
    return PassageFile.open(path)


def test_the_best_passage_covers_the_most_weight(tmp_path: Path) -> None:
    file = passage_file(
        tmp_path / "p.bin",
        ["nothing", "ferry ferry ferry", "ferry harbour", "harbour ferry", "quay", ""],
    )
    weights = weights_of({"ferry": 1.0, "harbour": 0.5, "quay": 1.25})
    assert best_passage(file, range(6), weights) == 2
    assert best_passage(file, [3, 2], weights) == 3
    assert best_passage(file, [0, 1, 4, 5], weights) == 4
    assert best_passage(file, [0, 1], weights) == 1
    assert best_passage(file, [5, 0], weights) == 5
    assert best_passage(file, [0, 5], {}) == 0
    assert best_passage(file, np.array([0, 4]), weights) == 4
    with pytest.raises(BadInputError, match="no passage"):
        best_passage(file, [], weights)


def rows(path: Path) -> dict[str, str]:
    found = map(json.loads, path.read_text("utf-8").splitlines())
    return {row["id"]: row["text"] for row in found}


@pytest.mark.shared
@pytest.mark.parametrize(
    ("language", "least", "most"), [("en", 130, 200), ("de", 130, 200), ("zh", 60, 160)]
)
def test_real_answers_have_the_length_of_a_real_engine(
    shared_dir: Path, language: str, least: int, most: int
) -> None:
    folder = shared_dir / f"data/ir/xquad/{language}"
    documents, queries = rows(folder / "docs.jsonl"), rows(folder / "queries.jsonl")
    judged = [line.split("\t") for line in (folder / "qrels.tsv").read_text("utf-8").splitlines()]
    lines = [
        shown(documents[document], queries[query])
        for query, document, *_ in judged[::5]
        if query in queries and document in documents
    ]
    assert len(lines) > 100
    assert max(map(len, lines)) <= 320
    assert least <= statistics.median(map(len, lines)) <= most
    if language == "en":
        assert 20 <= statistics.median(len(line.split()) for line in lines) <= 30
