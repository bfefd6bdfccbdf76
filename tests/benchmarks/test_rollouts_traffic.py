from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import pytest

from benchmarks import rollouts_traffic as traffic
from benchmarks.rollouts_traffic import Rollout, Step, Turn

CASES = [
    [[Turn("search", ("recorded one", "recorded two")), Turn("visit", visits=2)]],
    [[Turn("search", ("recorded three",))], [Turn("visit", visits=1)] * 3],
]
PAGES = [f"https://page.example/{number}" for number in range(20)]
FOUND = [f"https://found.example/{number}" for number in range(10)]


def rollout(seed: int = 1, think_s: float = 2.0) -> Rollout:
    return Rollout(CASES, ["own one", "own two"], PAGES, random.Random(seed), think_s)


def take(one: Rollout, count: int, *, found: bool = True) -> list[Step]:
    steps = []
    for step in itertools.islice(one.steps(), count):
        if step.queries and found:
            one.found(FOUND)
        steps.append(step)
    return steps


def write_rows(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def test_cases_are_read_in_their_order(tmp_path: Path) -> None:
    write_rows(
        tmp_path / "a_requests.jsonl",
        [
            {"case": "x", "turn": 1, "tool": "search", "queries": ["q", "r"]},
            {"case": "y", "turn": 1, "tool": "search", "queries": ["s"]},
            {"case": "x", "turn": 2, "tool": "python", "code": "1"},
            {"case": "x", "turn": 3, "tool": "visit", "urls": ["u", "v"], "goal": "g"},
        ],
    )
    write_rows(tmp_path / "other.jsonl", [{"tool": "search"}])
    (cases,) = traffic.read_cases(tmp_path)
    assert cases == [
        [Turn("search", ("q", "r")), Turn("visit", visits=2)],
        [Turn("search", ("s",))],
    ]


def test_a_folder_without_traffic_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="--traffic"):
        traffic.read_cases(tmp_path)


def test_calls_a_turn_are_those_that_rollouts_make() -> None:
    steps = take(rollout(), 20_000)
    calls = sum(len(step.queries) or len(step.urls) for step in steps)
    assert calls / len(steps) == pytest.approx(traffic.calls_a_turn(CASES), rel=0.02)


def test_a_seed_gives_the_same_rollout() -> None:
    assert take(rollout(3), 200) == take(rollout(3), 200)
    assert take(rollout(3), 200) != take(rollout(4), 200)


def test_searches_ask_recorded_queries_and_own_ones() -> None:
    asked = [query for step in take(rollout(), 4000) for query in step.queries]
    own = sum(query.startswith("own ") for query in asked)
    assert own / len(asked) == pytest.approx(traffic.OWN_QUERIES, abs=0.05)
    assert {query for query in asked if not query.startswith("own ")} == {
        "recorded one",
        "recorded two",
        "recorded three",
    }
    together = [step.together for step in take(rollout(), 4000) if step.queries]
    assert 0.4 < sum(together) / len(together) < 0.6


def test_visits_go_to_what_was_found_back_and_to_invented_addresses() -> None:
    steps = take(rollout(), 8000)
    urls = [url for step in steps for url in step.urls]
    invented = sum("invented" in url for url in urls)
    assert invented / len(urls) == pytest.approx(traffic.INVENTED, abs=0.02)
    assert set(urls) & set(FOUND)
    assert all(url in PAGES or url in FOUND or "invented" in url for url in urls)


def test_before_any_search_visits_go_to_pages_of_the_world() -> None:
    urls = [url for step in take(rollout(), 400, found=False) for url in step.urls]
    assert all(url in PAGES or "invented" in url for url in urls)


def test_think_times_have_their_mean() -> None:
    thinks = [step.think_s for step in take(rollout(think_s=3.0), 20_000)]
    assert min(thinks) > 0
    assert sum(thinks) / len(thinks) == pytest.approx(3.0, rel=0.05)
    assert {step.think_s for step in take(rollout(think_s=0.0), 50)} == {0.0}


@pytest.mark.shared
def test_the_recorded_traffic_is_read(shared_dir: Path) -> None:
    files = traffic.read_cases(shared_dir / "data" / "traffic")
    turns = [turn for cases in files for case in cases for turn in case]
    assert len(turns) == 288
    assert 1.0 < traffic.calls_a_turn(files) < 2.5
    visits = [turn for turn in turns if turn.tool == "visit"]
    assert all(turn.visits >= 1 for turn in visits)
    assert max(len(turn.queries) for turn in turns) == 5
