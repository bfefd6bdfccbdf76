from __future__ import annotations

import hashlib
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from world_core.content import ContentDigest, canonical_json
from world_core.errors import BadInputError
from world_core.types import DeadLink, Link, PageRecord, Span, VersionRecord

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
TIMES = st.integers(min_value=-(2**40), max_value=2**40)
LINKS = st.builds(Link, url=TEXT, text=TEXT)
VERSIONS = st.builds(
    VersionRecord,
    title=TEXT,
    text=TEXT,
    language=TEXT,
    valid_from=TIMES,
    published=st.none() | TIMES,
    modified=st.none() | TIMES,
    links=st.lists(LINKS, max_size=3).map(tuple),
    mime=TEXT,
)
PAGES = st.builds(
    PageRecord,
    page_id=st.text("0123456789abcdef", min_size=20, max_size=20),
    key=TEXT,
    url=TEXT,
    versions=st.lists(VERSIONS, min_size=1, max_size=3).map(tuple),
    aliases=st.lists(TEXT, unique=True, max_size=3).map(tuple),
)


def started() -> ContentDigest:
    digest = ContentDigest()
    digest.header(recipe={"passages": {"target": 1000}}, encoder_id="e", analyzer_id="a")
    return digest


def id_of(page: PageRecord) -> str:
    digest = started()
    digest.page(page)
    return digest.hexdigest()


def sample_page() -> PageRecord:
    return PageRecord(
        "00" * 10,
        "https://a.example/",
        "http://a.example",
        (
            VersionRecord("One", "first", "en", 10, 20, 5, 6, (Link("https://b.example/", "b"),)),
            VersionRecord("One", "second", "en", 20),
        ),
        ("https://a.example/x", "https://a.example/y"),
    )


def test_id_is_sha256_of_the_lines_in_the_format() -> None:
    digest = started()
    digest.page(PageRecord("aa", "k", "u", (VersionRecord("t", "ü", "de", 1, 2),), ("z", "b")))
    digest.dead(DeadLink("d", "D", 404, 7))
    digest.passage(0, Span(0, 1))
    lines = (
        '{"format":1}',
        '{"recipe":{"passages":{"target":1000}}}',
        '{"encoder":"e"}',
        '{"analyzer":"a"}',
        (
            '{"aliases":["b","z"],"key":"k","page_id":"aa","url":"u","versions":[{"language":"de",'
            '"links":[],"mime":"text/html","modified":null,"published":null,"text":"ü","title":"t",'
            '"valid_from":1,"valid_to":2}]}'
        ),
        '{"key":"d","status":404,"time":7,"url":"D"}',
        "[0,0,1]",
    )
    expected = hashlib.sha256("".join(line + "\n" for line in lines).encode()).hexdigest()
    assert digest.hexdigest() == expected


@given(PAGES)
def test_equal_pages_give_equal_ids(page: PageRecord) -> None:
    assert id_of(page) == id_of(replace(page, aliases=page.aliases[::-1]))


@given(PAGES, PAGES)
def test_different_pages_give_different_ids(one: PageRecord, other: PageRecord) -> None:
    same = replace(one, aliases=tuple(sorted(one.aliases))) == replace(
        other, aliases=tuple(sorted(other.aliases))
    )
    assert (id_of(one) == id_of(other)) is same


@given(PAGES, st.data())
def test_any_changed_character_changes_the_id(page: PageRecord, data: st.DataObject) -> None:
    version = page.versions[0]
    name = data.draw(st.sampled_from(["title", "text", "language", "mime"]))
    text: str = getattr(version, name)
    place = data.draw(st.integers(0, len(text)))
    letter = data.draw(st.characters(exclude_categories=["Cs"]))
    changed = text[:place] + letter + text[place + 1 :]
    values: dict[str, Any] = {name: changed}
    other = replace(page, versions=(replace(version, **values), *page.versions[1:]))
    assert (id_of(other) == id_of(page)) is (changed == text)


