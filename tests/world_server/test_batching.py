from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.world_server.gate import CRASH, PATIENCE, POISON, GatedEncoder
from world_core.encoders.loading import load
from world_core.encoders.tiny import TinyEncoder
from world_core.errors import EncoderError
from world_core.types import Vector, Vectors
from world_server.batching import MicroBatcher

TINY = TinyEncoder(32)


def alone(text: str) -> bytes:
    return TINY.encode_queries([text]).tobytes()


@pytest.fixture
def gate() -> GatedEncoder:
    return GatedEncoder()


@pytest.fixture
def batcher(gate: GatedEncoder) -> Iterator[MicroBatcher]:
    made = MicroBatcher(gate, limit=4)
    yield made
    gate.open()
    made.close()


def test_an_idle_encoder_takes_a_query_at_once(gate: GatedEncoder, batcher: MicroBatcher) -> None:
    future = batcher.submit("one")
    assert gate.wait_for_batch() == ["one"]
    gate.permit()
    assert future.result(PATIENCE).tobytes() == alone("one")


def test_who_comes_while_a_batch_runs_is_in_the_next(
    gate: GatedEncoder, batcher: MicroBatcher
) -> None:
    first = batcher.submit("first")
    gate.wait_for_batch()
    later = [batcher.submit(text) for text in ("b", "c", "d")]
    gate.permit()
    assert gate.wait_for_batch() == ["b", "c", "d"]
    last = batcher.submit("e")
    gate.permit()
    assert gate.wait_for_batch() == ["e"]
    gate.permit()
    for text, future in zip(["first", "b", "c", "d", "e"], [first, *later, last], strict=True):
        assert future.result(PATIENCE).tobytes() == alone(text)
    report = batcher.report()
    assert (report.batches, report.texts) == (3, 5)


def test_no_batch_is_larger_than_the_limit(gate: GatedEncoder, batcher: MicroBatcher) -> None:
    futures = [batcher.submit("first")]
    gate.wait_for_batch()
    futures += [batcher.submit(str(number)) for number in range(9)]
    gate.open()
    for future in futures:
        future.result(PATIENCE)
    assert [len(batch) for batch in gate.batches] == [1, 4, 4, 1]


def test_all_batches_run_on_one_thread(gate: GatedEncoder, batcher: MicroBatcher) -> None:
    gate.open()
    with ThreadPoolExecutor(8) as pool:
        rows = list(pool.map(lambda n: batcher.encode_queries([f"text {n}"]), range(100)))
    assert [row[0].tobytes() for row in rows] == [alone(f"text {n}") for n in range(100)]
    assert len(gate.threads) == 1
    assert threading.get_ident() not in gate.threads


def test_a_text_that_fails_fails_alone(gate: GatedEncoder, batcher: MicroBatcher) -> None:
    first = batcher.submit("first")
    gate.wait_for_batch()
    good, bad, other = (batcher.submit(text) for text in ("good", POISON, "other"))
    gate.open()
    assert first.result(PATIENCE).tobytes() == alone("first")
    assert good.result(PATIENCE).tobytes() == alone("good")
    assert other.result(PATIENCE).tobytes() == alone("other")
    with pytest.raises(EncoderError, match="failed on 1 texts"):
        bad.result(PATIENCE)
    assert gate.batches == [["first"], ["good", POISON, "other"], ["good"], [POISON], ["other"]]


def test_a_single_text_that_fails_is_not_tried_again(
    gate: GatedEncoder, batcher: MicroBatcher
) -> None:
    gate.open()
    with pytest.raises(EncoderError):
        batcher.submit(POISON).result(PATIENCE)
    assert gate.batches == [[POISON]]


def test_an_error_nobody_foresaw_reaches_its_caller_and_stops_nothing(
    gate: GatedEncoder, batcher: MicroBatcher
) -> None:
    gate.open()
    with pytest.raises(ZeroDivisionError):
        batcher.encode_queries([CRASH])
    assert batcher.encode_queries(["next"])[0].tobytes() == alone("next")


def test_a_caller_that_gave_up_costs_nothing_and_stops_nobody(
    gate: GatedEncoder, batcher: MicroBatcher
) -> None:
    begun = batcher.submit("begun")
    gate.wait_for_batch()
    gone, stays = batcher.submit("gone"), batcher.submit("stays")
    assert gone.cancel()
    assert not begun.cancel()
    gate.open()
    assert begun.result(PATIENCE).tobytes() == alone("begun")
    assert stays.result(PATIENCE).tobytes() == alone("stays")
    assert gate.batches == [["begun"], ["stays"]]


def test_a_batch_whose_callers_all_gave_up_is_left_out(
    gate: GatedEncoder, batcher: MicroBatcher
) -> None:
    batcher.submit("begun")
    gate.wait_for_batch()
    assert batcher.submit("gone").cancel()
    gate.permit()
    after = batcher.submit("after")
    gate.open()
    assert after.result(PATIENCE).tobytes() == alone("after")
    assert ["gone"] not in gate.batches


def test_a_blocking_call_gives_up_the_rest_when_one_text_fails(
    gate: GatedEncoder, batcher: MicroBatcher
) -> None:
    gate.open()
    with pytest.raises(EncoderError):
        batcher.encode_queries([POISON, *map(str, range(20))])
    assert batcher.encode_queries(["next"]).shape == (1, 32)


def test_no_texts_are_no_work(gate: GatedEncoder, batcher: MicroBatcher) -> None:
    assert batcher.encode_queries([]).shape == (0, 32)
    assert gate.batches == []


def test_vectors_are_read_only_and_their_own(gate: GatedEncoder, batcher: MicroBatcher) -> None:
    gate.open()
    vector = batcher.submit("text").result(PATIENCE)
    assert vector.base is None
    assert not vector.flags.writeable


