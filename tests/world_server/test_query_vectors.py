from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.world_server.gate import POISON, GatedEncoder
from world_core.encoders.tiny import TinyEncoder
from world_core.errors import EncoderError
from world_core.types import Mode, SearchCall, Vector
from world_server.batching import MicroBatcher
from world_server.query_cache import QueryCache
from world_server.query_encoder import EncoderReport, QueryEncoder, encode_all
from world_server.query_vectors import query_vectors

TINY = TinyEncoder(32)


@pytest.fixture
def gate() -> GatedEncoder:
    return GatedEncoder()


@pytest.fixture
def encoder(gate: GatedEncoder) -> Iterator[QueryEncoder]:
    made = QueryCache(MicroBatcher(gate), capacity=10_000)
    yield made
    gate.open()
    made.close()


def alone(text: str) -> bytes:
    return TINY.encode_queries([text]).tobytes()


async def test_each_call_that_needs_one_gets_its_vector(
    gate: GatedEncoder, encoder: QueryEncoder
) -> None:
    gate.open()
    calls = [SearchCall("a"), SearchCall("b", mode=Mode.LEXICAL), SearchCall("c", mode=Mode.DENSE)]
    first, second, third = await query_vectors(encoder, calls)
    assert first is not None
    assert third is not None
    assert (first.tobytes(), third.tobytes()) == (alone("a"), alone("c"))
    assert second is None
    assert "b" not in [text for batch in gate.batches for text in batch]


async def test_the_event_loop_turns_and_waiting_calls_are_batched(
    gate: GatedEncoder, encoder: QueryEncoder
) -> None:
    def ask(number: int) -> asyncio.Task[list[Vector | None]]:
        return asyncio.create_task(query_vectors(encoder, [SearchCall(f"text {number}")]))

    tasks = [ask(0)]
    await asyncio.sleep(0)
    await asyncio.to_thread(gate.wait_for_batch)
    tasks += [ask(number) for number in range(1, 9)]
    for _ in range(10):
        await asyncio.sleep(0)
    assert not any(task.done() for task in tasks)
    gate.open()
    rows = await asyncio.gather(*tasks)
    assert [row[0].tobytes() for row in rows if row[0] is not None] == [
        alone(f"text {number}") for number in range(9)
    ]
    assert [len(batch) for batch in gate.batches] == [1, 8]


async def test_one_who_leaves_takes_nothing_from_another(
    gate: GatedEncoder, encoder: QueryEncoder
) -> None:
    leaving = asyncio.create_task(query_vectors(encoder, [SearchCall("same")]))
    staying = asyncio.create_task(query_vectors(encoder, [SearchCall("same")]))
    await asyncio.sleep(0)
    leaving.cancel()
    gate.open()
    (vector,) = await staying
    assert vector is not None
    assert vector.tobytes() == alone("same")
    assert leaving.cancelled()


async def test_a_failure_fails_the_calls_unless_all_may_do_without(
    gate: GatedEncoder, encoder: QueryEncoder
) -> None:
    gate.open()
    bad = SearchCall(POISON)
    for calls in ([bad], [bad, replace(bad, allow_lexical=True)]):
        with pytest.raises(EncoderError):
            await query_vectors(encoder, calls)
    may = [SearchCall(text, allow_lexical=True) for text in (POISON, "good")]
    assert await query_vectors(encoder, may) == [None, None]
    dense = replace(may[0], mode=Mode.DENSE)
    with pytest.raises(EncoderError):
        await query_vectors(encoder, [dense])


async def test_a_closed_encoder_is_a_failure_like_any_other(gate: GatedEncoder) -> None:
    encoder = MicroBatcher(gate)
    encoder.close()
    with pytest.raises(EncoderError, match="closed"):
        await query_vectors(encoder, [SearchCall("a")])
    assert await query_vectors(encoder, [SearchCall("a", allow_lexical=True)]) == [None]


def test_all_or_nothing_for_a_blocking_caller(gate: GatedEncoder, encoder: QueryEncoder) -> None:
    gate.open()
    assert encode_all(encoder, []).shape == (0, 32)
    assert encode_all(encoder, ["a", "b"]).tobytes() == alone("a") + alone("b")
    with pytest.raises(EncoderError):
        encode_all(encoder, ["a", POISON])


def test_a_probe_is_encoded_anew_each_time(gate: GatedEncoder, encoder: QueryEncoder) -> None:
    gate.open()
    vectors = {encoder.probe().result(30).tobytes() for _ in range(3)}
    assert len(vectors) == 1
    assert len(gate.batches) == 3


def test_a_report_is_ready_only_by_that_word() -> None:
    assert EncoderReport().is_ready
    assert not EncoderReport(state="starting").is_ready
