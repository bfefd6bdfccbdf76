"""Text to terms."""

from __future__ import annotations

import json
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import Stemmer
from hypothesis import example, given, settings
from hypothesis import strategies as st

from world_core import analysis
from world_core.analysis import QUERY_LIMIT, TERM_LIMIT, Analyzer, term_hash
from world_core.errors import BadInputError

ANALYZER = Analyzer(["en", "de", "zh", "und"])

# What a reader takes for one character, in one spelling or another.
CHARACTERS = (
    *"aZ9é ß_-'\u00ad\ud800\x00\u200bＦ½ﷺ図灯あガ한ดदñİı𝕏🚢\u0640",
    *("e\u0301", "か\u3099", "ｶﾞ", "\u1112\u1161\u11ab", "ดี", "दी", "🚢\ufe0f", "ё"),
)
scripts = st.lists(st.sampled_from(CHARACTERS), max_size=30).map("".join)


def terms(text: str) -> list[str]:
    return [token.term for token in ANALYZER.tokens(text)]


@given(st.text(st.characters(), max_size=60) | scripts)
@example("\ud800\udc00")
@example("\u0301")
@example("\ufe0f🚢\ufe0fx")
@settings(deadline=None, max_examples=300)
def test_terms_are_clean_and_tokens_exact(text: str) -> None:
    last = 0
    for term, start, end in ANALYZER.tokens(text):
        assert last <= start < end <= len(text)
        last = start
        assert 0 < len(term) <= TERM_LIMIT
        term.encode()
        assert not any(unicodedata.category(c) in ("Cc", "Cs", "Zs", "Zl", "Zp") for c in term)
        assert term == terms(text[start:end])[0] or len(terms(text[start:end])) > 1


@given(st.text(st.characters(), max_size=60) | scripts)
@settings(deadline=None, max_examples=300)
def test_document_query_and_tokens_agree(text: str) -> None:
    found = terms(text)
    fields = ANALYZER.document(text, text, "en")
    assert fields["title"] == fields["body"] == found
    query = {part.name: part.terms for part in ANALYZER.query(text).fields}
    assert query["title"] == query["body"] == tuple(found)
    stems = {name: set(query.get(name, ())) for name in ("stem_en", "stem_de")}
    if "stem_en" in query:
        assert stems["stem_en"] == set(fields["stem_en"])
        assert stems["stem_de"] == set(ANALYZER.document("", text, "de")["stem_de"])
    else:
        assert len(found) > len(fields["stem_en"])  # which holds the words of both texts


