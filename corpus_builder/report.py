"""The build report: what came in, what became of it, and what it took."""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from corpus_builder.capture import Loss
from corpus_builder.snapshot import LISTED_LOSSES
from corpus_builder.workspace import write_durably

LOSSES_EXIT = 3
"""Exit code of a build that is published but had to leave pages out."""

SHOWN_LOSSES = 10
"""How many losses are printed one by one; the report file lists more."""

MIB = 1024 * 1024


@dataclass(slots=True)
class StageReport:
    """A stage in numbers: ``taken`` is ``given`` plus all of ``dropped``.

    ``done`` things of ``unit`` took ``seconds`` in this run; both are 0 for a stage that was
    finished by an earlier run of the same build.
    """

    name: str
    taken: int
    given: int
    dropped: dict[str, int] = field(default_factory=dict)
    unit: str = ""
    done: int = 0
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Things a second, 0.0 where nothing was done."""
        return self.done / self.seconds if self.seconds > 0 else 0.0

    @property
    def balanced(self) -> bool:
        """True when everything that came in is accounted for."""
        return self.taken == self.given + sum(self.dropped.values())


@dataclass(slots=True)
class Report:
    """A finished build. ``losses`` and ``notes`` count by reason, ``listed`` are the first.

    ``near`` are the counts of ``near_stage.Near``, empty if no near-duplicates were sought.
    """

    name: str
    world_id: str = ""
    folder: str = ""
    stages: list[StageReport] = field(default_factory=list)
    losses: dict[str, int] = field(default_factory=dict)
    notes: dict[str, int] = field(default_factory=dict)
    listed: list[Loss] = field(default_factory=list)
    near: Mapping[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    bytes_by_part: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def exit_code(self) -> int:
        """0, or ``LOSSES_EXIT`` if pages were lost; notes do not count."""
        return LOSSES_EXIT if self.losses else 0

    def as_json(self) -> dict[str, object]:
        """Return the report as plain values."""
        size = sum(self.bytes_by_part.values())
        pages = self.counts.get("pages", 0)
        return {
            "name": self.name,
            "world_id": self.world_id,
            "folder": self.folder,
            "status": "finished with losses" if self.losses else "finished",
            "counts": self.counts,
            "stages": [
                {**asdict(stage), "rate": round(stage.rate, 1), "balanced": stage.balanced}
                for stage in self.stages
            ],
            "losses": dict(sorted(self.losses.items())),
            "notes": dict(sorted(self.notes.items())),
            "near": dict(self.near),
            "listed": [asdict(loss) for loss in self.listed[:LISTED_LOSSES]],
            "bytes": size,
            "bytes_by_part": self.bytes_by_part,
            "bytes_a_page": round(size / pages) if pages else 0,
            "seconds": round(self.seconds, 2),
            "peak_memory_mib": peak_memory(),
        }

    def write(self, path: Path) -> None:
        """Write the report as JSON."""
        text = json.dumps(self.as_json(), indent=2, ensure_ascii=False)
        write_durably(path, text.encode("utf-8", errors="replace"))

    def lines(self) -> list[str]:
        """Return what a person wants to know at the end."""
        counts = self.counts
        lines = [
            f"World {self.name}, id {self.world_id[:12]}",
            ", ".join(f"{counts.get(key, 0):,} {key}" for key in ("pages", "versions", "passages")),
            f"Folder: {self.folder}",
        ]
        if self.near:
            lines.append(
                "Near-duplicates: {pairs:,} pairs, {held:,} versions whose text others contain, "
                "{skipped:,} shingles too frequent to look for".format(**self.near)
            )
        for title, table in (("Lost", self.losses), ("Noted", self.notes)):
            for reason, count in sorted(table.items()):
                lines.append(f"{title}: {count:,} x {reason}")
        if self.losses:
            lost = [loss for loss in self.listed if not loss.note]
            lines += [
                f"  {loss.origin} at {loss.offset}: {loss.reason} {loss.url}".rstrip()
                for loss in lost[:SHOWN_LOSSES]
            ]
            count = sum(self.losses.values())
            lines.append(f"Finished with losses: {count:,} pages or records were left out.")
        lines.append(f"Serve it: world-server serve {self.folder}")
        return lines


def peak_memory() -> dict[str, int]:
    """Return the highest resident memory so far, of this process and of its largest child, MiB."""
    unit = 1 if sys.platform == "darwin" else 1024
    return {
        "build": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit // MIB,
        "worker": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit // MIB,
    }
