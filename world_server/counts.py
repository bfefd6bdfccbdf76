"""What processes counted: plain numbers that can be sent and added up."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

Number = int | float

GAUGES = ("world_running_calls", "world_waiting_calls", "world_counted_processes")
"""Plain numbers that end with their process; all others only grow."""


@dataclass(slots=True)
class Counts:
    """The counts of one process, or the sum of several.

    Attributes:
        requests: requests by route and outcome.
        histogram: requests by route and place in ``metrics.BUCKETS``.
        seconds: seconds of requests by route.
        step_seconds: seconds by step.
        step_calls: times by step.
        switches: switches of a world by result.
        plain: metrics without labels by name.
    """

    requests: dict[tuple[str, str], Number] = field(default_factory=dict)
    histogram: dict[tuple[str, int], Number] = field(default_factory=dict)
    seconds: dict[str, Number] = field(default_factory=dict)
    step_seconds: dict[str, Number] = field(default_factory=dict)
    step_calls: dict[str, Number] = field(default_factory=dict)
    switches: dict[str, Number] = field(default_factory=dict)
    plain: dict[str, Number] = field(default_factory=dict)

    def add(self, other: Counts) -> None:
        """Add the numbers of another process."""
        for part in dataclasses.fields(self):
            mine, more = getattr(self, part.name), getattr(other, part.name)
            for key, number in more.items():
                mine[key] = mine.get(key, 0) + number

    def settled(self) -> Counts:
        """Return what stays true when the process has ended: all but the gauges."""
        plain = {name: number for name, number in self.plain.items() if name not in GAUGES}
        return dataclasses.replace(self, plain=plain)
