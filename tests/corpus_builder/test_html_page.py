from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus_builder.html_page import LINK_LIMIT, HtmlPage, TooDeepError, parse_html
from world_core.types import Link

URL = "https://x.example/docs/page.html"


def parsed(html: str, url: str = URL) -> HtmlPage:
    page = parse_html(html, url)
    assert page is not None
    return page


def test_links_are_absolute_and_have_their_text() -> None:
    page = parsed(
        """<a href="other.html">The <b>other</b>
        page</a> <a href="/top">Top</a> <a href="//y.example/a">Y</a>
        <a href="?q=1">Query</a> <a href="https://z.example/#part">Part</a>"""
    )
    assert page.links == (
        Link("https://x.example/docs/other.html", "The other page"),
        Link("https://x.example/top", "Top"),
        Link("https://y.example/a", "Y"),
        Link("https://x.example/docs/page.html?q=1", "Query"),
        Link("https://z.example/#part", "Part"),
    )


@pytest.mark.parametrize(
    "href",
    [
        "",
        "#part",
        "javascript:alert(1)",
        "mailto:a@x.example",
        "tel:+1",
        "data:text/html,x",
        "ftp://x.example/",
    ],
)
def test_links_that_lead_to_no_page(href: str) -> None:
    assert parsed(f'<a href="{href}">x</a><a>y</a>').links == ()


def test_a_link_is_listed_once_with_the_first_text_it_has() -> None:
    page = parsed('<a href="a"><img src=x></a><a href="a">Words</a><a href="./a">Later</a>')
    assert page.links == (Link("https://x.example/docs/a", "Words"),)


def test_a_link_without_text_is_kept() -> None:
    assert parsed(
        '<a href="a" title="Tip"></a><a href="b"></a><map><area href="c"></map>'
    ).links == (
        Link("https://x.example/docs/a", "Tip"),
        Link("https://x.example/docs/b", ""),
        Link("https://x.example/docs/c", ""),
    )


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ('<base href="https://y.example/dir/">', "https://y.example/dir/a"),
        ('<base href="../other/">', "https://x.example/other/a"),
        ('<base target="_top"><base href="/z/">', "https://x.example/z/a"),
        ('<base href="javascript:x">', "https://x.example/docs/a"),
        ("", "https://x.example/docs/a"),
    ],
)
def test_the_base_element_counts(base: str, expected: str) -> None:
    page = parsed(f"<html><head>{base}</head><body><a href='a'>x</a></body></html>")
    assert [link.url for link in page.links] == [expected]


def test_links_are_bounded() -> None:
    page = parsed(
        "".join(f'<a href="{number}">{"x" * 1000}</a>' for number in range(LINK_LIMIT + 9))
    )
    assert len(page.links) == LINK_LIMIT
    assert len(page.links[0].text) == 300


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<title>The  title\n</title><h1>Heading</h1>", "The title"),
        ('<meta property="og:title" content="Shared"><title>Site | Shared</title>', "Shared"),
        ('<meta name="twitter:title" content="Tweet"><title>T</title>', "Tweet"),
        ('<meta property="og:title" content=" "><title>T</title>', "T"),
        ("<title> </title><h1>The <i>heading</i></h1>", "The heading"),
        ("<svg><title>Icon</title></svg><h1>Heading</h1>", "Heading"),
        ("<title>&lt;b&gt; &amp; co</title>", "<b> & co"),
        ("<p>none</p>", ""),
        (f"<title>{'long ' * 500}</title>", ("long " * 500)[:500]),
    ],
)
def test_titles(html: str, expected: str) -> None:
    assert parsed(html).title == expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ('<html lang="de-AT"><p>x</html>', "de-AT"),
        ('<html xml:lang="fr"><p>x</html>', "fr"),
        ('<meta name="content-language" content="pl"><p>x', "pl"),
        ("<p>x", ""),
    ],
)
def test_languages(html: str, expected: str) -> None:
    assert parsed(html).language == expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ('<link rel="canonical" href="/a">', "https://x.example/a"),
        ('<link rel="alternate canonical" href="a">', "https://x.example/docs/a"),
        ('<link rel="canonical" href="mailto:a@x.example">', ""),
        ('<link rel="canonical"><link rel="canonical" href="/b">', "https://x.example/b"),
        ('<link rel="stylesheet" href="/a">', ""),
        ("", ""),
    ],
)
def test_canonical_addresses(html: str, expected: str) -> None:
    assert parsed(f"<html><head>{html}</head><body>x</body></html>").canonical == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("0; url=other.html", "https://x.example/docs/other.html"),
        ("0;URL='/a?x=1'", "https://x.example/a?x=1"),
        ("0; https://y.example/", "https://y.example/"),
        ('1.5, url="a"', "https://x.example/docs/a"),
        (" 2 ; Url = a ", "https://x.example/docs/a"),
        ("5; url=a", ""),
        ("30", ""),
        ("0", ""),
        ("0; url=javascript:x", ""),
        ("url=a", ""),
    ],
)
def test_meta_refresh(content: str, expected: str) -> None:
    content = content.replace('"', "&quot;")
    page = parsed(f'<meta http-equiv="Refresh" content="{content}"><p>The page has moved.</p>')
    assert page.refresh == expected


