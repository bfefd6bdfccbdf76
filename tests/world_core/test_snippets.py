"""The part of a passage that answers the query."""

from __future__ import annotations

import json
import statistics
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from world_core.analysis import Analyzer
from world_core.errors import BadInputError
from world_core.passages import sentences
from world_core.shown import shown
from world_core.snippets import AIM, LEAST, MOST, Match, snippet

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


def said(text: str, query: str | Mapping[str, float] = "", limit: int = 320) -> str:
    """Return the snippet of a text for the sentence with the most weight."""
    if isinstance(query, str):
        query = dict.fromkeys((token.term for token in ANALYZER.tokens(query)), 1.0)
    terms = {term: number for number, (term, weight) in enumerate(query.items()) if weight > 0}
    line, begins = shown(text, sentences(text))
    tokens = ANALYZER.tokens(line)
    matches = [Match(t.start, terms[t.term]) for t in tokens if t.term in terms]
    weights = list(query.values())

    def worth(sentence: int) -> float:
        edges = [*begins, len(line)]
        held = {m.term for m in matches if edges[sentence] <= m.start < edges[sentence + 1]}
        return sum(weights[term] for term in sorted(held))

    chosen = max(range(len(begins)), key=worth, default=0)
    return snippet(
        *(line, begins),
        chosen=chosen,
        matches=matches,
        weights=weights,
        terms=len(tokens),
        limit=limit,
    )


def words(line: str) -> int:
    return len([word for word in line.split() if word != "..."])


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
    line = said(text, query, limit)
    assert len(line) <= limit
    assert line == " ".join(line.split())
    assert not set(line) & set("*|`\n")
    assert line == said(text, query, limit)


@given(texts)
@settings(deadline=None, max_examples=200)
def test_a_snippet_says_nothing_the_passage_does_not(text: str) -> None:
    line = said(text, "ferry harbour").removeprefix("...").removesuffix("...")
    assert not line or _is_subsequence(visible(line), visible(text))


@given(texts, st.integers(32, 100))
@settings(deadline=None, max_examples=200)
def test_no_snippet_begins_inside_a_character(text: str, limit: int) -> None:
    line = said(text, "ferry 図書館", limit).removeprefix("... ")
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
    line = said(text, query)
    if found:
        assert max(found, key=query.__getitem__) in line or sum(
            query[word] for word in found if word in line
        ) >= max(query[word] for word in found)


@pytest.mark.parametrize("at", range(0, 12, 3))
def test_the_sentence_that_answers_is_shown_whole(at: int) -> None:
    fact = "The ferry to Alder Point leaves the north harbour at 07:10 on working days. "
    text = FILLER * at + fact + FILLER * (12 - at)
    line = said(text, "ferry harbour leaves")
    assert fact.strip() in line
    assert "..." not in line
    assert len(line) <= 210


def test_a_sentence_at_the_end_is_shown_with_the_one_before_it() -> None:
    text = FILLER * 8 + "The ferry is white."
    assert said(text, "ferry") == f"{FILLER}The ferry is white."
    assert said("Short. " * 3 + "The ferry is white.", "ferry").startswith("Short. Short.")


def test_the_window_with_the_most_distinct_weight_wins() -> None:
    many = "Ferry ferry ferry ferry ferry ferry is what it says. "
    both = "The ferry meets the harbour here. "
    text = many + FILLER * 4 + both + FILLER * 4
    assert both.strip() in said(text, "ferry harbour")
    heavy = {"ferry": 1.0, "harbour": 0.1, "quay": 3.0}
    quay = "Only the quay counts. "
    assert quay.strip() in said(text + quay + FILLER * 4, heavy)


def test_of_equal_windows_the_first_is_shown() -> None:
    text = FILLER * 3 + "One ferry. " + FILLER * 5 + "Two ferry. " + FILLER * 5
    assert "One ferry." in said(text, "ferry")
    assert "Two ferry." not in said(text, "ferry")


