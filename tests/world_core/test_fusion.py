from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from world_core.errors import BadInputError
from world_core.fusion import (
    DENSE_FLOOR,
    FULL_TRUST,
    LEXICAL_FLOOR,
    PLAIN,
    SPREADS,
    Scale,
    fuse,
    fuse_three,
    lexical_trust,
    stretched,
    zero_cosine,
)
from world_core.types import Scores

bm25 = st.floats(0.0, 80.0)
cosine = st.floats(-1.0, 1.0)
candidates = st.lists(st.tuples(bm25, cosine), min_size=1, max_size=40)
weights = st.floats(0.0, 1.0)
scales = st.builds(Scale, zero=cosine, trust=weights)


def scores(*values: float) -> Scores:
    return np.array(values, dtype=np.float64)


def columns(pairs: list[tuple[float, float]]) -> tuple[Scores, Scores]:
    return scores(*(pair[0] for pair in pairs)), scores(*(pair[1] for pair in pairs))


def test_the_formula_on_numbers_worked_out_by_hand() -> None:
    fused = fuse(scores(8.0, 4.0, 0.0), scores(0.0, -1.0, 0.5), weight=0.25)

    # dense: 1/1.5, 0, 1; lexical: 1, 0.5, 0
    assert_array_equal(fused, [0.25 * (1.0 / 1.5) + 0.75, 0.75 * 0.5, 0.25])


def test_the_default_weight_is_one_half() -> None:
    lexical, dense = scores(3.0, 1.0), scores(0.1, 0.9)

    assert_array_equal(fuse(lexical, dense), fuse(lexical, dense, weight=0.5))


def test_best_in_both_scores_one_and_worst_in_both_scores_zero() -> None:
    assert_array_equal(fuse(scores(7.0, 0.0), scores(0.4, -1.0)), [1.0, 0.0])


def test_without_any_lexical_match_the_dense_order_stands() -> None:
    fused = fuse(scores(0.0, 0.0, 0.0), scores(0.2, 0.6, 0.4))

    assert list(np.argsort(-fused)) == [1, 2, 0]
    assert fused.max() == 0.5


def test_without_any_vector_the_lexical_order_stands() -> None:
    fused = fuse(scores(1.0, 3.0, 2.0), scores(-1.0, -1.0, -1.0))

    assert list(np.argsort(-fused)) == [1, 2, 0]


def test_all_at_the_floors_is_all_zero() -> None:
    assert_array_equal(fuse(scores(0.0, 0.0), scores(-1.0, -1.0)), [0.0, 0.0])


def test_no_candidates_give_no_scores() -> None:
    fused = fuse(scores(), scores())

    assert fused.shape == (0,)
    assert fused.dtype == np.float64


def test_the_inputs_are_left_as_they_were() -> None:
    lexical, dense = scores(2.0, 1.0), scores(0.5, 0.7)

    fuse(lexical, dense)

    assert_array_equal(lexical, [2.0, 1.0])
    assert_array_equal(dense, [0.5, 0.7])


@pytest.mark.parametrize("weight", [-0.01, 1.01, float("nan"), float("inf")])
def test_a_weight_outside_the_unit_interval_is_refused(weight: float) -> None:
    with pytest.raises(BadInputError, match="fusion weight"):
        fuse(scores(1.0), scores(0.0), weight=weight)


@pytest.mark.parametrize(
    ("lexical", "dense"),
    [
        (scores(1.0, 2.0), scores(0.5)),
        (scores(), scores(0.5)),
        (np.zeros((1, 1)), np.zeros((1, 1))),
    ],
)
def test_shapes_that_do_not_belong_together_are_refused(lexical: Scores, dense: Scores) -> None:
    with pytest.raises(BadInputError, match="shape"):
        fuse(lexical, dense)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf"), -0.5])
def test_an_impossible_lexical_score_is_refused_by_value(bad: float) -> None:
    with pytest.raises(BadInputError, match=str(bad)):
        fuse(scores(1.0, bad, 2.0), scores(0.0, 0.0, 0.0))


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf"), -1.5])
def test_an_impossible_dense_score_is_refused_by_value(bad: float) -> None:
    with pytest.raises(BadInputError, match=str(bad)):
        fuse(scores(1.0, 1.0, 2.0), scores(0.0, bad, 0.0))


@given(candidates, weights, scales)
def test_fused_scores_stay_within_zero_and_one(
    pairs: list[tuple[float, float]], weight: float, scale: Scale
) -> None:
    fused = fuse(*columns(pairs), weight=weight, scale=scale)

    assert fused.dtype == np.float64
    assert fused.shape == (len(pairs),)
    assert (fused >= 0.0).all()
    assert (fused <= 1.0 + 1e-12).all()


