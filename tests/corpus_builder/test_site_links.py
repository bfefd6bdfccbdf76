"""Which pages a root or a section start leads to."""

from __future__ import annotations

from collections.abc import Sequence

from corpus_builder.site_links import PageNumbers, choose_sitelinks
from world_core.sitelinks import CANDIDATES
from world_core.types import Link, PageRecord, VersionRecord
from world_core.urls import canonical, page_id


def page(url: str, *versions: Sequence[str], aliases: Sequence[str] = ()) -> PageRecord:
    """Return a page with a version a hundred seconds, each with these links."""
    records = tuple(
        VersionRecord("t", "text", "en", 100 * n, links=tuple(Link(link, "") for link in links))
        for n, links in enumerate(versions)
    )
    keys = tuple(canonical(alias) for alias in aliases)
    return PageRecord(page_id(canonical(url)), canonical(url), url, records, keys)


def chosen(*pages: PageRecord) -> dict[int, list[str]]:
    """Return the targets' addresses by version, the pages taken in the order given."""
    numbers = PageNumbers()
    for record in pages:
        numbers.add(record)
    found = choose_sitelinks(pages, numbers)
    return {version: [pages[n].url for n in targets] for version, targets in found.items()}


A = "https://a.example/a"
B = "https://a.example/b"
C = "https://a.example/c"
ROOT = "https://a.example/"


def test_the_best_known_come_first_then_the_order_of_the_page() -> None:
    pages = [page(ROOT, [C, A, B]), page(A, [B]), page(B, []), page(C, [B, A])]
    assert chosen(*pages) == {0: [B, A, C]}


def test_only_starts_have_them() -> None:
    section = "https://a.example/part/"
    pages = [page(A, [B, section]), page(B, [A]), page(section, [A])]
    assert chosen(*pages) == {2: [A]}


def test_links_elsewhere_to_itself_and_to_nothing_are_none() -> None:
    other = page("https://b.example/x", [ROOT])
    root = page(ROOT, [ROOT + "#top", other.url, "https://a.example/absent", "mailto:x", "", A, A])
    assert chosen(root, other, page(A, [])) == {0: [A]}
    assert chosen(page(ROOT, [other.url]), other) == {}


def test_links_through_aliases_lead_to_the_page() -> None:
    pages = [page(ROOT, ["https://old.example/a"]), page(A, [], aliases=["https://old.example/a"])]
    assert chosen(*pages) == {0: [A]}


def test_a_page_that_links_twice_counts_once() -> None:
    pages = [page(ROOT, [A, B]), page(A, [B]), page(B, []), page(C, [A, A], [A], [A])]
    # A is linked by the root and C, B by the root and A: the page's order decides.
    assert chosen(*pages) == {0: [A, B]}


def test_links_that_came_later_do_not_count_earlier() -> None:
    pages = [
        page(ROOT, [A, B], [A, B], [B]),
        page(A, []),
        page(B, []),
        page(C, [], [B]),  # links to B from 100 on
    ]
    assert chosen(*pages) == {0: [A, B], 1: [B, A], 2: [B]}


def test_no_more_are_kept_than_can_be_asked_for() -> None:
    leaves = [page(f"https://a.example/{n}", []) for n in range(CANDIDATES + 6)]
    found = chosen(page(ROOT, [leaf.url for leaf in leaves]), *leaves)
    assert found == {0: [leaf.url for leaf in leaves[:CANDIDATES]]}


def test_a_world_without_pages_has_none() -> None:
    assert chosen() == {}
