from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from world_core.types import Bitmap
from world_core.view_memory import ViewMemory, digest_of


@dataclass(eq=False)
class Flags:
    versions: Bitmap


def of_size(size: int) -> Flags:
    return Flags(np.zeros(size, dtype=np.bool_))


def test_a_view_is_compiled_once() -> None:
    memory: ViewMemory[Flags] = ViewMemory(())
    made: list[Flags] = []

    def compile_view() -> Flags:
        made.append(of_size(3))
        return made[-1]

    first = memory.get(b"a", compile_view)

    assert memory.get(b"a", compile_view) is first
    assert memory.get(b"b", compile_view) is not first
    assert len(made) == 2


def test_threads_get_one_view() -> None:
    memory: ViewMemory[Flags] = ViewMemory(())

    with ThreadPoolExecutor(8) as pool:
        views = list(pool.map(lambda _: memory.get(b"a", lambda: of_size(5)), range(64)))

    assert {id(view) for view in views} == {id(memory.get(b"a", lambda: of_size(5)))}
    assert memory._held == 5


def test_the_view_used_longest_ago_goes_first() -> None:
    memory: ViewMemory[Flags] = ViewMemory((), limit=25)
    views = {key: memory.get(key, lambda: of_size(10)) for key in (b"a", b"b")}
    memory.get(b"a", lambda: of_size(10))

    memory.get(b"c", lambda: of_size(10))

    assert memory.get(b"a", lambda: of_size(10)) is views[b"a"]
    assert memory.get(b"b", lambda: of_size(10)) is not views[b"b"]
    assert memory._held <= 25


def test_a_view_larger_than_the_limit_is_kept_alone() -> None:
    memory: ViewMemory[Flags] = ViewMemory((), limit=5)

    large = memory.get(b"a", lambda: of_size(10))

    assert memory.get(b"a", lambda: of_size(10)) is large


def test_forgotten_views_are_compiled_anew_and_count_no_more() -> None:
    memory: ViewMemory[Flags] = ViewMemory((), limit=10)
    first = memory.get(b"a", lambda: of_size(9))
    memory.forget()

    again = memory.get(b"a", lambda: of_size(9))
    assert again is not first
    assert memory.get(b"b", lambda: of_size(1)) is memory.get(b"b", lambda: of_size(1))
    assert memory.get(b"a", lambda: of_size(9)) is again


def test_hosts_are_sorted_once() -> None:
    memory: ViewMemory[Flags] = ViewMemory(("b.org", "a.b.org"))

    assert memory.hosts is memory.hosts
    assert memory.hosts.under("b.org").tolist() == [0, 1]


@given(st.lists(st.binary(max_size=3), max_size=4), st.lists(st.binary(max_size=3), max_size=4))
def test_digests_tell_lists_of_parts_apart(one: list[bytes], other: list[bytes]) -> None:
    assert (digest_of(*one) == digest_of(*other)) == (one == other)


def test_arrays_count_by_their_content() -> None:
    assert digest_of(np.arange(3)) == digest_of(np.arange(3))
    assert digest_of(np.arange(3)) != digest_of(np.arange(4))
