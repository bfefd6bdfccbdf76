"""What pages are called by links: whose, when, how often, and what is navigation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus_builder import anchors as module
from corpus_builder.anchors import Anchor, joined, texts_at, version_anchors
from corpus_builder.rows import write_rows
from world_core import urls
from world_core.analysis import Analyzer
from world_core.types import FOREVER, Link, PageRecord, VersionRecord

ANALYZER = Analyzer(["en", "zh"])
MANY = 1000


def page(
    url: str,
    *links: tuple[str, str],
    times: Sequence[int] = (10,),
    aliases: Sequence[str] = (),
) -> PageRecord:
    """Return a page whose versions all have these links (target, text)."""
    key = urls.canonical(url)
    versions = tuple(
        VersionRecord(
            "",
            f"edition {begin}",
            "en",
            begin,
            end,
            links=tuple(Link(target, text) for target, text in links),
        )
        for begin, end in zip(times, [*times[1:], FOREVER], strict=True)
    )
    return PageRecord(
        urls.page_id(key), key, url, versions, tuple(urls.canonical(a) for a in aliases)
    )


@pytest.fixture
def found(tmp_path: Path) -> Callable[[list[PageRecord]], dict[str, list[str]]]:
    """Give a function that returns the anchors of each version by ``address@time``."""

    def run(pages: list[PageRecord]) -> dict[str, list[str]]:
        ordered = sorted(pages, key=lambda page: page.page_id)
        write_rows(tmp_path / "pages-0.jsonl.zst", ordered[:3])
        write_rows(tmp_path / "pages-1.jsonl.zst", ordered[3:])
        blocks = [tmp_path / "pages-0.jsonl.zst", tmp_path / "pages-1.jsonl.zst"]
        texts = [" ".join(terms) for terms in version_anchors(blocks, tmp_path / "l", ANALYZER)]
        assert not (tmp_path / "l").exists()
        names = [
            f"{page.url}@{version.valid_from}" for page in ordered for version in page.versions
        ]
        made: dict[str, list[str]] = {
            name: [text] if text else [] for name, text in zip(names, texts, strict=True)
        }
        return made

    return run


Found = Callable[[list[PageRecord]], dict[str, list[str]]]
A, B, C = "https://a.example/", "https://b.example/", "https://c.example/"


def test_a_page_is_called_what_links_call_it(found: Found) -> None:
    pages = [page(A, (B, "Harbour Café"), (C, "灯台守")), page(B, (C, "!!")), page(C)]
    assert found(pages) == {f"{A}@10": [], f"{B}@10": ["harbour cafe"], f"{C}@10": ["灯台 台守"]}


def test_links_through_aliases_fragments_and_spellings_count(found: Found) -> None:
    old = "https://old.example/b"
    pages = [
        page(A, (f"HTTP://B.example:80/?utm_source=x#{1}", "spelled"), (old, "alias")),
        page(B, aliases=[old]),
    ]
    assert found(pages)[f"{B}@10"] == ["alias spelled"]


def test_a_page_does_not_name_itself(found: Found) -> None:
    old = "https://old.example/b"
    pages = [page(B, (B, "me"), (f"{B}#top", "top"), (old, "former me"), aliases=[old]), page(A)]
    assert found(pages)[f"{B}@10"] == []


def test_links_that_lead_nowhere_are_nothing(found: Found) -> None:
    pages = [page(A, ("https://x.example/", "gone"), ("mailto:a@b", "mail"), ("", "")), page(B)]
    assert found(pages) == {f"{A}@10": [], f"{B}@10": []}


def test_a_text_counts_once_a_host_and_again_for_another(found: Found) -> None:
    pages = [
        page("https://a.example/1", (C, "Pier"), (C, "pier!")),
        page("https://a.example/2", (C, "PIER")),
        page("https://b.example/1", (C, "pier")),
        page(C),
    ]
    assert found(pages)[f"{C}@10"] == ["pier pier"]


def test_only_links_of_the_time_are_carried(found: Found) -> None:
    pages = [
        page(A, (C, "before"), times=[5]),
        page("https://a.example/same", (C, "same moment"), times=[20]),
        page(B, (C, "after"), times=[30]),
        page(C, times=[10, 20, 40]),
    ]
    names = found(pages)
    assert names[f"{C}@10"] == ["before"]
    assert names[f"{C}@20"] == ["before same moment"]
    assert names[f"{C}@40"] == ["after before same moment"]


def test_a_link_that_was_taken_away_is_carried_no_more(found: Found) -> None:
    source = page(A, (C, "once"), times=[5, 20])
    first, second = source.versions
    source = replace(source, versions=(first, replace(second, links=())))
    pages = [source, page(C, times=[10, 15, 30])]
    names = found(pages)
    assert [names[f"{C}@{time}"] for time in (10, 15, 30)] == [["once"], ["once"], []]


def test_what_comes_later_changes_nothing_before(found: Found) -> None:
    early = [page(A, (C, "early"), times=[5]), page(C, times=[10])]
    late = [
        page(f"https://late.example/{n}", (C, f"late {n % 3}"), (C, "early"), times=[50 + n])
        for n in range(9)
    ]
    rewritten = [page(A, (C, "early"), times=[5, 60]), page(C, times=[10, 70])]
    assert found([*rewritten, *late])[f"{C}@10"] == found(early)[f"{C}@10"]


def test_navigation_is_left_out(found: Found) -> None:
    site = [
        page(f"https://a.example/{n}", (C, "Home"), *([(C, "The pier")] if n < 4 else []))
        for n in range(8)
    ]
    pages = [*site, page(C), page(B, (C, "Home"))]
    # "Home" is what all of one host say; the other host's one link stays.
    assert found(pages)[f"{C}@10"] == ["the pier home"]
    assert found([*site, page(C)])[f"{C}@10"] == ["the pier"]


def test_navigation_is_judged_by_the_pages_of_the_time(found: Found) -> None:
    site = [page(f"https://a.example/{n}", (C, "Home"), times=[n]) for n in range(12)]
    others = [page(f"https://a.example/x{n}", times=[20 + n]) for n in range(30)]
    names = found([*site, *others, page(C, times=[3, 11, 100])])
    assert names[f"{C}@3"] == ["home"]  # four pages: too few to tell
    assert names[f"{C}@11"] == []
    assert names[f"{C}@100"] == ["home"]  # 12 of 42 pages


def link(text: str, host: str = "a.example", source: int = 1) -> Anchor:
    return Anchor(0, text, host, source, 0, FOREVER)


def test_the_most_agreed_texts_come_first_and_the_rest_is_cut() -> None:
    links = [
        link("few"),
        *(link("many", host=f"{n}.example") for n in range(3)),
        *(link("wide", source=n) for n in range(3)),
    ]
    assert texts_at(links, 5, lambda host, moment: MANY) == ["many"] * 3 + ["wide", "few"]
    crowd = [link(f"t{n:03}") for n in range(module.TEXTS + 9)]
    kept = texts_at(crowd, 5, lambda host, moment: MANY)
    assert kept == [f"t{n:03}" for n in range(module.TEXTS)]


def test_a_text_is_cut_to_its_first_terms(found: Found) -> None:
    text = " ".join(f"w{n}" for n in range(module.TERMS + 5))
    pages = [page(A, (B, text)), page(B)]
    assert found(pages)[f"{B}@10"] == [" ".join(f"w{n}" for n in range(module.TERMS))]


@given(
    st.lists(
        st.builds(
            Anchor,
            target=st.just(0),
            text=st.sampled_from(["a", "b c", "d"]),
            host=st.sampled_from(["x", "y"]),
            source=st.integers(0, 12),
            begin=st.integers(0, 9),
            end=st.integers(3, 12),
        ),
        max_size=40,
    ),
    st.integers(0, 12),
    st.integers(0, 20),
    st.randoms(use_true_random=False),
)
def test_order_repeats_and_later_links_do_not_matter(
    links: list[Anchor], moment: int, pages: int, source: Random
) -> None:
    here = texts_at(links, moment, lambda host, moment: pages)
    shuffled = [*links, *links[:5], Anchor(0, "new", "z", 1, moment + 1, FOREVER)]
    source.shuffle(shuffled)
    assert texts_at(shuffled, moment, lambda host, moment: pages) == here
    seen = {anchor.text for anchor in links if anchor.begin <= moment < anchor.end}
    assert set(here) <= set(chain.from_iterable(text.split() for text in seen))


def test_links_are_sorted_in_runs_of_any_size(
    found: Found, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = [
        page(
            f"https://a.example/{n}",
            *((f"https://a.example/{n * k % 20}", f"text {n} {k}") for k in range(6)),
            times=[n, n + 30],
        )
        for n in range(20)
    ]
    whole = found(pages)
    monkeypatch.setattr(module, "RUN", 7)
    assert found(pages) == whole
    assert sum(bool(names) for names in whole.values()) > 20


def test_an_iteration_that_is_closed_leaves_nothing(tmp_path: Path) -> None:
    write_rows(tmp_path / "p.zst", [page(A, (B, "b")), page(B)])
    named = version_anchors([tmp_path / "p.zst"], tmp_path / "links", ANALYZER)
    next(named)
    assert (tmp_path / "links").is_dir()
    named.close()
    assert not (tmp_path / "links").exists()


def test_units_get_the_anchors_of_their_version() -> None:
    units = [{"body": [str(n)]} for n in range(4)]
    names = [["a"], ["skipped"], ["c"], ["not asked"]]
    made = list(joined(units, [0, 0, 2, 2], names))
    assert made == [{"body": [str(n)], "anchor": ["a"] if n < 2 else ["c"]} for n in range(4)]
