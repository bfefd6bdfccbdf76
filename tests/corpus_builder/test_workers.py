from __future__ import annotations

import multiprocessing

import pytest

from corpus_builder.workers import run_tasks
from tests.corpus_builder.fakes import moody, square
from world_core.errors import BadInputError


def never(_task: object, code: int) -> str:
    raise AssertionError(f"a process died with {code}")


def test_results_come_in_the_order_of_the_tasks() -> None:
    told: list[int] = []

    def died(task: int, code: int) -> int:
        raise AssertionError(f"task {task} died with {code}")

    results = run_tasks(square, list(range(20)), workers=2, died=died, tell=told.append)
    assert list(results) == [n * n for n in range(20)]
    assert sorted(told) == list(range(20))
    assert not multiprocessing.active_children()


def test_no_tasks_need_no_process() -> None:
    assert list(run_tasks(moody, [], workers=4, died=never, tell=print)) == []


def test_a_death_costs_only_its_task() -> None:
    deaths: list[tuple[str, int]] = []

    def died(task: str, code: int) -> str:
        deaths.append((task, code))
        return "instead"

    results = list(run_tasks(moody, ["a", "die", "b"], workers=1, died=died, tell=print))
    assert [result.partition(":")[0] for result in results] == ["a", "instead", "b"]
    assert deaths == [("die", -9)]


def test_an_error_of_a_task_reaches_the_caller_whole() -> None:
    with pytest.raises(BadInputError) as caught:
        list(run_tasks(moody, ["a", "refuse"], workers=1, died=never, tell=print))
    assert caught.value.sentence == "A sentence."
    assert caught.value.hint == "A hint."
    with pytest.raises(OSError, match="No space left"):
        list(run_tasks(moody, ["full"], workers=1, died=never, tell=print))
    assert not multiprocessing.active_children()


def test_what_died_raises_ends_the_pool() -> None:
    def died(task: str, code: int) -> str:
        raise BadInputError(f"{task} {code}")

    with pytest.raises(BadInputError, match="die -9"):
        list(run_tasks(moody, ["sleep", "die"], workers=2, died=died, tell=print))
    assert not multiprocessing.active_children()
