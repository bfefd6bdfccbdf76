"""Planted copies are found, with their shares; nothing else is. Every pair against brute force."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus_builder import near_pairs
from corpus_builder.near_pairs import ALIKE, SAMPLE, Pairs, fewest, find_pairs
from corpus_builder.shingle_blocks import ShingleSets
from world_core.shingles import Shingler

LEAST = 0.6
Found = dict[tuple[int, int], int]


def sets_of(
    texts: Sequence[str], pages: Sequence[int] | None = None, block: int = 7
) -> ShingleSets:
    """Return the shingles of texts, each of its own page unless told otherwise, in some blocks."""
    shingler = Shingler()
    found = [shingler.shingles(text) for text in texts]
    nothing = np.zeros(0, np.uint64)
    firsts = [*range(0, len(texts), block), len(texts)]
    blocks = [found[first:end] for first, end in pairwise(firsts)]
    sizes = [[part.size for part in parts] for parts in blocks]
    starts = [np.cumsum([0, *counts])[:-1] for counts in sizes]
    return ShingleSets(
        np.array(range(len(texts)) if pages is None else pages, np.int64),
        np.array([size for counts in sizes for size in counts], np.int64),
        np.concatenate([np.zeros(0, np.int64), *starts]),
        np.array(firsts, np.int64),
        tuple(np.concatenate([nothing, *parts]) for parts in blocks),
    )


def nobody(count: int) -> None:
    """Ignore how far it is."""


def by_pair(pairs: Pairs) -> Found:
    rows = zip(pairs.held.tolist(), pairs.holder.tolist(), pairs.common.tolist(), strict=True)
    return {(held, holder): common for held, holder, common in rows}


def brute(texts: Sequence[str], pages: Sequence[int], least: float) -> Found:
    shingler = Shingler()
    every = [frozenset(shingler.shingles(text).tolist()) for text in texts]
    return {
        (held, holder): len(every[held] & every[holder])
        for held, holder in permutations(range(len(texts)), 2)
        if pages[held] != pages[holder]
        and every[held]
        and len(every[held] & every[holder]) / len(every[held]) >= least
    }


def words(draw: random.Random, count: int) -> list[str]:
    return [f"{draw.choice('abcdefgh')}{draw.randrange(5000)}" for _ in range(count)]


def planted(draw: random.Random, text: list[str], share: float, around: int) -> str:
    """Return a text of other words that holds the last part of the text, as large as told."""
    kept = round((len(text) - 4) * share) + 4
    before = words(draw, around // 2)
    return " ".join([*before, *text[-kept:], *words(draw, around - len(before))])


@pytest.mark.parametrize("length", [9, 30, 60, 300, 3000])
@pytest.mark.parametrize("around", [20, 2000])
def test_planted_copies_are_found_with_their_shares(length: int, around: int) -> None:
    draw = random.Random(length + around)
    text = words(draw, length)
    texts = [" ".join(text)]
    texts += [planted(draw, text, share, around) for share in (1.0, 0.8, 0.5)]
    texts += [" ".join(words(draw, 500)) for _ in range(20)]
    pairs = find_pairs(sets_of(texts), LEAST, nobody)
    held = {
        holder: share
        for version, holder, share in zip(
            pairs.held.tolist(), pairs.holder.tolist(), pairs.shares().tolist(), strict=True
        )
        if version == 0
    }
    assert set(held) == {1, 2}
    assert held[1] == 1.0
    assert held[2] == pytest.approx(0.8, abs=0.05)
    assert by_pair(pairs) == brute(texts, range(len(texts)), LEAST)


@pytest.mark.parametrize("seed", range(4))
def test_every_pair_of_overlapping_texts_is_found(seed: int) -> None:
    draw = random.Random(seed)
    pieces = [" ".join(words(draw, draw.choice((3, 8, 25, 120)))) for _ in range(60)]
    texts = [
        ". ".join(draw.choice(pieces) for _ in range(draw.choice((0, 1, 2, 3, 6, 15))))
        for _ in range(200)
    ]
    pages = sorted(draw.randrange(150) for _ in texts)
    found = by_pair(find_pairs(sets_of(texts, pages), LEAST, nobody))
    assert found == brute(texts, pages, LEAST)
    assert len(found) > 200


@given(
    st.lists(st.lists(st.sampled_from("abcdefg"), max_size=30), max_size=12),
    st.sampled_from([0.3, 0.5, 0.6, 0.9]),
    st.integers(1, 4),
)
def test_short_texts_are_found_exactly(texts: list[list[str]], least: float, versions: int) -> None:
    plain = [" ".join(text) for text in texts]
    pages = [number // versions for number in range(len(texts))]
    assert by_pair(find_pairs(sets_of(plain, pages), least, nobody)) == brute(plain, pages, least)


@pytest.mark.parametrize("least", [0.3, 0.6, 0.7, 0.9])
def test_a_share_of_just_the_least_is_enough(least: float) -> None:
    text = words(random.Random(2), 14)  # ten shingles
    texts = [" ".join(text)]
    for common in (round(10 * least), round(10 * least) - 1):
        texts.append(" ".join([*text[: common + 4], *words(random.Random(100 + common), 20)]))
    found = by_pair(find_pairs(sets_of(texts), least, nobody))
    assert {pair for pair in found if pair[0] == 0} == {(0, 1)}


@given(st.sets(st.integers(0, 200), min_size=1), st.lists(st.integers(0, 200)))
def test_members_are_known_and_no_others(members: set[int], asked: list[int]) -> None:
    known = near_pairs._Members(np.array(sorted(members), np.uint64))
    assert known.has(np.array(asked, np.uint64)).tolist() == [one in members for one in asked]


def test_pairs_are_in_order() -> None:
    text = " ".join(words(random.Random(1), 50))
    pairs = find_pairs(sets_of([text] * 9), LEAST, nobody)
    assert list(by_pair(pairs)) == list(permutations(range(9), 2))
    assert pairs.shares().tolist() == [1.0] * 72


def test_frequent_shingles_propose_nothing_but_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near_pairs, "MOST_HOLDERS", 5)
    draw = random.Random(3)
    frame = " ".join(words(draw, 100))
    pages = [f"{frame} {' '.join(words(draw, 40))}" for _ in range(10)]
    alone = find_pairs(sets_of(pages), LEAST, nobody)
    assert alone.held.size == 0  # what they have in common is no part of one of them
    assert alone.skipped > 0
    copy = pages[4].removeprefix(frame)
    texts = [*pages, f"{copy} {frame} and something more"]
    found = by_pair(find_pairs(sets_of(texts), LEAST, nobody))
    assert set(found) == {(4, 10), (10, 4)}  # the own words of one proposed the pair
    assert found.items() <= brute(texts, range(11), LEAST).items()


def test_many_versions_of_a_page_are_no_frequency(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near_pairs, "MOST_HOLDERS", 5)
    text = " ".join(words(random.Random(4), 30))
    texts = [*(f"{text} edition {n}" for n in range(9)), f"copied: {text}"]
    pages = [0] * 9 + [1]
    pairs = find_pairs(sets_of(texts, pages), LEAST, nobody)
    assert pairs.skipped == 0
    assert by_pair(pairs) == brute(texts, pages, LEAST)
    assert set(by_pair(pairs)) == {pair for n in range(9) for pair in ((n, 9), (9, n))}


def test_the_sample_is_large_enough() -> None:
    assert fewest(0.3) >= 1
    assert fewest(0.3) < fewest(0.6) < fewest(0.9) < SAMPLE * 0.9
    draw = np.random.default_rng(5)
    assert (draw.binomial(SAMPLE, 0.6, 200_000) >= fewest(0.6)).all()
    assert fewest(1.0) == SAMPLE


def test_groups_hold_what_resembles_directly() -> None:
    sizes = np.array([100, 100, 100, 100, 100, 0])
    # 0 and 2 resemble each other, 2 and 4 do, 0 and 4 do not; 1 holds 3, which is no resemblance.
    rows = [(0, 2, 95), (2, 0, 95), (2, 4, 95), (4, 2, 95), (0, 4, 90), (4, 0, 90), (3, 1, 94)]
    held, holder, common = np.array(sorted(rows)).T
    pairs = Pairs(held, holder, common, sizes, 0)
    assert 90 / 110 < 94 / 106 < ALIKE < 95 / 105
    assert pairs.groups().tolist() == [0, -1, 0, -1, 2, -1]
    assert pairs.groups().dtype == np.int32


def test_resemblance_of_a_short_text_in_a_long_one_is_none() -> None:
    draw = random.Random(9)
    text = words(draw, 80)
    texts = [planted(draw, text, 1.0, 400), " ".join(text), " ".join([*text, "end"])]
    pairs = find_pairs(sets_of(texts), LEAST, nobody)
    assert (1, 0) in by_pair(pairs)
    assert pairs.groups().tolist() == [-1, 1, 1]


def test_progress_counts_every_version_twice() -> None:
    told: list[int] = []
    find_pairs(sets_of(["a b c d e"] * 230), LEAST, told.append)
    assert sum(told) == 460
    assert max(told) <= 100


@pytest.mark.parametrize("texts", [[], [""], ["", ""], ["a b c", ""], ["a b c d e f"]])
def test_nothing_is_found_in_nothing(texts: list[str]) -> None:
    pairs = find_pairs(sets_of(texts), LEAST, nobody)
    assert pairs.held.size == pairs.skipped == 0
    assert pairs.groups().tolist() == [-1] * len(texts)
    assert pairs.shares().size == 0