@given(candidates, weights, scales)
def test_a_candidate_at_least_as_good_in_both_is_never_behind(
    pairs: list[tuple[float, float]], weight: float, scale: Scale
) -> None:
    fused = fuse(*columns(pairs), weight=weight, scale=scale)

    for i, (lexical, dense) in enumerate(pairs):
        for j, (other_lexical, other_dense) in enumerate(pairs):
            if lexical >= other_lexical and dense >= other_dense:
                assert fused[i] >= fused[j]


@given(candidates, weights, scales, st.integers(0, 39), st.tuples(bm25, cosine))
def test_raising_one_candidate_never_lowers_it(
    pairs: list[tuple[float, float]],
    weight: float,
    scale: Scale,
    which: int,
    score: tuple[float, float],
) -> None:
    which %= len(pairs)
    raised = list(pairs)
    raised[which] = (max(pairs[which][0], score[0]), max(pairs[which][1], score[1]))

    before = fuse(*columns(pairs), weight=weight, scale=scale)[which]
    after = fuse(*columns(raised), weight=weight, scale=scale)[which]

    assert after >= before


@given(candidates, weights, st.randoms(use_true_random=False))
def test_the_order_of_the_candidates_does_not_matter(
    pairs: list[tuple[float, float]], weight: float, random: Random
) -> None:
    order = list(range(len(pairs)))
    random.shuffle(order)

    straight = fuse(*columns(pairs), weight=weight)
    shuffled = fuse(*columns([pairs[i] for i in order]), weight=weight)

    assert_array_equal(straight[order], shuffled)


@given(candidates, weights)
def test_a_candidate_at_the_floors_changes_no_other_score(
    pairs: list[tuple[float, float]], weight: float
) -> None:
    with_one_more = [*pairs, (LEXICAL_FLOOR, DENSE_FLOOR)]

    straight = fuse(*columns(pairs), weight=weight)
    widened = fuse(*columns(with_one_more), weight=weight)

    assert_array_equal(straight, widened[:-1])
    assert widened[-1] == 0.0


@given(candidates)
def test_the_ends_of_the_weight_are_the_two_parts_alone(pairs: list[tuple[float, float]]) -> None:
    lexical, dense = columns(pairs)

    assert_array_equal(fuse(lexical, dense, weight=0.0), stretched(lexical, LEXICAL_FLOOR))
    assert_array_equal(fuse(lexical, dense, weight=1.0), stretched(dense, DENSE_FLOOR))


def test_three_scores_on_numbers_worked_out_by_hand() -> None:
    fused = fuse_three(
        scores(8.0, 4.0, 0.0),
        scores(0.0, -1.0, 0.5),
        scores(0.0, 3.0, 1.5),
        weight=0.25,
        sparse_weight=0.5,
    )

    two = [0.25 * (1.0 / 1.5) + 0.75, 0.75 * 0.5, 0.25]
    assert_array_equal(fused, [0.5 * two[0], 0.5 * two[1] + 0.5, 0.5 * two[2] + 0.5 * 0.5])


@given(candidates, weights, st.data())
def test_without_a_share_the_third_score_changes_no_bit(
    pairs: list[tuple[float, float]], weight: float, data: st.DataObject
) -> None:
    lexical, dense = columns(pairs)
    third = data.draw(st.lists(bm25, min_size=len(pairs), max_size=len(pairs)))

    fused = fuse_three(lexical, dense, scores(*third), weight=weight, sparse_weight=0.0)

    assert fused.tobytes() == fuse(lexical, dense, weight=weight).tobytes()


@given(candidates, weights, weights, st.data())
def test_three_scores_lie_in_the_unit_interval_and_the_third_only_helps(
    pairs: list[tuple[float, float]], weight: float, share: float, data: st.DataObject
) -> None:
    lexical, dense = columns(pairs)
    third = data.draw(st.lists(bm25, min_size=len(pairs), max_size=len(pairs)))
    place = data.draw(st.integers(0, len(pairs) - 1))

    fused = fuse_three(lexical, dense, scores(*third), weight=weight, sparse_weight=share)
    third[place] = max(third)
    higher = fuse_three(lexical, dense, scores(*third), weight=weight, sparse_weight=share)

    assert ((fused >= 0.0) & (fused <= 1.0 + 1e-12)).all()
    assert higher[place] >= fused[place]


