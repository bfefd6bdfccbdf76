from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from tests.world_server.stub import hit, manifest, meta, version
from world_core.errors import BadWorldError, EncoderError
from world_core.types import (
    FetchAnswer,
    FetchCall,
    Outcome,
    SearchAnswer,
    SearchCall,
    Timings,
    Vector,
)
from world_server import canary


class Blocking:
    """A blocking engine that finds these pages, and can fetch them or not."""

    def __init__(self, numbers: Sequence[int], outcome: Outcome = Outcome.OK) -> None:
        self.numbers = numbers
        self.outcome = outcome
        self.failure: Exception | None = None

    def search_batch(
        self,
        calls: Sequence[SearchCall],
        *,
        vectors: Sequence[Vector | None] | None = None,
        cancelled: Callable[[], bool] | None = None,
        timings: Timings | None = None,
    ) -> list[SearchAnswer]:
        if self.failure is not None:
            raise self.failure
        hits = tuple(hit(number) for number in self.numbers)
        return [SearchAnswer(Outcome.OK if hits else Outcome.EMPTY, hits) for _ in calls]

    def fetch(self, call: FetchCall) -> FetchAnswer:
        found = version(0) if self.outcome is Outcome.OK else None
        return FetchAnswer(self.outcome, call.url, version=found)

    def close(self) -> None:
        pass


def test_the_calls_are_those_of_the_manifest() -> None:
    calls = canary.calls(manifest(canaries=2))
    assert [(call.query, call.count, call.rerank) for call in calls] == [
        ("canary 0", 2, False),
        ("canary 1", 2, False),
        ("canary 0", 1, True),
    ]
    assert canary.calls(manifest(canaries=0)) == []


@pytest.mark.parametrize("numbers", [[0, 1], [1, 0], [0, 2]])
def test_the_first_page_among_the_hits_is_good(numbers: list[int]) -> None:
    canary.prove(Blocking(numbers), manifest(canaries=3))


@pytest.mark.parametrize("numbers", [[1, 2], [0], [], [0, 1, 2]])
def test_any_other_answer_is_refused(numbers: list[int]) -> None:
    with pytest.raises(BadWorldError, match="canary query 'canary 0' brought up") as caught:
        canary.prove(Blocking(numbers), manifest())
    assert meta(0).page_id in str(caught.value)


def test_a_page_that_cannot_be_fetched_is_refused() -> None:
    with pytest.raises(BadWorldError, match="cannot be fetched: not_in_world"):
        canary.prove(Blocking([0, 1], Outcome.NOT_IN_WORLD), manifest())


def test_a_failing_part_keeps_its_type() -> None:
    engine = Blocking([0, 1])
    engine.failure = EncoderError("The encoder failed.")
    with pytest.raises(EncoderError):
        canary.prove(engine, manifest())


def test_a_world_without_canaries_has_nothing_to_prove() -> None:
    canary.prove(Blocking([]), manifest(canaries=0))
    assert canary.page_call([]) is None
