"""Calls of simulated rollouts, shaped like recorded ones.

A rollout takes the turns of a recorded case in their order: a search with so many queries, or a
visit of so many pages. Half of its queries are the recorded ones, the others are about pages of the
world. It visits what its searches found, a share of its visits return to a page it has read, and a
few go to addresses that no search gave it, as agents do.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

OWN_QUERIES = 0.5
"""Share of queries about pages of the world."""

RETURNS = 0.29
"""Share of visits to a page visited before: 38 of 131 recorded ones."""

INVENTED = 0.07
"""Share of visits to addresses nobody was given: the recorded share of failed visits."""

THINK_S = 5.6
"""Mean seconds between two turns, which is what a turn is reported to take."""

SPREAD = 0.8
"""Standard deviation of the logarithm of a think time."""

TOOLS = ("search", "visit")


@dataclass(frozen=True, slots=True)
class Turn:
    """A recorded turn: the tool, its queries, or the number of pages it visits."""

    tool: str
    queries: tuple[str, ...] = ()
    visits: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """What a rollout does next: think, then ask these queries or fetch these addresses."""

    think_s: float
    queries: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    together: bool = False


def read_cases(folder: Path) -> list[list[list[Turn]]]:
    """Return the cases of each file of recorded requests, turns in order.

    Raises:
        SystemExit: the folder holds none.
    """
    files = []
    for path in sorted(folder.glob("*_requests.jsonl")):
        cases: dict[str, list[Turn]] = {}
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row["tool"] in TOOLS:
                turn = Turn(row["tool"], tuple(row.get("queries", ())), len(row.get("urls", ())))
                cases.setdefault(row["case"], []).append(turn)
        files.append(list(cases.values()))
    if not any(files):
        raise SystemExit(f"{folder} holds no *_requests.jsonl; give --traffic FOLDER")
    return files


def calls_a_turn(files: Sequence[Sequence[Sequence[Turn]]]) -> float:
    """Return the mean number of calls of a turn, files and cases drawn as ``Rollout`` does."""
    means = []
    for cases in files:
        turns = sum(len(case) for case in cases)
        calls = sum(max(1, len(turn.queries) or turn.visits) for case in cases for turn in case)
        means.append((calls / len(cases), turns / len(cases)))
    return sum(calls for calls, _ in means) / sum(turns for _, turns in means)


@dataclass
class Rollout:
    """One simulated agent: it never ends, but takes one case after another.

    Attributes:
        files: recorded cases by file; each file is as likely as another.
        own: queries about pages of the world.
        pages: addresses of pages of the world, for a visit before any search.
        source: decides everything.
        think_s: mean seconds before a turn; 0 never thinks.
    """

    files: Sequence[Sequence[Sequence[Turn]]]
    own: Sequence[str]
    pages: Sequence[str]
    source: random.Random
    think_s: float = THINK_S
    seen: list[str] = field(default_factory=list)
    visited: list[str] = field(default_factory=list)

    def steps(self) -> Iterator[Step]:
        """Yield what it does, for ever; tell it with ``found`` what a search gave.

        The first case is entered at any of its turns, as of a run that has been going on: cases
        begin with searches, and if all rollouts began with one they would stay in step.
        """
        case = self.source.choice(self.source.choice(self.files))
        turns = case[self.source.randrange(len(case)) :]
        while True:
            self.seen.clear()
            self.visited.clear()
            for turn in turns:
                yield self._step(turn)
            turns = self.source.choice(self.source.choice(self.files))

    def found(self, urls: Sequence[str]) -> None:
        """Remember the results of a search."""
        self.seen += urls

    def _step(self, turn: Turn) -> Step:
        think = self._think()
        if turn.tool == "search":
            queries = tuple(
                self.source.choice(self.own) if self.source.random() < OWN_QUERIES else query
                for query in turn.queries
            )
            return Step(think, queries=queries, together=self.source.random() < 0.5)
        return Step(think, urls=tuple(self._visit() for _ in range(max(1, turn.visits))))

    def _visit(self) -> str:
        draw = self.source.random()
        if draw < INVENTED:
            return f"https://invented.example/{self.source.randrange(10**9)}"
        if self.visited and draw < INVENTED + RETURNS:
            return self.source.choice(self.visited)
        url = self.source.choice(self.seen or self.pages)
        self.visited.append(url)
        return url

    def _think(self) -> float:
        if not self.think_s:
            return 0.0
        centre = math.log(self.think_s) - SPREAD**2 / 2  # of a log-normal with this mean
        return self.source.lognormvariate(centre, SPREAD)