@given(scripts)
@settings(deadline=None, max_examples=300)
def test_spellings_of_one_text_give_the_same_terms(text: str) -> None:
    text = text.replace("\u00ad", "").replace("\u0640", "")
    composed = unicodedata.normalize("NFC", text)
    assert terms(unicodedata.normalize("NFD", text)) == terms(composed)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("Ferry, FERRY! férry ｆｅｒｒｙ fer\u0301ry", ["ferry"] * 5),
        ("Don\u00adau", ["donau"]),
        ("Straße STRASSE", ["strasse", "strasse"]),
        ("İstanbul ılık", ["istanbul", "ilik"]),
        ("Łódź smørrebrød Œuvre", ["lodz", "smorrebrod", "oeuvre"]),
        ("ΟΔΟΣ οδος ὁδός", ["οδοσ"] * 3),
        ("Ёлка", ["елка"]),
        ("كِتَاب كتـــاب", ["كتاب", "كتاب"]),
        ("می\u200cخواهم", ["می", "خواهم"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("don't a_b C++ C# 3.14 07:10", ["don", "t", "a", "b", "c", "c", "3", "14", "07", "10"]),
        ("½ Ⅷ ①", ["12", "viii", "1"]),
        ("ﷺ", ["صلىاللهعليهوسلم"]),
        ("\ufe0f \u0301 🚢\ufe0f", []),
        ("a\x00b\ud800c", ["a", "b", "c"]),
        ("𝕏 𐐨𐐀", ["x", "𐐨𐐨"]),
        # pairs
        ("图书馆", ["图书", "书馆"]),
        ("灯", ["灯"]),
        ("国際標準化", ["国際", "際標", "標準", "準化"]),
        ("3月 Python入門", ["3", "月", "python", "入門"]),
        ("灯\u0301台", ["灯", "台"]),
        ("ガイド ｶﾞｲﾄﾞ カ\u3099イト\u3099", ["ガイ", "イド"] * 3),
        ("ﾞ", ["\u3099"]),
        ("한국 \u1112\u1161\u11ab\u1100\u116e\u11a8 ﾡ", ["한국", "한국", "\u1100"]),
        ("𠀀𠀁", ["𠀀𠀁"]),
        ("สวัสดี ๓๔", ["สวั", "วัส", "สดี", "๓๔"]),
        ("ကောင်း", ["ကောင်း"[:3] + "ကောင်း"[3:]]),
    ],
)
def test_terms(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


def test_offsets_refer_to_the_text_as_written() -> None:
    text = "a ﬁne Don\u00adau: 図書館 か\u3099く x\u0301"
    pieces = [(term, text[start:end]) for term, start, end in ANALYZER.tokens(text)]
    assert pieces == [
        ("a", "a"),
        ("fine", "ﬁne"),
        ("donau", "Don\u00adau"),
        ("図書", "図書"),
        ("書館", "書館"),
        ("がく", "か\u3099く"),
        ("x", "x\u0301"),
    ]


@pytest.mark.parametrize("letter", ["w", "é", "ﷺ", "\u0301"])
def test_a_word_of_a_megabyte_is_one_short_term(letter: str) -> None:
    for token in ANALYZER.tokens(letter * 10**6):
        assert len(token.term) == TERM_LIMIT
        assert (token.start, token.end) == (0, 10**6)
    assert len(ANALYZER.document("", letter * 10**6, "en")["body"]) == (letter != "\u0301")


def test_long_words_are_one_term_in_both_paths() -> None:
    word = "x" * (TERM_LIMIT + 5)
    assert terms(f"{word} é") == [word[:TERM_LIMIT], "e"]
    assert terms(f"{word} e") == [word[:TERM_LIMIT], "e"]
    assert terms(word[:TERM_LIMIT]) == terms(word)


def test_the_stem_field_holds_stems_of_title_and_text() -> None:
    fields = ANALYZER.document("Häuser am Meer", "Die Läufer liefen. 3 灯台", "de")
    assert fields == {
        "title": ["hauser", "am", "meer"],
        "body": ["die", "laufer", "liefen", "3", "灯台"],
        "stem_de": ["haus", "am", "meer", "die", "lauf", "lief", "3"],
    }
    assert ANALYZER.document("Ferries", "running", "en-GB")["stem_en"] == ["ferri", "run"]


def test_a_stem_needs_the_accents_and_loses_them_after() -> None:
    spanish = Analyzer(["es"])
    stemmed = spanish.document("", "producción PRODUCCIONES", "es")["stem_es"]
    expected = Stemmer.Stemmer("spanish").stemWords(["producción", "producciones"])
    assert stemmed == expected == ["produccion", "produccion"]
    assert spanish.document("", "haría", "es")["stem_es"] == [
        Stemmer.Stemmer("spanish").stemWord("haría")
    ]


@pytest.mark.parametrize("language", ["zh", "und", "xx", "fr"])
def test_no_stem_field_without_a_stemmer_of_the_world(language: str) -> None:
    assert list(ANALYZER.document("t", "x", language)) == ["title", "body"]


def test_fields_and_id_do_not_depend_on_the_order_of_languages() -> None:
    one, other = Analyzer(["en", "pt-BR", "und", "en"]), Analyzer(["und", "pt", "EN"])
    assert one.fields == other.fields == ("title", "body", "anchor", "stem_en", "stem_pt")
    assert one.id == other.id
    assert one.id == (
        f"searchworld-terms-{analysis.RULES};pystemmer-{Stemmer.version()};"
        f"unicode-{unicodedata.unidata_version};languages-en,pt,und"
    )
    assert Analyzer(["en"]).id != one.id


def test_every_language_listed_has_a_stemmer() -> None:
    languages = sorted(analysis._SNOWBALL)
    stems = tuple(f"stem_{code}" for code in languages)
    assert Analyzer(languages).fields == (*analysis.FOLDED, *stems)


def test_a_query_asks_every_field_and_counts_repeated_terms() -> None:
    query = Analyzer(["en", "de"], weights={"title": 2.5, "stem": 0.5, "stem_de": 0.25}).query(
        "Running FERRIES running"
    )
    assert [(part.name, part.weight, part.terms) for part in query.fields] == [
        ("title", 2.5, ("running", "ferries", "running")),
        ("body", 0.4, ("running", "ferries", "running")),
        ("anchor", 0.2, ("running", "ferries", "running")),
        ("stem_de", 0.25, ("running", "ferri", "running")),
        ("stem_en", 0.5, ("run", "ferri", "run")),
    ]


@pytest.mark.parametrize(
    ("text", "stems"),
    [
        ("Apollo 11 登月人", True),  # two words, two pairs
        ("Apollo 11 登月任务的宇航员", False),
        ("图书馆", False),
        ("meaning of 道 in Taoism", True),
        ("Apollo", True),
    ],
)
def test_a_query_mostly_in_pairs_asks_no_stems(text: str, stems: bool) -> None:
    names = [part.name for part in Analyzer(["en", "zh"]).query(text).fields]
    assert names == ["title", "body", "anchor", *(["stem_en"] if stems else [])]


def test_a_repeated_term_within_the_limit_of_distinct_ones_stays() -> None:
    words = [f"w{number}" for number in range(QUERY_LIMIT)]
    query = Analyzer(["en"]).query(" ".join([*words, "late", words[0]]))
    assert query.fields[0].terms == (*words, words[0])


def test_a_field_of_weight_zero_is_not_asked() -> None:
    analyzer = Analyzer(["en"], weights={"stem": 0, "anchor": 0})
    assert [part.name for part in analyzer.query("a").fields] == ["title", "body"]
    assert "stem_en" in analyzer.fields


@pytest.mark.parametrize(
    "weights", [{"titel": 1.0}, {"stem_fr": 1.0}, {"body": -0.1}, {"body": float("nan")}]
)
def test_unusable_weights_are_refused(weights: dict[str, float]) -> None:
    with pytest.raises(BadInputError, match=next(iter(weights))):
        Analyzer(["en"], weights=weights)


@pytest.mark.parametrize("text", ["", "!?", "\ud800\x00", "🚢", "\u0301"])
def test_a_query_without_a_word_is_empty(text: str) -> None:
    assert ANALYZER.query(text).is_empty


def test_a_pasted_text_is_cut_to_the_limit_of_terms() -> None:
    words = [f"w{number}" for number in range(5000)]
    for part in ANALYZER.query(" ".join(words)).fields:
        assert part.terms == tuple(words[:QUERY_LIMIT])


def test_the_memory_of_words_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analysis, "_MEMO_LIMIT", 10)
    analyzer = Analyzer(["en"])
    words = [f"é{number}" for number in range(95)]
    fields = analyzer.document("", " ".join(words), "en")
    assert fields["body"] == fields["stem_en"] == [f"e{number}" for number in range(95)]
    assert len(analyzer._fold) <= 10
    assert len(analyzer._stems["stem_en"]) <= 10


