"""Counters and timings of the processes of a server, in the text format of Prometheus."""

from __future__ import annotations

import bisect
from collections import Counter, defaultdict
from collections.abc import Mapping
from types import MappingProxyType

from world_core.types import Timings
from world_server.counts import Counts
from world_server.query_encoder import EncoderReport

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the histogram of request times, in seconds."""

TABLE: Mapping[str, tuple[str, str]] = {
    "world_requests_total": ("counter", "Requests answered, by route and outcome."),
    "world_request_seconds": ("histogram", "Seconds from request to answer, by route."),
    "world_step_seconds_total": ("counter", "Seconds spent in each step of the calls."),
    "world_step_calls_total": ("counter", "Times each step was taken."),
    "world_running_calls": ("gauge", "Calls let in and not yet done."),
    "world_waiting_calls": ("gauge", "Calls in the queue."),
    "world_refused_total": ("counter", "Calls refused at once because the queue was full."),
    "world_expired_total": ("counter", "Calls that waited to the deadline."),
    "world_client_left_total": ("counter", "Calls whose client left before the answer."),
    "world_degraded_total": ("counter", "Searches answered without the encoder, which failed."),
    "world_encoder_ready": ("gauge", "1 while the encoder of a world works, else 0."),
    "world_encoder_batches_total": ("counter", "Runs of the encoder's model over queries."),
    "world_encoder_texts_total": ("counter", "Queries in those runs."),
    "world_encoder_batch_size": ("gauge", "Mean queries a run."),
    "world_encoder_hits_total": ("counter", "Queries whose vector was remembered or under way."),
    "world_encoder_misses_total": ("counter", "Queries that had to be encoded."),
    "world_encoder_restarts_total": ("counter", "Times the encoder's process was replaced."),
    "world_counted_processes": ("gauge", "Processes whose counts are added up here."),
    "world_switches_total": ("counter", "Switches of a served world, by result."),
}
"""Name, type and meaning of every metric."""


class Metrics:
    """What one process counted since its start; belongs to one event loop."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str]] = Counter()
        self._histogram: Counter[tuple[str, int]] = Counter()
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._step_seconds: defaultdict[str, float] = defaultdict(float)
        self._step_calls: Counter[str] = Counter()
        self._switches: Counter[str] = Counter()
        self.client_left = 0
        self.degraded = 0

    def count_request(self, route: str, outcome: str, seconds: float) -> None:
        """Count one answered request."""
        self._requests[route, outcome] += 1
        self._histogram[route, bisect.bisect_left(BUCKETS, seconds)] += 1
        self._seconds[route] += seconds

    def count_steps(self, timings: Timings) -> None:
        """Add the steps of one call."""
        for step, seconds in timings.seconds.items():
            self._step_seconds[step] += seconds
            self._step_calls[step] += 1

    def count_switch(self, result: str) -> None:
        """Count a switch of a served world that was ``done`` or ``refused``."""
        self._switches[result] += 1

    def counts(self, *, running: int, waiting: int, refused: int, expired: int) -> Counts:
        """Return a copy of what was counted, with the numbers that others keep."""
        return Counts(
            requests=dict(self._requests),
            histogram=dict(self._histogram),
            seconds=dict(self._seconds),
            step_seconds=dict(self._step_seconds),
            step_calls=dict(self._step_calls),
            switches=dict(self._switches),
            plain={
                "world_running_calls": running,
                "world_waiting_calls": waiting,
                "world_refused_total": refused,
                "world_expired_total": expired,
                "world_client_left_total": self.client_left,
                "world_degraded_total": self.degraded,
                "world_counted_processes": 1,
            },
        )


def render(counts: Counts, encoders: Mapping[str, EncoderReport] = MappingProxyType({})) -> bytes:
    """Return all metrics as text, sorted by label within each name.

    ``encoders`` are the reports on the encoders by the name of their world.
    """
    lines: dict[str, list[str]] = {name: [] for name in TABLE}
    for (route, outcome), count in sorted(counts.requests.items()):
        lines["world_requests_total"].append(_line({"route": route, "outcome": outcome}, count))
    for step in sorted(counts.step_calls):
        label = {"step": step}
        lines["world_step_seconds_total"].append(_line(label, counts.step_seconds[step]))
        lines["world_step_calls_total"].append(_line(label, counts.step_calls[step]))
    for result, count in sorted(counts.switches.items()):
        lines["world_switches_total"].append(_line({"result": result}, count))
    for name, number in counts.plain.items():
        lines[name].append(_line({}, number))
    for world, report in sorted(encoders.items()):
        for name, number in _encoder_numbers(report).items():
            lines[f"world_encoder_{name}"].append(_line({"world": world}, number))
    text = []
    for name, (kind, meaning) in TABLE.items():
        text += [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]
        text += [name + line for line in lines[name]]
        if kind == "histogram":
            text += _histogram_lines(name, counts)
    return ("\n".join(text) + "\n").encode()


def _histogram_lines(name: str, counts: Counts) -> list[str]:
    lines = []
    for route in sorted(counts.seconds):
        total: float = 0
        for place, bound in enumerate((*map(str, BUCKETS), "+Inf")):
            total += counts.histogram.get((route, place), 0)
            lines.append(f"{name}_bucket" + _line({"route": route, "le": bound}, total))
        lines.append(f"{name}_sum" + _line({"route": route}, counts.seconds[route]))
        lines.append(f"{name}_count" + _line({"route": route}, total))
    return lines


def _encoder_numbers(report: EncoderReport) -> Mapping[str, float]:
    return {
        "ready": int(report.is_ready),
        "batches_total": report.batches,
        "texts_total": report.texts,
        "batch_size": round(report.texts / report.batches, 3) if report.batches else 0,
        "hits_total": report.hits,
        "misses_total": report.misses,
        "restarts_total": report.restarts,
    }


def _line(labels: Mapping[str, str], value: float) -> str:
    """Return labels and value; label values are names of ours, which need no escaping."""
    inner = ",".join(f'{name}="{text}"' for name, text in labels.items())
    return f"{{{inner}}} {value}" if inner else f" {value}"