def test_three_scores_of_no_candidates_are_none() -> None:
    assert fuse_three(scores(), scores(), scores()).shape == (0,)


def test_a_third_score_that_cannot_be_is_refused() -> None:
    one = scores(1.0)
    with pytest.raises(BadInputError, match=r"sparse weight 1\.5"):
        fuse_three(one, one, one, sparse_weight=1.5)
    with pytest.raises(BadInputError, match=r"shape \(2,\)"):
        fuse_three(one, one, scores(1.0, 2.0))
    with pytest.raises(BadInputError, match=r"-0\.5"):
        fuse_three(one, one, scores(-0.5))


def test_the_plain_scale_changes_no_bit() -> None:
    lexical, dense = scores(3.0, 1.0, 0.0), scores(0.1, 0.9, -0.3)

    assert Scale() == PLAIN
    assert_array_equal(fuse(lexical, dense), fuse(lexical, dense, scale=Scale(-1.0, 1.0)))
    assert_array_equal(stretched(dense, -1.0), stretched(dense, -1.0, -1.0))


def test_a_scale_on_numbers_worked_out_by_hand() -> None:
    scale = Scale(zero=0.5, trust=0.25)

    fused = fuse(scores(8.0, 4.0, 0.0), scores(0.75, 0.25, 1.0), scale=scale)

    # dense above 0.5: 0.25, 0, 0.5; lexical: 1, 0.5, 0, each kept to a quarter
    assert_array_equal(fused, [0.25 + 0.125, 0.0625, 0.5])


def test_without_trust_the_dense_order_stands() -> None:
    fused = fuse(scores(9.0, 0.0, 5.0), scores(0.2, 0.6, 0.4), scale=Scale(trust=0.0))

    assert list(np.argsort(-fused)) == [1, 2, 0]


def test_narrow_cosines_decide_as_much_as_wide_ones() -> None:
    lexical = scores(4.0, 3.0, 2.0)
    wide = scores(0.0, 0.25, 0.5)
    narrow = 0.8 + wide / 10

    plain = np.argmax(fuse(lexical, narrow))

    assert plain == 0
    assert np.allclose(
        fuse(lexical, wide, scale=Scale(-1.0)), fuse(lexical, narrow, scale=Scale(0.7))
    )


@pytest.mark.parametrize(
    "scale",
    [
        *(Scale(zero=value) for value in (-1.5, 1.5, float("nan"))),
        *(Scale(trust=value) for value in (-0.1, 1.1, float("nan"))),
    ],
)
def test_a_scale_out_of_range_is_refused(scale: Scale) -> None:
    with pytest.raises(BadInputError, match="out of range"):
        fuse(scores(1.0), scores(0.0), scale=scale)


@given(candidates, weights, scales, st.data())
def test_three_scores_keep_the_scale_of_two(
    pairs: list[tuple[float, float]], weight: float, scale: Scale, data: st.DataObject
) -> None:
    third = scores(*data.draw(st.lists(bm25, min_size=len(pairs), max_size=len(pairs))))
    two = fuse(*columns(pairs), weight=weight, scale=scale)

    none = fuse_three(*columns(pairs), third, weight=weight, sparse_weight=0.0, scale=scale)

    assert_array_equal(none, two)


@given(st.lists(cosine, max_size=50))
def test_the_zero_is_a_cosine_at_or_below_the_mean(values: list[float]) -> None:
    zero = zero_cosine(scores(*values))

    assert DENSE_FLOOR <= zero <= 1.0
    assert not values or zero <= np.mean(values) + 1e-4
    assert zero == round(zero, 4)


def test_the_zero_lies_some_spreads_below_the_mean() -> None:
    values = scores(0.79, 0.81)

    assert zero_cosine(values) == pytest.approx(0.8 - SPREADS * 0.01)
    assert zero_cosine(scores(-0.5, 0.9)) == DENSE_FLOOR
    assert zero_cosine(scores(0.8, 0.8)) == zero_cosine(scores()) == DENSE_FLOOR


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_trust_rises_with_what_is_known(one: float, other: float) -> None:
    less, more = sorted((one, other))

    assert 0.0 <= lexical_trust(less) <= lexical_trust(more) <= 1.0


def test_trust_is_full_from_a_share_on_and_falls_steeply_below() -> None:
    assert lexical_trust(0.0) == 0.0
    assert lexical_trust(FULL_TRUST / 2) == pytest.approx(1 / 16)
    assert lexical_trust(FULL_TRUST) == lexical_trust(1.0) == 1.0
