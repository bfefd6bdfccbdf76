from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from world_core.errors import BadInputError
from world_core.indexes.codes import (
    BLOCK,
    CODE_LIMIT,
    Coded,
    coded,
    cosines,
    digest,
    dots,
    quantised,
)
from world_core.types import Vectors


def unit_rows(seed: int, count: int, dim: int) -> Vectors:
    rows = np.random.default_rng(seed).standard_normal((count, dim))
    vectors: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return vectors


def test_codes_of_a_vector_worked_out_by_hand() -> None:
    codes, scales = quantised(np.array([[0.6, -0.8, 0.0]], dtype=np.float32))

    # 0.6 / 0.8 * 127 = 95.25; the codes have the length sqrt(95**2 + 127**2)
    assert_array_equal(codes, [[95, -127, 0]])
    assert scales[0] == np.float32(1 / np.sqrt(95**2 + 127**2))


def test_halves_are_rounded_to_even() -> None:
    row = np.array([127.0, 0.5, 1.5, 2.5, -0.5, -1.5])
    codes, _ = quantised((row / np.linalg.norm(row)).astype(np.float64)[np.newaxis])

    assert_array_equal(codes[0][[0, 1, 2, 3, 4, 5]], [127, 0, 2, 2, 0, -2])


def test_codes_use_the_whole_range_and_keep_the_direction() -> None:
    vectors = unit_rows(1, 200, 384)

    codes, scales = quantised(vectors)

    assert codes.dtype == np.int8
    assert scales.dtype == np.float32
    assert_array_equal(np.abs(codes.astype(np.int16)).max(axis=1), np.full(200, CODE_LIMIT))
    agreement = (codes * scales[:, np.newaxis] * vectors).sum(axis=1)
    assert agreement.min() > 0.9998


def test_rows_beyond_one_block_are_coded_alike() -> None:
    vectors = unit_rows(2, BLOCK + 7, 8)

    codes, scales = quantised(vectors)
    tail_codes, tail_scales = quantised(vectors[BLOCK - 1 :])

    assert_array_equal(codes[BLOCK - 1 :], tail_codes)
    assert_array_equal(scales[BLOCK - 1 :], tail_scales)


def test_no_rows_give_no_codes() -> None:
    codes, scales = quantised(np.zeros((0, 5), dtype=np.float32))

    assert codes.shape == (0, 5)
    assert scales.shape == (0,)


@pytest.mark.parametrize("row", [[0.0, 0.0], [1.0, 1.0], [np.nan, 1.0], [np.inf, 0.0], [0.6, 0.79]])
def test_a_row_that_is_not_of_length_one_is_refused_by_number(row: list[float]) -> None:
    with pytest.raises(BadInputError, match="Vector 1 has the length"):
        quantised(np.array([[1.0, 0.0], row], dtype=np.float32))


def test_a_single_vector_is_not_a_table() -> None:
    with pytest.raises(BadInputError, match="not a table"):
        quantised(np.array([1.0, 0.0], dtype=np.float32))


@pytest.mark.parametrize("dim", [3, 384, 1040, 4096, 133_000])
def test_products_are_exact_at_the_largest_magnitudes(dim: int) -> None:
    codes = np.full((3, dim), CODE_LIMIT, dtype=np.int8)
    codes[1] = -CODE_LIMIT
    codes[2, -1] = CODE_LIMIT - 1

    products = dots(codes, np.arange(3), codes[0])

    assert products.tolist() == [dim * 16129, -dim * 16129, dim * 16129 - 127]


@given(st.integers(0, 2**32 - 1), st.integers(1, 1200), st.integers(1, 30))
@settings(max_examples=40, deadline=None)
def test_products_equal_integer_arithmetic(seed: int, dim: int, count: int) -> None:
    random = np.random.default_rng(seed)
    codes = random.integers(-127, 128, (count, dim), dtype=np.int8)
    query = random.integers(-127, 128, dim, dtype=np.int8)

    products = dots(codes, np.arange(count), query)

    assert_array_equal(products, codes.astype(np.int64) @ query.astype(np.int64))


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(0, 299), min_size=1, max_size=60))
@settings(max_examples=60, deadline=None)
def test_a_cosine_has_the_same_bits_alone_and_in_any_company(
    seed: int, positions: list[int]
) -> None:
    vectors = unit_rows(seed, 301, 48)
    codes, scales = quantised(vectors[:300])

    together = cosines(Coded(codes, scales), np.array(positions), coded(vectors[300]))
    alone = [
        cosines(Coded(codes, scales), np.array([place]), coded(vectors[300]))[0]
        for place in positions
    ]

    assert together.tolist() == alone


def test_a_cosine_has_the_same_bits_in_and_beyond_one_block() -> None:
    vectors = unit_rows(3, 300, 384)
    codes, scales = quantised(vectors)
    many = np.arange(BLOCK * 2 + 5) % 300

    long = cosines(Coded(codes, scales), many, coded(vectors[0]))

    assert_array_equal(long, cosines(Coded(codes, scales), np.arange(300), coded(vectors[0]))[many])


def test_cosines_are_near_the_real_ones_and_within_one() -> None:
    vectors = unit_rows(4, 500, 384)
    codes, scales = quantised(vectors)

    found = cosines(Coded(codes, scales), np.arange(500), coded(vectors[0]))

    assert np.abs(found - vectors @ vectors[0]).max() < 0.002
    assert found[0] == pytest.approx(1.0, abs=2e-7)
    assert np.abs(found).max() <= 1.0


def test_the_opposite_vector_has_minus_one() -> None:
    vectors = unit_rows(5, 1, 32)
    codes, scales = quantised(-vectors)

    query = coded(vectors[0])
    assert cosines(Coded(codes, scales), np.array([0]), query)[0] == pytest.approx(-1.0, abs=2e-7)


def test_the_digest_is_the_sha256_of_codes_then_scales() -> None:
    codes, scales = quantised(unit_rows(6, BLOCK + 3, 4))

    expected = hashlib.sha256(codes.tobytes() + scales.astype("<f4").tobytes()).hexdigest()

    assert digest(codes, scales) == expected


def test_the_digest_notices_one_changed_code_and_one_changed_scale() -> None:
    codes, scales = quantised(unit_rows(7, 10, 4))
    other_codes, other_scales = codes.copy(), scales.copy()
    other_codes[9, 3] ^= 1
    other_scales[0] = np.nextafter(scales[0], np.float32(1.0))

    assert (
        len({digest(codes, scales), digest(other_codes, scales), digest(codes, other_scales)}) == 3
    )


@given(st.integers(0, 100), st.integers(1, 40), st.integers(0, 30), st.integers(0, 30))
def test_code_vectors_are_the_codes_at_length_one(
    seed: int, count: int, start: int, extra: int
) -> None:
    table = quantised(unit_rows(seed, count, 7))

    part = table.vectors(start, start + extra)

    assert part.dtype == np.float32
    assert_array_equal(part, (table.codes * table.scales[:, np.newaxis])[start : start + extra])
    assert np.abs(np.linalg.norm(part, axis=1) - 1).max(initial=0) < 1e-6


def test_one_vector_is_one_row() -> None:
    vectors = unit_rows(9, 3, 5)

    row, table = coded(vectors[1]), quantised(vectors)

    assert_array_equal(row.codes, table.codes[1:2])
    assert_array_equal(row.scales, table.scales[1:2])
