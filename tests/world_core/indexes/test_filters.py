from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from world_core.indexes.filters import FilterMemory
from world_core.types import Bitmap


class Builder:
    """Builds the tuple of a bitmap's units and counts how often."""

    def __init__(self) -> None:
        self.built: list[tuple[int, ...]] = []

    def __call__(self, bitmap: Bitmap) -> tuple[tuple[int, ...], int]:
        units = tuple(np.flatnonzero(bitmap).tolist())
        self.built.append(units)
        return units, len(units)


def bits(*units: int, size: int = 20) -> Bitmap:
    bitmap = np.zeros(size, dtype=np.bool_)
    bitmap[list(units)] = True
    return bitmap


def test_a_bitmap_is_built_once() -> None:
    builder = Builder()
    memory = FilterMemory(builder)
    assert memory.get(bits(1, 5)) == memory.get(bits(1, 5)) == (1, 5)
    assert builder.built == [(1, 5)]


def test_a_bitmap_changed_in_place_is_built_again() -> None:
    builder = Builder()
    memory = FilterMemory(builder)
    bitmap = bits(1)
    memory.get(bitmap)
    bitmap[2] = True
    assert memory.get(bitmap) == (1, 2)
    bitmap[2] = False
    assert memory.get(bitmap) == (1,)
    assert len(builder.built) == 2


def test_the_least_recently_used_goes_first() -> None:
    builder = Builder()
    memory = FilterMemory(builder, limit=5)
    memory.get(bits(1, 2))
    memory.get(bits(3, 4))
    memory.get(bits(1, 2))
    memory.get(bits(5, 6))
    memory.get(bits(1, 2))
    assert builder.built == [(1, 2), (3, 4), (5, 6)]
    memory.get(bits(3, 4))
    assert builder.built[-1] == (3, 4)


def test_one_larger_than_the_limit_is_kept_alone() -> None:
    builder = Builder()
    memory = FilterMemory(builder, limit=2)
    memory.get(bits(1))
    large = bits(*range(10))
    memory.get(large)
    memory.get(large)
    assert builder.built == [(1,), tuple(range(10))]


def test_a_cleared_memory_builds_again() -> None:
    builder = Builder()
    memory = FilterMemory(builder, limit=3)
    memory.get(bits(1, 2, 3))
    memory.clear()
    memory.get(bits(1, 2, 3))
    memory.get(bits(1, 2, 3))
    assert len(builder.built) == 2


@given(st.lists(st.sets(st.integers(0, 19)), max_size=30), st.integers(1, 30))
def test_every_answer_is_the_bitmaps_own(asked: list[set[int]], limit: int) -> None:
    memory = FilterMemory(Builder(), limit=limit)
    for units in asked:
        assert memory.get(bits(*units)) == tuple(sorted(units))


def test_threads_get_their_own_filters() -> None:
    memory = FilterMemory(Builder(), limit=12)

    def ask(seed: int) -> bool:
        units = sorted({seed % 20, seed % 7, seed % 3})
        return memory.get(bits(*units)) == tuple(units)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(2000)))