def changes(page: PageRecord) -> Iterator[PageRecord]:
    first, second = page.versions
    yield replace(page, page_id="01" * 10)
    yield replace(page, key=page.key + "x")
    yield replace(page, url=page.url + "x")
    yield replace(page, aliases=page.aliases[:1])
    yield replace(page, versions=(first,))
    yield replace(page, versions=(second, first))
    for changed in (
        replace(first, valid_from=11),
        replace(first, valid_to=21),
        replace(first, published=None),
        replace(first, published=0),
        replace(first, modified=None),
        replace(first, links=()),
        replace(first, links=(Link("https://b.example/", "c"),)),
        replace(first, links=(Link("https://b.example/b", ""),)),
    ):
        yield replace(page, versions=(changed, second))


def test_every_field_of_a_page_counts() -> None:
    ids = {id_of(page) for page in (sample_page(), *changes(sample_page()))}
    assert len(ids) == 15


def test_header_dead_links_and_passages_count() -> None:
    def build(
        recipe: str = "r", encoder: str = "e", status: int = 404, end: int = 5, *, dead: bool = True
    ) -> str:
        digest = ContentDigest()
        digest.header(recipe={"name": recipe}, encoder_id=encoder, analyzer_id="a")
        digest.page(sample_page())
        if dead:
            digest.dead(DeadLink("k", "u", status, 3))
        digest.passage(0, Span(0, end))
        return digest.hexdigest()

    ids = {
        build(),
        build(recipe="s"),
        build(encoder="f"),
        build(status=410),
        build(end=6),
        build(dead=False),
    }
    assert len(ids) == 6
    assert build() == build()


def test_id_may_be_asked_on_the_way() -> None:
    digest = started()
    before = digest.hexdigest()
    digest.page(sample_page())
    assert digest.hexdigest() not in {before, started().hexdigest()}


def test_order_is_enforced() -> None:
    page = sample_page()
    with pytest.raises(BadInputError, match="before its header"):
        ContentDigest().hexdigest()
    with pytest.raises(BadInputError, match="pages after nothing"):
        ContentDigest().page(page)
    digest = started()
    with pytest.raises(BadInputError, match="fed twice"):
        digest.header(recipe={}, encoder_id="", analyzer_id="")
    digest.page(page)
    with pytest.raises(BadInputError, match="strictly ascending"):
        digest.page(page)
    digest.dead(DeadLink("b", "b", 404, 1))
    with pytest.raises(BadInputError, match="dead link 'a' was fed"):
        digest.dead(DeadLink("a", "a", 404, 1))
    with pytest.raises(BadInputError, match="pages after dead_links"):
        digest.page(replace(page, page_id="ff" * 10))
    digest.passage(1, Span(10, 20))
    for version, start in ((1, 10), (1, 0), (0, 50)):
        with pytest.raises(BadInputError, match="passage"):
            digest.passage(version, Span(start, start + 1))
    with pytest.raises(BadInputError, match="dead_links after passages"):
        digest.dead(DeadLink("c", "c", 404, 1))


def test_memory_is_flat() -> None:
    digest = started()
    text = "x" * 10_000
    tracemalloc.start()
    try:
        for number in range(300):
            record = VersionRecord("t", text, "en", 1)
            digest.page(PageRecord(f"{number:020x}", f"k{number}", "u", (record,)))
        for number in range(20_000):
            digest.passage(number, Span(0, 1))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 500_000


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud83d", {"a": b"x"}, object()])
def test_canonical_json_refuses(value: object) -> None:
    with pytest.raises(BadInputError, match="canonical JSON"):
        canonical_json(value)


def test_canonical_json_refuses_endless_nesting() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(BadInputError, match="canonical JSON"):
        canonical_json(deep)


def test_canonical_json_is_sorted_and_dense() -> None:
    assert (
        canonical_json({"b": [1, 2.5, None], "a": "ä\n"})
        == '{"a":"ä\\n","b":[1,2.5,null]}'.encode()
    )
