from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus_builder import dedup
from corpus_builder.dedup import Candidate, Moment, Redirect, Resolution, resolve, signature
from world_core.types import DeadLink, VersionRecord

KEYS = [f"https://s.example/{letter}" for letter in "abcdefgh"]


def page(
    key: str, text: str = "", *, canonical: str = "", declared: bool = False, texts: bool = True
) -> Candidate:
    return Candidate(key, key, (text or key).encode(), canonical, declared, texts)


def hop(key: str, target: str) -> Redirect:
    return Redirect(key, key, target)


def solve(
    pages: list[Candidate],
    redirects: list[Redirect] | None = None,
    dead: list[DeadLink] | None = None,
    policy: str = "auto",
) -> Resolution:
    return resolve(pages, redirects or [], dead or [], exact_duplicates=policy)


def test_crawled_equals_go_to_the_shortest_then_smallest_url() -> None:
    found = solve([page("https://s.example/bb", "x"), page("https://s.example/c", "x")])
    assert found.alias_of == {"https://s.example/bb": "https://s.example/c"}
    found = solve([page("https://s.example/b", "x"), page("https://s.example/a", "x")])
    assert found.alias_of == {"https://s.example/b": "https://s.example/a"}
    assert found.counts == {dedup.AS_DUPLICATE: 1}


def test_a_text_exists_since_its_first_capture_at_any_address() -> None:
    histories = {
        KEYS[0]: (Moment(5), Moment(9, modified=8)),
        KEYS[1]: (Moment(7, published=3), Moment(8, published=6, modified=7)),
        KEYS[2]: (Moment(6, published=4), Moment(9)),
        KEYS[3]: (Moment(1), Moment(2)),
    }
    texts = ["x", "x", "x", "y"]
    pages = [
        replace(page(key, text), moments=moments)
        for (key, moments), text in zip(histories.items(), texts, strict=True)
    ]
    expected = {KEYS[0]: (Moment(5, published=4), Moment(8, published=6, modified=7))}
    assert solve(pages).moments == expected
    assert solve(pages[::-1]).moments == expected
    assert not solve(pages, policy="keep").moments


def test_rows_of_a_dump_stay_pages_unless_told_otherwise() -> None:
    pages = [page(KEYS[0], "x", declared=True), page(KEYS[1], "x", declared=True)]
    assert not solve(pages).alias_of
    assert not solve(pages, policy="keep").alias_of
    assert solve(pages, policy="alias").alias_of == {KEYS[1]: KEYS[0]}


def test_keep_keeps_crawled_equals() -> None:
    assert not solve([page(KEYS[0], "x"), page(KEYS[1], "x")], policy="keep").alias_of


def test_pages_without_text_are_never_equal() -> None:
    assert not solve([page(KEYS[0], "x", texts=False), page(KEYS[1], "x", texts=False)]).alias_of


def test_a_named_canonical_wins_over_a_shorter_url() -> None:
    short, long = "https://s.example/a", "https://s.example/long"
    pages = [page(short, "x", canonical=long), page(long, "x")]
    assert solve(pages).alias_of == {short: long}
    assert solve(pages, policy="keep").alias_of == {short: long}


def test_two_pages_that_name_each_other_are_one() -> None:
    pages = [page(KEYS[0], "x", canonical=KEYS[1]), page(KEYS[1], "x", canonical=KEYS[0])]
    assert solve(pages).alias_of == {KEYS[1]: KEYS[0]}
    assert solve(pages[::-1], policy="keep").alias_of == {KEYS[1]: KEYS[0]}


def test_a_canonical_with_other_text_is_not_believed() -> None:
    pages = [page(KEYS[0], "x", canonical=KEYS[1]), page(KEYS[1], "y")]
    assert not solve(pages).alias_of


def test_an_uncaptured_canonical_leads_to_its_only_claimer() -> None:
    assert solve([page(KEYS[0], canonical=KEYS[1])]).alias_of == {KEYS[1]: KEYS[0]}
    two = [page(KEYS[0], "x", canonical=KEYS[2]), page(KEYS[1], "x", canonical=KEYS[2])]
    assert solve(two).alias_of == {KEYS[1]: KEYS[0], KEYS[2]: KEYS[0]}


def test_an_address_claimed_by_different_pages_stays_unknown() -> None:
    pages = [page(KEYS[0], canonical=KEYS[2]), page(KEYS[1], canonical=KEYS[2])]
    assert not solve(pages).alias_of


def test_an_uncaptured_canonical_gives_way_to_what_the_crawl_saw() -> None:
    claimer = page(KEYS[0], canonical=KEYS[1])
    dead = DeadLink(KEYS[1], KEYS[1], 404, 5)
    assert not solve([claimer], dead=[dead]).alias_of
    other = page(KEYS[2])
    found = solve([claimer, other], [hop(KEYS[1], KEYS[2])])
    assert found.alias_of == {KEYS[1]: KEYS[2]}