def test_threads_get_the_same_stems(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analysis, "_MEMO_LIMIT", 50)
    texts = [
        " ".join(
            f"{'walking' * (1 + at % 3)}{chr(97 + (at * number) % 26)}ies" for at in range(200)
        )
        for number in range(20)
    ]
    expected = [Analyzer(["en"]).document("", text, "en") for text in texts]
    shared = Analyzer(["en"])
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda text: shared.document("", text, "en"), texts)) == expected


def test_term_hashes_are_fixed_32_bit_numbers() -> None:
    assert term_hash("123456789") == 0xCBF43926  # the check value of CRC-32
    assert term_hash("灯台") == 0xFB5E3FAB
    assert term_hash("") == 0


@pytest.mark.shared
def test_special_characters_have_no_meaning(shared_dir: Path) -> None:
    path = shared_dir / "cases/inputs/queries-special.txt"
    lines = path.read_text("utf-8").splitlines()
    assert len(lines) > 30
    for line in lines:
        body = next(part for part in ANALYZER.query(line).fields if part.name == "body")
        assert set(body.terms) & {"ferry", "frry", "f"}, line
        assert all(term.isalnum() for term in body.terms), line


@pytest.mark.shared
def test_queries_in_chinese_and_japanese_meet_their_page(shared_dir: Path) -> None:
    path = shared_dir / "cases/inputs/corpus-cjk.jsonl"
    pages = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    for query in ("图书馆", "灯台", "国際標準化"):
        asked = set(terms(query))
        matching = [
            page for page in pages if asked <= set(terms(page["title"] + " " + page["text"]))
        ]
        assert len(matching) == 1, query
