"""Which addresses are one page."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from world_core.urls import canonical, display, host_of, page_id, resolve

KEY = re.compile(
    r"https://(?:[a-z0-9._~!$&'()*+,;=-]+|\[[0-9a-f:]+\])(?::[0-9]+)?/[\x21-\x7e]*", re.ASCII
)

any_text = st.text(st.characters(), max_size=60) | st.text(
    "ahtps:/\\?#@[]%.\t \ud800é0-&=", max_size=60
)
segments = st.text(st.characters(exclude_characters="/?#\\"), max_size=12)
hosts = st.sampled_from(
    ["a.example", "A.Example.", "bücher.example", "xn--bcher-kva.example", "[::1]", "1.2.3.4"]
)


@st.composite
def addresses(draw: st.DrawFn) -> str:
    scheme = draw(st.sampled_from(["http://", "https://", "HTTPS:/", "", "//", "https:\\\\"]))
    port = draw(st.sampled_from(["", ":80", ":443", ":8080", ":", ":x"]))
    path = "/".join(["", *draw(st.lists(segments, max_size=4))])
    query = draw(st.sampled_from(["", "?", "?a=1&b=%20", "?utm_source=x", "?a=[1]&é=1", "?x=?y"]))
    return (
        f"{scheme}{draw(hosts)}{port}{path}{query}{draw(st.sampled_from(['', '#f', '#!f', '#']))}"
    )


@given(any_text | addresses())
@example("https://[::1")
@example("https://\ud800\udc00.example/\ud800")
@example("https://x/%%34%2%35")
@example("https://x/%2e%2e/..%2f")
@example("https://\u212a.example:\u0661/")
@example("https://a\u200bb.example/")
@example("\ufeff https://x/ \u200e")
@settings(deadline=None, max_examples=400)
def test_a_key_is_empty_or_well_formed_and_stays_itself(text: str) -> None:
    key = canonical(text)
    assert canonical(key) == key
    assert not key or KEY.fullmatch(key)


@given(any_text | addresses())
@settings(deadline=None, max_examples=400)
def test_the_shown_spelling_has_the_same_key_and_stays_itself(text: str) -> None:
    shown = display(text)
    assert display(shown) == shown
    assert canonical(shown) == canonical(text)
    shown.encode()
    assert not re.search(r"[\x00-\x20\x7f-\xa0\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069]", shown)


@given(any_text | addresses(), any_text | addresses())
@settings(deadline=None, max_examples=400)
def test_a_target_is_empty_or_an_address_with_a_scheme(base: str, link: str) -> None:
    target = resolve(base, link)
    if target:
        assert canonical(target)
        assert re.match(r"https?:", target, re.IGNORECASE)


@given(addresses(), addresses())
@settings(deadline=None)
def test_an_absolute_link_is_its_own_target(base: str, link: str) -> None:
    if re.match(r"https?:", link, re.IGNORECASE) and canonical(link):
        assert resolve(base, link) == display(link)


@pytest.mark.parametrize(
    ("url", "key"),
    [
        # scheme
        ("http://a.example/", "https://a.example/"),
        ("HTTPS://A.Example", "https://a.example/"),
        ("a.example", "https://a.example/"),
        ("a.example/x?y=1", "https://a.example/x?y=1"),
        ("localhost:8000/x", "https://localhost:8000/x"),
        ("LOCALHOST/x", "https://localhost/x"),
        ("[::1]:8080/x", "https://[::1]:8080/x"),
        ("//a.example/x", "https://a.example/x"),
        ("https:/a.example/x", "https://a.example/x"),
        ("https:a.example/x", "https://a.example/x"),
        ("https:////a.example//x", "https://a.example//x"),
        ("http:\\\\a.example\\x\\..\\y", "https://a.example/y"),
        # host
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://BÜCHER.example/", "https://xn--bcher-kva.example/"),
        ("https://b%C3%BCcher.example/", "https://xn--bcher-kva.example/"),
        ("https://bu\u0308cher.example/", "https://xn--bcher-kva.example/"),
        ("https://XN--BCHER-KVA.example/", "https://xn--bcher-kva.example/"),
        ("https://bü\u00adcher.example/", "https://xn--bcher-kva.example/"),
        ("https://faß.example/", "https://xn--fa-hia.example/"),
        ("https://ΟΔΟΣ.example/", "https://xn--pxavbq.example/"),
        ("https://a。example．/", "https://a.example/"),
        ("https://a.example./", "https://a.example/"),
        ("https://a.example../", "https://a.example/"),
        ("https://a..example/", "https://a..example/"),
        (
            "https://тест.example:8443/путь",
            "https://xn--e1aybc.example:8443/%D0%BF%D1%83%D1%82%D1%8C",
        ),
        (f"https://{'a' * 70}.example/", f"https://{'a' * 70}.example/"),
        ("https://a_b.example/", "https://a_b.example/"),
        # IPv6 in its shortest form, whatever the Python
        ("http://[::1]/", "https://[::1]/"),
        ("http://[::]/", "https://[::]/"),
        ("http://[2001:DB8:0:0:1:0:0:1]/", "https://[2001:db8::1:0:0:1]/"),
        ("http://[2001:db8:0:1:1:1:1:1]/", "https://[2001:db8:0:1:1:1:1:1]/"),
        ("http://[1:0:0:2:0:0:0:3]:81/", "https://[1:0:0:2::3]:81/"),
        ("http://[10:0:0:20::]/", "https://[10:0:0:20::]/"),
        ("http://[::ffff:1.2.3.4]/", "https://[::ffff:102:304]/"),
        # port and userinfo
        ("http://a.example:80/", "https://a.example/"),
        ("http://a.example:443/", "https://a.example/"),
        ("http://a.example:0443/", "https://a.example/"),
        ("http://a.example:/", "https://a.example/"),
        ("http://a.example:0/", "https://a.example:0/"),
        ("http://a.example:65535/", "https://a.example:65535/"),
        ("https://user:secret@a.example/", "https://a.example/"),
        ("https://a.example\\@b.example/", "https://a.example/@b.example/"),
        # path
        ("https://a.example/a/./b/../c", "https://a.example/a/c"),
        ("https://a.example/a/..", "https://a.example/"),
        ("https://a.example/a/.", "https://a.example/a/"),
        ("https://a.example/../../a", "https://a.example/a"),
        ("https://a.example/a/%2e%2E/b", "https://a.example/b"),
        ("https://a.example/a//../b", "https://a.example/a/b"),
        ("https://a.example//a//b/", "https://a.example//a//b/"),
        ("https://a.example/.well-known/x", "https://a.example/.well-known/x"),
        ("https://a.example/%7euser", "https://a.example/~user"),
        ("https://a.example/a%2fb", "https://a.example/a%2Fb"),
        ("https://a.example/%zz%", "https://a.example/%25zz%25"),
        ("https://a.example/a b", "https://a.example/a%20b"),
        ("https://a.example/ä", "https://a.example/%C3%A4"),
        ("https://a.example/%c3%a4", "https://a.example/%C3%A4"),
        ("https://a.example/a;p=1,2", "https://a.example/a;p=1,2"),
        ('https://a.example/"<>^`{|}', "https://a.example/%22%3C%3E%5E%60%7B%7C%7D"),
        ("https://a.example/\x00\x7f", "https://a.example/"),
        ("https://a.example/\x00x", "https://a.example/%00x"),
        ("https://a.exa\tmple/\na\r", "https://a.example/a"),
        ("https://a.example/\ud800x", "https://a.example/%EF%BF%BDx"),
        # query and fragment
        ("https://a.example?x", "https://a.example/?x"),
        ("https://a.example/?", "https://a.example/"),
        ("https://a.example/?b=2&a=1", "https://a.example/?b=2&a=1"),
        ("https://a.example/?a=1&&a=1", "https://a.example/?a=1&&a=1"),
        ("https://a.example/?q=a+b%20c", "https://a.example/?q=a+b%20c"),
        ("https://a.example/?u=https://b.example/?c", "https://a.example/?u=https://b.example/?c"),
        ("https://a.example/?a\\b", "https://a.example/?a%5Cb"),
        ("https://a.example/#top", "https://a.example/"),
        ("https://a.example/?a#", "https://a.example/?a"),
        ("https://a.example/#!/x y", "https://a.example/#!/x%20y"),
        # tracking parameters
        ("https://a.example/?utm_source=x&id=3&fbclid=Iw", "https://a.example/?id=3"),
        ("https://a.example/?UTM_x=1", "https://a.example/"),
        ("https://a.example/?utm%5Fmedium=x&gclid", "https://a.example/"),
        ("https://a.example/?utm=1&clid=2&ref=3", "https://a.example/?utm=1&clid=2&ref=3"),
    ],
)
def test_listed_rules(url: str, key: str) -> None:
    assert canonical(url) == key


@pytest.mark.parametrize(
    "url",
    [
        "",
        "   ",
        "javascript:alert(1)",
        "mailto:a@b.example",
        "data:text/html,x",
        "ftp://a.example/",
        "tel:123",
        "word",
        "two words.example",
        "/path",
        "?q",
        "#f",
        "https://",
        "https:///?x",
        "https://./",
        "https://\u00ad/",
        "https://a b/",
        "https://a%20b/",
        "https://a<b/",
        "https://a%2Fb/",
        "https://℀.example/",  # NFKC gives a slash
        "https://a%zz/",
        "https://a.example:x/",
        "https://a.example:٣/",
        "https://a.example:65536/",
        "https://a.example:99999999999999999999/",
        "https://[::1/",
        "https://[::1]x/",
        "https://[fe80::1%25eth0]/",
        "https://[nonsense]/",
        f"https://{'a.' * 129}/",
        f"https://{'é' * 250}.example/",
        f"https://{'éü' * 100}.{'éüä' * 10}.example/",
        f"https://{'%C3%A9' * 2000}.example/",
    ],
)
def test_what_cannot_be_an_address(url: str) -> None:
    assert canonical(url) == ""
    assert resolve("https://b.example/", url) == "" or ":" not in url


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://www.a.example/", "https://a.example/"),
        ("https://www2.a.example/", "https://www.a.example/"),
        ("https://a.example/x", "https://a.example/x/"),
        ("https://a.example/x/", "https://a.example/x/index.html"),
        ("https://a.example/x", "https://a.example/X"),
        ("https://a.example/a%2Fb", "https://a.example/a/b"),
        ("https://a.example/a%5Cb", "https://a.example/a\\b"),
        ("https://a.example/a%3Bb", "https://a.example/a;b"),
        ("https://a.example/a//b", "https://a.example/a/b"),
        ("https://a.example/?id=3", "https://a.example/?id=4"),
        ("https://a.example/?a=1&b=2", "https://a.example/?b=2&a=1"),
        ("https://a.example/?a", "https://a.example/?a="),
        ("https://a.example/?a=b+c", "https://a.example/?a=b%20c"),
        ("https://a.example/%25zz", "https://a.example/zz"),
        ("https://a.example:8080/", "https://a.example/"),
        ("https://a.example/#!x", "https://a.example/"),
        ("https://a.example/\u00fc", "https://a.example/u\u0308"),  # two spellings, two resources
    ],
)
def test_nothing_else_is_folded(one: str, other: str) -> None:
    assert canonical(one)
    assert canonical(one) != canonical(other)


@pytest.mark.parametrize(
    "text",
    [
        "a" * 10**6,
        "https://" + "é" * 10**6,
        "https://a.example/" + "é" * 10**6,
        "https://a.example/" + "../" * 300_000,
        "https://a.example/" + "%" * 10**6,
        "https://a.example/?" + "&" * 10**6,
        "https://a.example/a" + " " * 10**6 + "b",
        "https://[" + ":" * 10**6 + "]/",
        "a.b:" + "1" * 10**6,
        "." * 10**6,
    ],
    ids=lambda text: f"{text[:22]!r}...",
)
def test_a_megabyte_is_no_reason_to_hang(text: str) -> None:
    key = canonical(text)
    assert canonical(key) == key


@pytest.mark.parametrize(
    ("base", "link", "target"),
    [
        ("https://a.example/x/y", "z", "https://a.example/x/z"),
        ("https://a.example/x/y?q#f", "../z?a#b", "https://a.example/z?a#b"),
        ("https://a.example/x/y?q#f", "/z", "https://a.example/z"),
        ("https://a.example/x/y?q#f", "?z", "https://a.example/x/y?z"),
        ("https://a.example/x/y?q#f", "#z", "https://a.example/x/y?q#z"),
        ("https://a.example/x/y?q#f", "", "https://a.example/x/y?q"),
        ("https://a.example/x/y#f", "", "https://a.example/x/y"),
        ("https://a.example", "z", "https://a.example/z"),
        ("http://a.example/x", "//b.example/y", "http://b.example/y"),
        ("http://a.example/x", "\\\\b.example\\y", "http://b.example/y"),
        ("https://a.example/x/", "a\\b?c\\d", "https://a.example/x/a/b?c\\d"),
        ("https://u:p@a.example:81/x", "y", "https://a.example:81/y"),
        ("a.example/x/y", "z", ""),
        ("word", "z", ""),
        ("https://a.example/", " Ärger und mehr ", "https://a.example/Ärger%20und%20mehr"),
        ("https://a.example/", "HTTP://B.example/É", "HTTP://B.example/É"),
        ("https://a.example/", "b.example/x", "https://a.example/b.example/x"),
        ("https://a.example/", "b.example:80/x", ""),
        ("https://a.example/", "javascript:void(0)", ""),
        ("https://a.example/", "mailto:a@b.example", ""),
        ("https://a.example/", "httpx://b.example/", ""),
        ("https://a.example/", "http://", ""),
        ("https://a.example/", "//", ""),
        ("mailto:a@b.example", "x", ""),
        ("", "x", ""),
    ],
)
def test_link_targets(base: str, link: str, target: str) -> None:
    assert resolve(base, link) == target


def test_page_ids_are_the_digest_of_the_key() -> None:
    key = canonical("http://A.example")
    assert page_id(key) == hashlib.sha256(b"https://a.example/").hexdigest()[:20]
    assert re.fullmatch("[0-9a-f]{20}", page_id("no key \ud800"))


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://www.a.example:8080/x:y", "www.a.example"),
        ("https://[::1]:8080/x", "[::1]"),
        ("https://[::1]/", "[::1]"),
        ("https://a.example/", "a.example"),
        ("mailto:x", ""),
    ],
)
def test_host_of_a_key(url: str, host: str) -> None:
    assert host_of(canonical(url)) == host


def test_the_shown_spelling_is_the_stored_one() -> None:
    assert display("  https://BÜCHER.example/Ä?x#y\n") == "https://BÜCHER.example/Ä?x#y"
    assert display("https://a.example/a b\u202ec\td") == "https://a.example/a%20b%E2%80%AEcd"
    assert display("https://a.example/\udfff") == "https://a.example/\ufffd"


@pytest.mark.shared
def test_the_addresses_that_agents_asked_for(shared_dir: Path) -> None:
    path = shared_dir / "data/traffic/literesearcher_requests.jsonl"
    urls = {url for line in path.read_text("utf-8").splitlines() for url in _urls(json.loads(line))}
    keys = [canonical(url) for url in urls]
    assert len(keys) > 50
    assert all(keys)
    assert [canonical(key) for key in keys] == keys


def _urls(value: object) -> list[str]:
    if isinstance(value, str):
        return [value] if value.startswith("http") else []
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [url for part in parts for url in _urls(part)]
