"""The output of the first stage: sorted files of drafts with a marker each.

A shard's drafts go to one or more parts. A part is whole once its marker exists, so a killed build
goes on after the last whole part of every shard.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from corpus_builder.capture import Draft, Loss
from corpus_builder.rows import write_rows
from corpus_builder.snapshot import LISTED_LOSSES, Placed
from corpus_builder.workspace import write_durably
from world_core import urls


@dataclass(slots=True)
class PartFacts:
    """What a part holds: items ``first`` up to ``after`` of its shard, and what became of them.

    Every item is a draft or a loss: ``drafts`` plus the values of ``lost`` and ``noted`` is their
    number.
    """

    shard: int
    first: int
    after: int
    last: bool = False
    drafts: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    noted: Counter[str] = field(default_factory=Counter)
    losses: list[Loss] = field(default_factory=list)

    @property
    def name(self) -> str:
        """File name without endings; sorts by shard, then by place in the shard."""
        return f"{self.shard:06d}-{self.first:010d}"

    def lose(self, loss: Loss) -> None:
        """Count a loss or a note, and list the first ones."""
        counter = self.noted if loss.note else self.lost
        counter[loss.reason] += 1
        if len(self.losses) < LISTED_LOSSES:
            self.losses.append(loss)

    def balanced(self) -> bool:
        """True when every item is accounted for."""
        return self.after - self.first == self.drafts + self.lost.total() + self.noted.total()


class PartWriter:
    """Collects a part's drafts and writes them, sorted, with the marker last."""

    def __init__(self, folder: Path, shard: int, first: int, digest: str) -> None:
        self.facts = PartFacts(shard, first, first)
        self.characters = 0
        self._folder = folder
        self._digest = digest
        self._placed: list[Placed] = []

    def add(self, found: Draft | Loss) -> None:
        """Take the shard's next item."""
        if isinstance(found, Loss):
            self.facts.lose(found)
        else:
            page_id = urls.page_id(found.key)
            self._placed.append(Placed(page_id, self.facts.shard, self.facts.after, found))
            self.facts.drafts += 1
            self.characters += len(found.text)
        self.facts.after += 1

    def commit(self, *, last: bool) -> None:
        """Put the part on disk."""
        self.facts.last = last
        done = self._folder / f"{self.facts.name}.done.json"
        done.unlink(missing_ok=True)  # no old marker may vouch for new rows
        self._placed.sort(key=lambda placed: placed.order)
        write_rows(
            self._folder / f"{self.facts.name}.jsonl.zst", (placed.row() for placed in self._placed)
        )
        marker = {
            "digest": self._digest,
            "shard": self.facts.shard,
            "first": self.facts.first,
            "after": self.facts.after,
            "last": last,
            "drafts": self.facts.drafts,
            "lost": self.facts.lost,
            "noted": self.facts.noted,
            "losses": [asdict(loss) for loss in self.facts.losses],
        }
        write_durably(done, json.dumps(marker).encode("utf-8"))


def whole_parts(folder: Path, shard: int, digest: str) -> list[PartFacts]:
    """Return the whole parts of a shard, in order, as far as they follow each other.

    Parts written from other input or settings do not count, and neither does a part of an earlier
    reading that begins within another one; neither hides the parts behind it.
    """
    parts: list[PartFacts] = []
    after = 0
    for marker in sorted(folder.glob(f"{shard:06d}-*.done.json")):
        saved = json.loads(marker.read_text("utf-8"))
        facts = _facts(saved)
        if saved["digest"] != digest or facts.first != after:
            continue
        parts.append(facts)
        after = facts.after
        if facts.last:
            break
    return parts


def drop_other_parts(folder: Path, keep: set[str]) -> None:
    """Remove every part whose name is not to be kept, markers first."""
    for marker in sorted(folder.glob("*.done.json")):
        name = marker.name.removesuffix(".done.json")
        if name not in keep:
            marker.unlink()
    for path in sorted(folder.glob("*.jsonl.zst")):
        if path.name.removesuffix(".jsonl.zst") not in keep:
            path.unlink()


def _facts(saved: Mapping[str, object]) -> PartFacts:
    values = {key: value for key, value in saved.items() if key != "digest"}
    facts = PartFacts(**values)  # type: ignore[arg-type]  # written by us
    facts.lost, facts.noted = Counter(facts.lost), Counter(facts.noted)
    facts.losses = [Loss(**loss) for loss in saved["losses"]]  # type: ignore[attr-defined]  # ditto
    return facts
