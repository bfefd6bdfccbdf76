"""The toy world: one fact a page, a closed vocabulary, everything new with a new seed."""

from __future__ import annotations

from collections import Counter

import pytest

from corpus_builder.atlas import toy
from corpus_builder.atlas.toy import Relation, toy_captures, toy_pages, vocabulary
from world_core import urls

SEEDS = (1, 2, 77)


@pytest.mark.parametrize("seed", SEEDS)
def test_two_hundred_pages_with_a_name_and_an_address_each(seed: int) -> None:
    pages = toy_pages(seed)
    assert len(pages) == toy.TOY_PAGES == 200
    assert len({page.name for page in pages}) == 200
    assert len({urls.canonical(page.url) for page in pages}) == 200
    assert [page.number for page in pages] == list(range(200))


@pytest.mark.parametrize("seed", SEEDS)
def test_each_page_states_one_fact_in_one_sentence(seed: int) -> None:
    for page in toy_pages(seed):
        assert page.value in toy.VALUES[page.relation]
        assert page.text == f"{page.relation} of {page.name} : {page.value} ."
        assert page.question == f"{page.relation} of {page.name} ?"
        assert page.value not in page.question


@pytest.mark.parametrize("seed", SEEDS)
def test_every_relation_is_asked(seed: int) -> None:
    counts = Counter(page.relation for page in toy_pages(seed))
    assert set(counts) == set(Relation)
    assert min(counts.values()) > 40


def test_all_words_are_in_the_vocabulary() -> None:
    words = vocabulary()
    assert len(set(words)) == len(words)
    for seed in SEEDS:
        for page in toy_pages(seed):
            assert set(page.text.split()) <= set(words)
            assert set(page.question.split()) <= set(words)
            assert page.url.removeprefix(f"https://{toy.HOST}/") in words


def test_another_seed_has_the_same_names_with_new_facts_and_addresses() -> None:
    ours, theirs = toy_pages(1), toy_pages(2)
    pairs = list(zip(ours, theirs, strict=True))
    assert [page.name for page in ours] == [page.name for page in theirs]
    same_fact = sum((a.relation, a.value) == (b.relation, b.value) for a, b in pairs)
    assert same_fact < 10
    assert sum(a.url == b.url for a, b in pairs) < 10


def test_captures_are_rows_of_plain_text() -> None:
    captures = list(toy_captures(1, 10, 13))
    pages = toy_pages(1)[10:13]
    assert [c.text for c in captures] == [p.text for p in pages]
    assert [c.url for c in captures] == [p.url for p in pages]
    assert [c.title for c in captures] == [p.name for p in pages]
    assert all(c.body is None and c.status == 200 for c in captures)
    assert all(c.published is not None and c.published < c.time for c in captures)


def test_a_seed_repeats() -> None:
    assert toy_pages(5) == toy_pages(5)