def test_words_without_weight_do_not_count() -> None:
    text = FILLER * 5 + "The ferry is white. " + FILLER * 5
    opening = said(text)
    assert opening == (FILLER * 2).strip()
    assert said(text, {"ferry": 0.0}) == said(text, {"ferry": -1.0}) == opening
    assert said(text, "zebra quantum") == opening


def test_a_match_deep_in_a_long_sentence_is_shown_between_ellipses() -> None:
    text = "word " * 100 + "ferry " + "word " * 100
    line = said(text, "ferry")
    assert line.startswith("... word")
    assert line.endswith("word ...")
    assert "ferry" in line
    assert 120 < len(line) < 200


def test_the_opening_of_a_long_sentence_has_one_ellipsis() -> None:
    line = said("word " * 100)
    assert line.startswith("word")
    assert line.endswith("word ...")
    assert 20 <= len(line.split()) <= 36
    end = said("word " * 100 + "ferry", "ferry")
    assert end.startswith("... word")
    assert end.endswith("ferry")


def test_a_long_word_at_the_end_of_the_window_is_shown_whole_where_it_fits() -> None:
    word = "ferry" + "x" * 120
    text = "pad " * 36 + word + " more" * 40
    line = said(text, {f"{word[:64]}": 2.0, "pad": 1.0})
    assert word in line
    assert len(line) <= 320


def test_a_word_longer_than_any_snippet_is_cut() -> None:
    text = "pad " * 33 + "ferry" + "x" * 600
    line = said(text, {("ferry" + "x" * 600)[:64]: 2.0, "pad": 1.0})
    assert "ferryxxx" in line
    assert line.endswith("x ...")
    assert len(line) <= 320


@pytest.mark.parametrize("unit", ["e\u0301", "👩\u200d🚀", "ｶﾞ", "नी"])
def test_a_cut_inside_a_word_splits_no_character(unit: str) -> None:
    line = said(unit * 500).removesuffix(" ...")
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
    for line in (said(text), said(text, query), said(middle, query)):
        assert 60 <= len(line) <= 168
        assert line.endswith("...")


def test_a_match_deep_in_a_script_without_spaces() -> None:
    text = "天" * 300 + "図書館" + "地" * 300
    line = said(text, "図書館")
    assert "図書館" in line
    assert line.startswith("... 天")
    assert line.endswith("地 ...")
    assert 60 <= len(line) <= 160


def test_a_match_in_a_target_is_none() -> None:
    text = "[here](http://ferry.example/ferry) " + FILLER * 6 + "A ferry comes. " + FILLER * 3
    assert "A ferry comes." in said(text, "ferry")


def test_a_match_behind_many_marks_is_found_in_place() -> None:
    text = "**a** [b](http://x.example/long/target) " * 30 + "the ferry. " + "**c** " * 100
    line = said(text, "ferry")
    assert "the ferry." in line
    assert "http" not in line


def test_without_sentences_the_passage_is_one() -> None:
    assert snippet("some ferry text", []) == "some ferry text"
    assert snippet("", []) == ""
    # A match before the first sentence belongs to it.
    assert "ferry" in snippet("some ferry text", [5], matches=[Match(0, 0)], weights=[1.0])


@pytest.mark.parametrize("limit", [31, 0, -5])
def test_a_limit_that_shows_nothing_is_refused(limit: int) -> None:
    with pytest.raises(BadInputError, match=str(limit)):
        said("text", limit=limit)


def test_a_small_limit_still_shows_the_match() -> None:
    text = FILLER * 5 + "The ferry is white. " + FILLER * 5
    for limit in (32, 40, 80, 120):
        line = said(text, "ferry", limit)
        assert "ferry" in line
        assert len(line) <= limit