def test_a_refresh_on_a_page_with_much_text_is_no_redirect() -> None:
    assert (
        parsed(f'<meta http-equiv="refresh" content="0; url=a"><p>{"word " * 100}</p>').refresh
        == ""
    )


def test_a_refresh_for_readers_without_scripts_is_no_redirect() -> None:
    html = '<head><noscript><meta http-equiv="refresh" content="0; url=a"></noscript></head><p>x'
    assert parsed(html).refresh == ""


def test_the_script_of_a_stub_is_not_its_text() -> None:
    script = f"<script>{'var x = 1; ' * 100}</script>"
    assert parsed(f'<meta http-equiv="refresh" content="0; url=a">{script}<p>Moved').refresh


def test_metas_keep_the_first_value() -> None:
    page = parsed('<meta name="Date" content="1"><meta name="date" content="2"><meta name="x">')
    assert page.metas == {"date": "1"}


@pytest.mark.parametrize(
    "html", ["", " ", "\x00", "<!-- only a comment -->", "<?xml version='1.0'?>"]
)
def test_what_has_no_element(html: str) -> None:
    page = parse_html(html, URL)
    assert page is None or not page.visible_text.strip()


@pytest.mark.parametrize(
    "html",
    [
        '<?xml version="1.0" encoding="iso-8859-1"?><html><p>Żółw</p></html>',
        '<html><head><meta charset="iso-8859-1"></head><p>Żółw</p></html>',
        "<p>Żó\x00łw</p>",
        "Żółw",
        "<html\x01><p>Żółw",
        "<p>&#379;&oacute;&#x142;w</p>",
    ],
)
def test_decoded_text_is_not_decoded_again(html: str) -> None:
    assert "Żółw" in parsed(html).visible_text


def test_a_very_long_text_is_kept_whole() -> None:
    page = parsed(f"<p>{'word ' * 2_500_000}end</p>")
    assert page.visible_text.rstrip().endswith("end")


def test_a_page_too_deep_is_refused() -> None:
    with pytest.raises(TooDeepError):
        parse_html("<div>" * 60_000 + "text", URL)


@given(st.text(alphabet=st.characters(), max_size=300))
def test_any_text_is_taken(text: str) -> None:
    page = parse_html(text, URL)
    if page is not None:
        assert isinstance((page.title, page.links, page.canonical, page.refresh, page.base), tuple)


@given(st.text(alphabet="<>/ahrefbsl=\"' .:#?%&;metitlox", max_size=300))
def test_any_markup_is_taken(text: str) -> None:
    page = parse_html(text, URL)
    if page is not None:
        assert all(link.url.startswith(("http://", "https://")) for link in page.links)