def test_a_wait_collects_up_to_the_limit(gate: GatedEncoder) -> None:
    batcher = MicroBatcher(gate, limit=3, wait_s=PATIENCE)
    futures = [batcher.submit(text) for text in ("a", "b", "c", "d")]
    assert gate.wait_for_batch() == ["a", "b", "c"]
    gate.open()
    assert [future.result(PATIENCE).tobytes() for future in futures[:3]] == list(map(alone, "abc"))
    batcher.close()  # does not sit out the wait of the last one
    assert futures[3].result(0).tobytes() == alone("d")


def test_a_wait_ends(gate: GatedEncoder) -> None:
    gate.open()
    batcher = MicroBatcher(gate, limit=100, wait_s=0.01)
    assert batcher.submit("a").result(PATIENCE).tobytes() == alone("a")
    batcher.close()


def test_passages_pass_on_the_same_thread(gate: GatedEncoder, batcher: MicroBatcher) -> None:
    gate.open()
    rows = batcher.encode_passages(["one", "two"])
    assert rows.tobytes() == TINY.encode_passages(["one", "two"]).tobytes()


def test_it_has_the_encoders_id_and_size(gate: GatedEncoder, batcher: MicroBatcher) -> None:
    assert (batcher.id, batcher.dim) == (gate.id, 32)


def test_closing_ends_what_was_let_in_and_takes_nothing_more(gate: GatedEncoder) -> None:
    batcher = MicroBatcher(gate)
    futures = [batcher.submit(text) for text in ("a", "b", "c")]
    gate.open()
    batcher.close()
    assert all(future.done() for future in futures)
    with pytest.raises(EncoderError, match="closed"):
        batcher.submit("late")
    with pytest.raises(EncoderError, match="closed"):
        batcher.encode_passages(["late"])
    batcher.close()


class Measured(GatedEncoder):
    """Runs texts with as many words together."""

    def query_length(self, text: str) -> int:
        if text == "unmeasurable":
            raise ZeroDivisionError
        return len(text.split())


def test_a_batch_is_the_oldest_text_with_those_of_its_length() -> None:
    gate = Measured()
    batcher = MicroBatcher(gate, limit=3)
    texts = ["first", "a b", "x", "c d", "y y y", "e f", "g h", "z"]
    futures = [batcher.submit(texts[0])]
    gate.wait_for_batch()
    futures += [batcher.submit(text) for text in texts[1:]]
    gate.open()
    batcher.close()
    assert gate.batches == [["first"], ["a b", "c d", "e f"], ["x", "z"], ["y y y"], ["g h"]]
    assert [future.result(0).tobytes() for future in futures] == list(map(alone, texts))


def test_a_length_that_cannot_be_told_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    gate = Measured(is_open=True)
    batcher = MicroBatcher(gate)
    texts = ["before", "unmeasurable", "after"]
    futures = [batcher.submit(text) for text in texts]
    assert [future.result(PATIENCE).tobytes() for future in futures] == list(map(alone, texts))
    batcher.close()
    assert "without regard to their length" in caplog.text


class Truncated(TinyEncoder):
    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        return super().encode_queries(texts[:1])


def test_a_table_of_another_size_is_an_error_and_not_a_hang() -> None:
    batcher = MicroBatcher(Truncated(32), limit=8, wait_s=PATIENCE)
    futures = [batcher.submit(str(number)) for number in range(8)]
    assert [future.result(PATIENCE).tobytes() for future in futures] == list(map(alone, "01234567"))
    batcher.close()


Step = tuple[str, int]
STEPS = st.lists(
    st.tuples(st.sampled_from(["submit", "poison", "cancel", "permit"]), st.integers(0, 30)),
    max_size=60,
)


@given(steps=STEPS, limit=st.integers(1, 5), measured=st.booleans())
def test_any_order_of_callers_gives_each_its_own_bits(
    steps: list[Step], limit: int, measured: bool
) -> None:
    gate = Measured() if measured else GatedEncoder()
    batcher = MicroBatcher(gate, limit=limit)
    asked: list[tuple[str, Future[Vector]]] = []
    given_up: set[int] = set()
    for what, number in steps:
        if what == "submit":
            text = f"text {number}" + " more" * (number % 3)
            asked.append((text, batcher.submit(text)))
        elif what == "poison":
            asked.append((POISON, batcher.submit(POISON)))
        elif what == "permit":
            gate.permit()
        elif asked and asked[number % len(asked)][1].cancel():
            given_up.add(number % len(asked))
    gate.open()
    batcher.close()
    for place, (text, future) in enumerate(asked):
        assert future.done()
        if place in given_up:
            with pytest.raises(CancelledError):
                future.result(0)
        elif text == POISON:
            with pytest.raises(EncoderError, match="failed on 1 texts"):
                future.result(0)
        else:
            assert future.result(0).tobytes() == alone(text)
    assert all(1 <= len(batch) <= limit for batch in gate.batches)


def test_minilm_gives_the_same_bits_from_many_threads() -> None:
    encoder = load("onnx-minilm", {})
    words = ["who", "wrote", "the", "longest", "river", "novel", "in", "1964", "?"]
    texts = [" ".join(words[: 1 + number % 9]) + f" {number % 13}" for number in range(48)]
    wanted = [encoder.encode_queries([text])[0].tobytes() for text in texts]
    batcher = MicroBatcher(encoder, limit=16)
    with ThreadPoolExecutor(16) as pool:
        rows = list(pool.map(lambda text: np.array(batcher.encode_queries([text])[0]), texts))
    batcher.close()
    assert [row.tobytes() for row in rows] == wanted
    assert batcher.report().batches < len(texts)