def test_redirects_follow_to_the_page_that_stayed() -> None:
    pages = [page(KEYS[0], "x"), page(KEYS[1], "x")]
    found = solve(pages, [hop(KEYS[2], KEYS[3]), hop(KEYS[3], KEYS[1])])
    assert found.alias_of == {KEYS[1]: KEYS[0], KEYS[2]: KEYS[0], KEYS[3]: KEYS[0]}
    assert found.aliases() == {KEYS[0]: (KEYS[1], KEYS[2], KEYS[3])}
    assert found.counts == {dedup.AS_DUPLICATE: 1, dedup.AS_REDIRECT: 2}


def test_a_redirect_to_an_uncaptured_canonical_leads_to_its_page() -> None:
    pages = [page(KEYS[0], "x", canonical=KEYS[4]), page(KEYS[1], "x", canonical=KEYS[4])]
    found = solve(pages, [hop(KEYS[2], KEYS[3]), hop(KEYS[3], KEYS[4])])
    assert found.aliases() == {KEYS[0]: (KEYS[1], KEYS[2], KEYS[3], KEYS[4])}
    assert found.counts == {dedup.AS_DUPLICATE: 1, dedup.AS_REDIRECT: 2}


def test_a_redirect_to_an_address_that_different_pages_claim_is_lost() -> None:
    pages = [page(KEYS[0], canonical=KEYS[2]), page(KEYS[1], canonical=KEYS[2])]
    found = solve(pages, [hop(KEYS[3], KEYS[2])])
    assert not found.alias_of
    assert found.counts == {dedup.NOWHERE: 1}


def test_ten_hops_are_followed_and_eleven_are_not() -> None:
    chain = [f"https://s.example/{n:02d}" for n in range(12)]
    end = page(chain[11])
    hops = [hop(chain[n], chain[n + 1]) for n in range(11)]
    found = solve([end], hops)
    assert chain[1] in found.alias_of
    assert chain[0] not in found.alias_of
    assert found.counts == {dedup.AS_REDIRECT: 10, dedup.LOOP: 1}


def test_loops_are_no_page() -> None:
    found = solve([page(KEYS[0])], [hop(KEYS[1], KEYS[2]), hop(KEYS[2], KEYS[1])])
    assert not found.alias_of
    assert found.counts == {dedup.LOOP: 2}


def test_redirects_to_dead_links_are_dead_links() -> None:
    dead = DeadLink(KEYS[1], KEYS[1], 410, 5)
    found = solve([], [hop(KEYS[0], KEYS[1])], [dead])
    assert found.dead == (DeadLink(KEYS[0], KEYS[0], 410, 5), dead)
    assert found.counts == {dedup.AS_DEAD: 1}


def test_redirects_out_of_the_world_lead_nowhere() -> None:
    found = solve([], [hop(KEYS[0], KEYS[1])])
    assert not found.alias_of
    assert found.counts == {dedup.NOWHERE: 1}


@st.composite
def webs(
    draw: st.DrawFn,
) -> tuple[list[Candidate], list[Redirect], list[DeadLink]]:
    pages, redirects, dead = [], [], []
    for key in KEYS:
        kind = draw(st.sampled_from(["page", "page", "redirect", "dead", "none"]))
        if kind == "page":
            canonical = draw(st.sampled_from(["", *KEYS]))
            text = draw(st.sampled_from("xyz"))
            pages.append(
                page(
                    key,
                    text,
                    canonical="" if canonical == key else canonical,
                    declared=draw(st.booleans()),
                )
            )
        elif kind == "redirect":
            redirects.append(hop(key, draw(st.sampled_from(KEYS))))
        elif kind == "dead":
            dead.append(DeadLink(key, key, 404, 1))
    return pages, redirects, dead


@given(webs(), st.sampled_from(["auto", "alias", "keep"]), st.randoms(use_true_random=False))
def test_any_web_resolves_to_a_consistent_world(
    web: tuple[list[Candidate], list[Redirect], list[DeadLink]],
    policy: str,
    shuffle: random.Random,
) -> None:
    pages, redirects, dead = web
    found = resolve(pages, redirects, dead, exact_duplicates=policy)
    texts = {candidate.key: candidate.signature for candidate in pages}
    stayed = texts.keys() - found.alias_of.keys()
    for alias, key in found.alias_of.items():
        assert key in stayed
        assert alias not in stayed
        if alias in texts:
            assert texts[alias] == texts[key]
    assert {link.key for link in found.dead}.isdisjoint(stayed | found.alias_of.keys())
    assert [link.key for link in found.dead] == sorted(link.key for link in found.dead)
    accounted = sum(found.counts.values())
    assert accounted == len(redirects) + len(texts) - len(stayed)
    for items in (pages, redirects, dead):
        shuffle.shuffle(items)
    assert resolve(pages, redirects, dead, exact_duplicates=policy) == found


def version(title: str, text: str) -> VersionRecord:
    return VersionRecord(title, text, "en", 0)


@pytest.mark.parametrize(
    "other",
    [
        [version("a", "b"), version("c", "d")],
        [version("ab", "")],
        [version("", "ab")],
        [
            version(
                "a",
                "b",
            ),
            version("", ""),
        ],
    ],
)
def test_signatures_tell_histories_apart(other: list[VersionRecord]) -> None:
    assert signature(other) != signature([version("a", "b")])
    assert signature([version("a", "b")]) == signature([version("a", "b")])
