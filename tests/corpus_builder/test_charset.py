from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus_builder.charset import codec, decode, detect

POLISH = "<p>Żółw przeszedł 300 metrów; naïve café Größe.</p>"
GERMAN = "<p>Der Bäcker öffnet um sieben Uhr, süße Brötchen kosten 90 Öre.</p>"
CHINESE = "<p>市图书馆从三月一日起每天开放到晚上九点，周日除外。读者可以借阅四万八千册图书。</p>"
JAPANESE = "<p>町の図書館は四月から午後八時半まで開いています。日曜日は休みです。</p>"
RUSSIAN = (
    "<p>Городская библиотека открыта каждый день до девяти часов вечера, кроме воскресенья.</p>"
)
KOREAN = "<p>시립 도서관은 매일 저녁 아홉 시까지 문을 엽니다. 일요일은 쉽니다.</p>"


def meta(charset: str, text: str) -> str:
    return f'<html><head><meta charset="{charset}"></head><body>{text}</body></html>'


@pytest.mark.parametrize(
    ("mark", "name"),
    [
        (b"\xef\xbb\xbf", "utf-8"),
        (b"\xff\xfe", "utf-16-le"),
        (b"\xfe\xff", "utf-16-be"),
        (b"\xff\xfe\x00\x00", "utf-32-le"),
        (b"\x00\x00\xfe\xff", "utf-32-be"),
    ],
)
def test_a_byte_order_mark_decides(mark: bytes, name: str) -> None:
    assert decode(mark + POLISH.encode(name), "iso-8859-1") == POLISH


@pytest.mark.parametrize(
    ("label", "name", "text"),
    [
        ("utf-8", "utf-8", POLISH),
        ("UTF8", "utf-8", POLISH),
        ("iso-8859-1", "cp1252", GERMAN + "“–”"),
        ("windows-1252", "cp1252", GERMAN),
        ("iso-8859-2", "iso8859-2", "<p>Żółw</p>"),
        ("windows-1251", "cp1251", RUSSIAN),
        ("koi8-r", "koi8-r", RUSSIAN),
        ("gb2312", "gb18030", CHINESE),
        ("GBK", "gb18030", CHINESE),
        ("big5", "big5hkscs", "<p>圖書館延長開放時間</p>"),
        ("shift_jis", "cp932", JAPANESE + "①"),
        ("euc-jp", "euc_jp", JAPANESE),
        ("euc-kr", "cp949", KOREAN),
        ("iso-8859-9", "cp1254", "<p>Şişli ığdır</p>"),
        ("tis-620", "cp874", "<p>ห้องสมุด</p>"),
    ],
)
def test_labels(label: str, name: str, text: str) -> None:
    assert decode(text.encode(name), label) == text
    page = meta(label, text)
    assert decode(page.encode(name)) == page


def test_the_header_comes_before_the_meta_element() -> None:
    page = meta("windows-1252", RUSSIAN)
    assert decode(page.encode("cp1251"), "windows-1251") == page


@pytest.mark.parametrize("label", ["iso-8859-1", "windows-1252", "us-ascii", "koi8-r"])
def test_valid_utf8_wins_over_a_wrong_single_byte_label(label: str) -> None:
    assert decode(POLISH.encode(), label) == POLISH
    page = meta(label, POLISH)
    assert decode(page.encode()) == page


@pytest.mark.parametrize(
    "label", ["", "unknown-8bit", "utf-7", "base64", "rot13", "idna", "x" * 99]
)
def test_a_useless_label_counts_as_none(label: str) -> None:
    assert decode(POLISH.encode(), label) == POLISH


def test_a_label_that_the_bytes_contradict_counts_as_none() -> None:
    assert decode((CHINESE * 20).encode("gb18030"), "utf-8") == CHINESE * 20


def test_a_few_damaged_characters_do_not_overturn_a_label() -> None:
    body = (POLISH * 20).encode() + b"\xff" + POLISH.encode()
    assert decode(body, "utf-8") == POLISH * 20 + "\ufffd" + POLISH


def test_a_readable_meta_element_is_not_in_utf16() -> None:
    page = meta("utf-16", POLISH)
    assert decode(page.encode()) == page


@pytest.mark.parametrize("name", ["utf-16-le", "utf-16-be"])
def test_utf16_without_mark_is_recognised(name: str) -> None:
    assert decode((GERMAN * 5).encode(name)) == GERMAN * 5


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (CHINESE, "gb18030"),
        (JAPANESE, "cp932"),
        (JAPANESE, "euc_jp"),
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8-r"),
        (KOREAN, "cp949"),
        (GERMAN, "cp1252"),
    ],
)
@pytest.mark.parametrize("prefix", [0, 200_000])
def test_the_whole_body_decides_where_nothing_is_said(text: str, name: str, prefix: int) -> None:
    head = "<script>var a = 1;</script>" * (prefix // 27)
    page = head + text * 4
    assert decode(page.encode(name)) == page


def test_an_xml_declaration_is_a_label() -> None:
    page = f'<?xml version="1.0" encoding="windows-1251"?><html>{RUSSIAN}</html>'
    assert decode(page.encode("cp1251")) == page


def test_a_text_file_is_not_searched_for_meta_elements() -> None:
    page = meta("windows-1251", RUSSIAN)
    assert decode(page.encode("koi8-r"), "koi8-r", html=False) == page


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("UTF-8", "utf-8"),
        (" utf-8 ", "utf-8"),
        ("latin1", "cp1252"),
        ("iso_8859-1", "cp1252"),
        ("gb_2312-80", "gb18030"),
        ("sjis", "cp932"),
        ("x-sjis", "cp932"),
        ("Windows-31J", "cp932"),
        ("ks_c_5601-1987", "cp949"),
        ("iso-8859-8-i", "iso8859-8"),
        ("utf-7", ""),
        ("nonsense", ""),
        ("", ""),
        ("a\x00b", ""),
    ],
)
def test_codec(label: str, expected: str) -> None:
    assert codec(label) == expected


@given(st.binary(max_size=500), st.text(max_size=20))
def test_nothing_raises(body: bytes, label: str) -> None:
    assert isinstance(decode(body, label), str)
    assert "x".encode(detect(body))


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1))
def test_utf8_always_comes_back(text: str) -> None:
    text = text.replace("\ufeff", "").replace("\x00", "")
    assert decode(text.encode(), "iso-8859-1", html=False) == text
