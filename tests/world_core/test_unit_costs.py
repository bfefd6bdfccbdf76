from __future__ import annotations

import math

import pytest

from world_core import unit_costs
from world_core.encoders.loading import KINDS, load


def test_every_encoder_has_its_costs() -> None:
    assert set(unit_costs.ENCODERS) == set(KINDS)


def test_every_cost_is_positive_and_says_where_it_comes_from() -> None:
    for name, entry in unit_costs.COSTS.items():
        assert math.isfinite(entry.value), name
        assert entry.value > 0, name
        assert entry.unit
        assert entry.source.startswith(("measured", "arithmetic", "assumed", "the "))
    assert unit_costs.cost("process") == unit_costs.COSTS["process"].value


def test_dim_of_the_encoder_that_is_always_there() -> None:
    assert load("tiny", {}).dim == unit_costs.ENCODERS["tiny"].dim


@pytest.mark.parametrize("kind", sorted(unit_costs.ENCODERS))
def test_costs_of_an_encoder_hang_together(kind: str) -> None:
    encoder = unit_costs.ENCODERS[kind]
    assert 0 < encoder.memory <= encoder.build_memory
    assert 0 < encoder.query_s <= encoder.passage_s
    assert 0 <= encoder.gpu_passage_s < encoder.passage_s