def test_thousands_of_query_terms_are_no_trouble() -> None:
    query = {f"w{number}": 1.0 for number in range(5000)} | {"ferry": 50.0}
    assert "ferry" in said(FILLER * 5 + "w1 w2 ferry. " + FILLER, query)


def test_what_lies_apart_is_joined_by_an_ellipsis() -> None:
    one, other = "The ferry leaves the harbour.", "The quay and the pier are closed."
    text = f"{one} {FILLER * 3}{other} {FILLER}"
    assert said(text, "ferry leaves harbour quay pier closed") == f"{one} ... {other}"
    # The later one may be the heavier, the order of the text stays.
    assert said(text, {"ferry": 2.0, "quay": 3.0}) == f"{one} ... {other}"
    # What adds little is not worth a second part.
    assert "quay" not in said(text, {"ferry": 3.0, "quay": 1.0})
    # What stands beside the sentence needs none.
    assert "..." not in said(f"{FILLER}{one} {other} {FILLER}", "ferry leaves quay pier")


def test_of_a_long_second_sentence_a_part_is_shown() -> None:
    one = "The ferry leaves the harbour."
    text = f"{one} {FILLER * 3}{'word ' * 40}the quay and the pier {'word ' * 40}."
    line = said(text, "ferry leaves harbour quay pier")
    assert line.startswith(f"{one} ... ")
    assert "the quay and the pier" in line
    assert line.endswith(" ...")
    assert LEAST <= words(line) <= MOST


def test_a_cut_begins_with_a_clause_where_one_is_near() -> None:
    text = f"{'word ' * 40}so, when the old white ferry comes, the harbour opens {'word ' * 40}."
    assert said(text, "ferry harbour").startswith("... when the old white ferry")
    far = f"{'word ' * 40}so, {'word ' * 15}the ferry comes, the harbour opens {'word ' * 40}."
    assert not said(far, "ferry harbour").startswith("... so")


def test_the_side_that_says_more_stands_beside_a_short_sentence() -> None:
    before = "The harbour opens at seven every day of the year. "
    after = "There is nothing to say of the weather on this day. "
    text = f"{FILLER}{before}Ferry, ferry and quay. {after}{FILLER}"
    assert before.strip() in said(text, {"ferry": 3.0, "quay": 3.0, "harbour": 1.0})
    assert after.strip() in said(text, {"ferry": 3.0, "quay": 3.0, "day": 0.1})


def test_a_short_sentence_among_long_ones_is_filled_up() -> None:
    long = "word " * 60 + "end. "
    for text in (f"{long}The ferry is white. {long}", f"{long}The ferry is white."):
        line = said(text, "ferry")
        assert "The ferry is white." in line
        assert LEAST <= words(line) <= MOST
        assert line.count("...") == 1
    assert said(f"The ferry is white. {long}", "ferry").startswith("The ferry is white. word")


@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=12), st.integers(0, 11), st.integers(0, 700)
)
def test_a_snippet_has_the_words_of_a_real_engine(
    lengths: Sequence[int], chosen: int, at: int
) -> None:
    spans, text = [], ""
    for length in lengths:
        spans.append(len(text))
        text += " ".join(["lorem"] * length) + ". "
    text = text.strip()
    chosen %= len(spans)
    place = min(at * 6, len(text) - 1)
    line = snippet(text, spans, chosen=chosen, matches=[Match(place, 0)], weights=[1.0])
    assert min(LEAST - 3, sum(lengths)) <= words(line) <= MOST
    if lengths[chosen] <= MOST:
        assert " ".join(["lorem"] * lengths[chosen]) + "." in line
    assert AIM <= MOST


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
        said(documents[document], queries[query])
        for query, document, *_ in judged[::5]
        if query in queries and document in documents
    ]
    assert len(lines) > 100
    assert max(map(len, lines)) <= 320
    assert least <= statistics.median(map(len, lines)) <= most
    if language == "en":
        assert 20 <= statistics.median(len(line.split()) for line in lines) <= 30
