"""What was made of the last object, thread by thread."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from world_core.indexes.last_made import LastMade


class Maker:
    """Makes a list of a text, counts how often, and fails for the empty one."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def __call__(self, text: tuple[str, ...]) -> list[str]:
        self.calls.append("".join(text))
        if not text:
            raise ValueError("nothing to make")
        return list(text)


def test_the_last_object_is_made_once() -> None:
    maker = Maker()
    made = LastMade(maker)
    first, second = ("a", "b"), ("c",)

    assert made(first) is made(first)
    assert made(second) == ["c"]
    assert made(first) == ["a", "b"]
    assert maker.calls == ["ab", "c", "ab"]


def test_an_equal_object_is_another_one() -> None:
    maker = Maker()
    made = LastMade(maker)

    made(tuple("ab"))
    made(tuple("a" + "b"))

    assert maker.calls == ["ab", "ab"]


def test_an_error_is_raised_each_time_and_forgets_nothing() -> None:
    maker = Maker()
    made = LastMade(maker)
    good = ("a",)
    kept = made(good)
    nothing: tuple[str, ...] = ()

    for _ in range(2):
        with pytest.raises(ValueError, match="nothing to make"):
            made(nothing)

    assert made(good) is kept
    assert maker.calls == ["a", "", ""]


def test_threads_do_not_see_what_others_made() -> None:
    made = LastMade(Maker())
    start = threading.Barrier(4)

    def ask(name: str) -> bool:
        own = (name,)
        start.wait()
        return all(made(own) == [name] for _ in range(2000))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(ask, "wxyz"))
