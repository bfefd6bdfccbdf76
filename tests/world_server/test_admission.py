from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from world_server.admission import LONGEST_RETRY, Admission
from world_server.errors import OverloadedError


def make(running: int = 2, queue: int = 3, wait: float = 5.0) -> Admission:
    return Admission(running_limit=running, queue_limit=queue, wait_s=wait)


class Calls:
    """Calls that hold their place until told to end, and the order in which they got it."""

    def __init__(self, admission: Admission) -> None:
        self.admission = admission
        self.order: list[int] = []
        self.ends: dict[int, asyncio.Event] = {}
        self.tasks: dict[int, asyncio.Task[None]] = {}

    async def begin(self, number: int) -> None:
        self.ends[number] = asyncio.Event()
        self.tasks[number] = asyncio.create_task(self._call(number))
        await asyncio.sleep(0)

    async def end(self, number: int) -> None:
        self.ends[number].set()
        await self.tasks[number]
        await asyncio.sleep(0)

    async def _call(self, number: int) -> None:
        async with self.admission.slot():
            self.order.append(number)
            await self.ends[number].wait()


async def test_calls_wait_in_the_order_they_came() -> None:
    calls = Calls(make())
    for number in range(5):
        await calls.begin(number)
    assert calls.order == [0, 1]
    assert (calls.admission.running, calls.admission.waiting) == (2, 3)
    await calls.end(1)
    await calls.end(0)
    assert calls.order == [0, 1, 2, 3]
    for number in (2, 3, 4):
        await calls.end(number)
    assert calls.order == [0, 1, 2, 3, 4]
    assert (calls.admission.running, calls.admission.waiting) == (0, 0)


async def test_a_full_queue_refuses_at_once() -> None:
    calls = Calls(make(running=1, queue=1))
    await calls.begin(0)
    await calls.begin(1)
    with pytest.raises(OverloadedError, match="1 calls are waiting"):
        async with calls.admission.slot():
            pass
    assert calls.admission.refused == 1
    await calls.end(0)
    await calls.end(1)
    assert calls.order == [0, 1]


async def test_no_queue_means_no_wait() -> None:
    calls = Calls(make(running=1, queue=0))
    await calls.begin(0)
    with pytest.raises(OverloadedError):
        async with calls.admission.slot():
            pass
    await calls.end(0)
    async with calls.admission.slot():
        assert calls.admission.running == 1


async def test_waiting_ends_at_the_deadline() -> None:
    calls = Calls(make(running=1, wait=0.01))
    await calls.begin(0)
    with pytest.raises(OverloadedError, match=r"No turn within 0\.01 s"):
        async with calls.admission.slot():
            pass
    assert (calls.admission.expired, calls.admission.waiting) == (1, 0)
    await calls.end(0)
    assert calls.admission.running == 0


async def test_a_waiting_call_that_is_cancelled_leaves_the_queue() -> None:
    calls = Calls(make(running=1))
    for number in range(3):
        await calls.begin(number)
    calls.tasks[1].cancel()
    await asyncio.sleep(0)
    assert calls.admission.waiting == 1
    await calls.end(0)
    assert calls.order == [0, 2]
    await calls.end(2)
    assert calls.admission.running == 0


async def test_a_call_cancelled_with_its_turn_in_hand_passes_it_on() -> None:
    calls = Calls(make(running=1))
    for number in range(3):
        await calls.begin(number)
    calls.ends[0].set()
    calls.tasks[0].add_done_callback(lambda _: calls.tasks[1].cancel())
    await calls.tasks[0]
    await asyncio.sleep(0.01)
    assert calls.order[-1] == 2
    await calls.end(2)
    assert (calls.admission.running, calls.admission.waiting) == (0, 0)


async def test_a_failing_call_gives_its_place_back() -> None:
    admission = make(running=1)
    with pytest.raises(ValueError, match="boom"):
        async with admission.slot():
            raise ValueError("boom")
    assert admission.running == 0


async def test_retry_after_is_spread_over_one_to_five_seconds() -> None:
    calls = Calls(make(running=1, queue=0))
    await calls.begin(0)
    named = []
    for _ in range(2 * LONGEST_RETRY):
        with pytest.raises(OverloadedError) as caught:
            async with calls.admission.slot():
                pass
        named.append(caught.value.retry_after)
    assert sorted(named) == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    await calls.end(0)


@given(
    st.lists(st.tuples(st.sampled_from(["begin", "end", "cancel"]), st.integers(0, 9)), max_size=40)
)
@settings(max_examples=60, deadline=None)
def test_places_are_never_lost_nor_given_twice(steps: list[tuple[str, int]]) -> None:
    async def run() -> None:
        calls = Calls(make(running=2, queue=100))
        number = 0
        for step, choice in steps:
            open_calls = [one for one, task in calls.tasks.items() if not task.done()]
            if step == "begin" or not open_calls:
                await calls.begin(number)
                number += 1
            elif step == "end":
                calls.ends[open_calls[choice % len(open_calls)]].set()
            else:
                calls.tasks[open_calls[choice % len(open_calls)]].cancel()
            await asyncio.sleep(0)
            assert calls.admission.running <= 2
        for event in calls.ends.values():
            event.set()
        await asyncio.gather(*calls.tasks.values(), return_exceptions=True)
        assert (calls.admission.running, calls.admission.waiting) == (0, 0)
        assert calls.order == sorted(calls.order)

    asyncio.run(run())
