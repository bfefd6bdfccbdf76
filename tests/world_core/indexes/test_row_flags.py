from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from world_core.errors import BadInputError
from world_core.indexes.row_flags import FlagMemory, RowFlags
from world_core.types import Bitmap


def frozen(bitmap: Bitmap) -> Bitmap:
    bitmap.flags.writeable = False
    return bitmap


@given(st.lists(st.booleans(), max_size=40), st.data())
def test_flags_of_rows_are_those_of_their_passages(
    passages: list[bool], data: st.DataObject
) -> None:
    some = st.lists(st.integers(0, len(passages) - 1), unique=True) if passages else st.just([])
    rows = np.array(sorted(data.draw(some)), dtype=np.int64)
    allowed = np.array(passages, dtype=np.bool_)

    found = FlagMemory(rows).of(allowed)

    expected = [passages[row] for row in rows]
    if all(expected):
        assert found is None
    else:
        assert found is not None
        assert found.flags.tolist() == expected
        assert found.count == sum(expected)


def test_no_bitmap_means_all_rows() -> None:
    assert FlagMemory(np.arange(3)).of(None) is None


def test_too_few_flags_are_refused() -> None:
    with pytest.raises(BadInputError, match="3 flags do not cover passage 3"):
        FlagMemory(np.arange(4)).of(np.ones(3, dtype=np.bool_))


def test_bits_come_lowest_first() -> None:
    flags = np.zeros(10, dtype=np.bool_)
    flags[[0, 9]] = True

    assert RowFlags(flags).bits.tolist() == [1, 2]


def test_a_frozen_bitmap_is_worked_out_once() -> None:
    memory = FlagMemory(np.arange(4))
    allowed = frozen(np.array([True, False, True, True]))

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: memory.of(allowed), range(50)))

    assert memory.of(allowed) is memory.of(allowed)
    assert {tuple(flags.flags.tolist()) for flags in found if flags} == {(True, False, True, True)}


def test_a_bitmap_that_can_change_is_looked_at_each_time() -> None:
    memory = FlagMemory(np.arange(3))
    allowed = np.array([True, False, True])

    first = memory.of(allowed)
    allowed[0] = False
    second = memory.of(allowed)

    assert first is not None
    assert second is not None
    assert (first.count, second.count) == (2, 1)


def test_a_bitmap_at_the_address_of_a_dropped_one_is_not_taken_for_it() -> None:
    memory = FlagMemory(np.arange(64))
    for number in range(200):
        allowed = np.zeros(64, dtype=np.bool_)
        allowed[number % 64] = True
        found = memory.of(frozen(allowed))
        assert found is not None
        assert np.flatnonzero(found.flags).tolist() == [number % 64]
        del allowed, found
        gc.collect(0)


def test_memory_is_bounded_and_the_oldest_goes_first() -> None:
    memory = FlagMemory(np.arange(10), limit=25)
    bitmaps = [frozen(np.arange(10) != number) for number in range(4)]

    found = [memory.of(bitmap) for bitmap in bitmaps]

    assert memory._held <= 25
    assert memory.of(bitmaps[3]) is found[3]
    assert memory.of(bitmaps[0]) is not found[0]
