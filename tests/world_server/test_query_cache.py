from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.world_server.gate import CRASH, PATIENCE, POISON, GatedEncoder
from world_core.encoders.tiny import TinyEncoder
from world_core.errors import EncoderError
from world_server.batching import MicroBatcher
from world_server.query_cache import OVERHEAD, QueryCache

TINY = TinyEncoder(32)
ENTRY = OVERHEAD + 32 * 4 + 4  # a text of one character


def alone(text: str) -> bytes:
    return TINY.encode_queries([text]).tobytes()


@pytest.fixture
def gate() -> GatedEncoder:
    return GatedEncoder(is_open=True)


def cache_of(gate: GatedEncoder, capacity: int) -> QueryCache:
    return QueryCache(MicroBatcher(gate), capacity=capacity)


@pytest.fixture
def cache(gate: GatedEncoder) -> Iterator[QueryCache]:
    made = cache_of(gate, 3 * ENTRY)
    yield made
    gate.open()
    made.close()


def asked(gate: GatedEncoder) -> list[str]:
    return [text for batch in gate.batches for text in batch]


def test_a_query_is_computed_once(gate: GatedEncoder, cache: QueryCache) -> None:
    for _ in range(3):
        assert cache.encode_queries(["a"])[0].tobytes() == alone("a")
    assert asked(gate) == ["a"]
    report = cache.report()
    assert (report.hits, report.misses, report.texts) == (2, 1, 1)


def test_a_query_twice_in_one_call_is_computed_once(gate: GatedEncoder, cache: QueryCache) -> None:
    rows = cache.encode_queries(["a", "b", "a"])
    assert [row.tobytes() for row in rows] == [alone("a"), alone("b"), alone("a")]
    assert asked(gate) == ["a", "b"]


def test_queries_are_told_apart_by_every_character(gate: GatedEncoder, cache: QueryCache) -> None:
    for text in ("a", "a ", "A"):
        cache.encode_queries([text])
    assert asked(gate) == ["a", "a ", "A"]


def test_the_least_recently_used_is_forgotten(gate: GatedEncoder, cache: QueryCache) -> None:
    for text in "abcad":  # room for three: b goes when d comes
        cache.encode_queries([text])
    cache.encode_queries(["c"])
    cache.encode_queries(["a"])
    assert asked(gate) == ["a", "b", "c", "d"]
    cache.encode_queries(["b"])
    assert asked(gate)[-1] == "b"
    assert cache.bytes == 3 * ENTRY


def test_nothing_is_remembered_without_room(gate: GatedEncoder) -> None:
    cache = cache_of(gate, 0)
    first, second = cache.encode_queries(["a"]), cache.encode_queries(["a"])
    assert first.tobytes() == second.tobytes() == alone("a")
    assert asked(gate) == ["a", "a"]
    assert cache.bytes == 0
    cache.close()


def test_a_query_too_large_for_the_whole_room_drives_nothing_out(
    gate: GatedEncoder, cache: QueryCache
) -> None:
    cache.encode_queries(["a"])
    cache.encode_queries(["x" * 10_000])
    cache.encode_queries(["a"])
    assert asked(gate) == ["a", "x" * 10_000]


def test_callers_of_one_missing_query_wait_for_one_computation() -> None:
    gate = GatedEncoder()
    cache = cache_of(gate, 10_000)
    with ThreadPoolExecutor(8) as pool:
        barrier = threading.Barrier(8)

        def ask(_number: int) -> bytes:
            barrier.wait(PATIENCE)
            return cache.encode_queries(["same"]).tobytes()

        answers = [pool.submit(ask, number) for number in range(8)]
        gate.wait_for_batch()
        gate.permit()
        assert {answer.result(PATIENCE) for answer in answers} == {alone("same")}
    assert asked(gate) == ["same"]
    assert cache.report().misses == 1
    gate.open()
    cache.close()


def test_one_who_gives_up_takes_nothing_from_the_others() -> None:
    gate = GatedEncoder()
    cache = cache_of(gate, 10_000)
    one, other = cache.submit("same"), cache.submit("same")
    assert not one.cancel()
    gate.open()
    assert other.result(PATIENCE).tobytes() == alone("same")
    cache.close()


@pytest.mark.parametrize(("text", "error"), [(POISON, EncoderError), (CRASH, ZeroDivisionError)])
def test_an_error_is_not_remembered(
    gate: GatedEncoder, cache: QueryCache, text: str, error: type[Exception]
) -> None:
    for _ in range(2):
        with pytest.raises(error):
            cache.encode_queries([text])
    assert asked(gate) == [text, text]
    assert cache.bytes == 0


def test_a_closed_encoder_leaves_nothing_begun(gate: GatedEncoder, cache: QueryCache) -> None:
    cache.close()
    for _ in range(2):
        with pytest.raises(EncoderError, match="closed"):
            cache.submit("late")


def test_a_remembered_vector_cannot_be_changed(cache: QueryCache) -> None:
    cache.encode_queries(["a"])
    with pytest.raises(ValueError, match="read-only"):
        cache.submit("a").result(PATIENCE)[0] = 1.0


def test_passages_pass_through(cache: QueryCache) -> None:
    assert cache.encode_passages(["a"]).tobytes() == TINY.encode_passages(["a"]).tobytes()
    assert cache.bytes == 0
    assert (cache.id, cache.dim) == (TINY.id, 32)


@given(
    texts=st.lists(st.text(alphabet="abcdé\U0001f600", max_size=4), max_size=60),
    entries=st.integers(0, 6),
)
def test_it_answers_as_the_encoder_within_its_room(texts: list[str], entries: int) -> None:
    gate = GatedEncoder(is_open=True)
    cache = cache_of(gate, entries * ENTRY)
    for text in texts:
        assert cache.encode_queries([text])[0].tobytes() == alone(text)
        assert cache.bytes <= entries * ENTRY
    report = cache.report()
    assert report.hits + report.misses == len(texts)
    assert report.misses == report.texts == len(asked(gate))
    cache.close()


def test_many_threads_keep_its_books(gate: GatedEncoder) -> None:
    cache = cache_of(gate, 5 * ENTRY)

    def ask(number: int) -> bool:
        text = chr(97 + number * 7 % 11)
        return cache.submit(text).result(PATIENCE).tobytes() == alone(text)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(500)))
    assert cache.bytes == 5 * ENTRY
    report = cache.report()
    assert report.hits + report.misses == 500
    cache.close()
