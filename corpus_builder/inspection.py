"""What a person wants to know of a world before using it."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from pathlib import Path

import numpy as np

from corpus_builder import publish
from world_core import manifest as manifests
from world_core.manifest import Manifest
from world_core.near import NearFile
from world_core.types import Instant
from world_core.views import UNKNOWN, Columns

MOST_HOSTS = 20


def inspect(world: Path) -> dict[str, object]:
    """Return counts, hosts, languages, dates, losses, ids and sizes of a world as plain values.

    Raises:
        BadWorldError: the folder is no world, or is damaged.
    """
    folder = publish.resolve(world)
    manifest = manifests.read(folder)
    manifests.verify(folder, manifest)
    columns = Columns.open(folder)
    size = sum(file.bytes for file in manifest.files.values())
    pages = manifest.counts.pages
    return {
        "name": manifest.name,
        "folder": str(folder),
        "world_id": manifest.world_id,
        "clock": iso(manifest.clock),
        "captured": [iso(manifest.capture_from), iso(manifest.capture_to)],
        "published": _published(columns),
        "counts": manifest.counts.model_dump(exclude={"dropped"}),
        "lost": manifest.counts.dropped,
        "languages": _languages(manifest, columns),
        "hosts": _hosts(columns),
        "host_count": len(columns.hosts),
        "near": _near(NearFile.open(folder), columns),
        "lexical": manifest.lexical.model_dump(),
        "dense": manifest.dense.model_dump() if manifest.dense else None,
        "sparse": manifest.sparse.model_dump() if manifest.sparse else None,
        "reranker": manifest.reranker.model_dump() if manifest.reranker else None,
        "encoder_id": manifest.encoder_id,
        "analyzer_id": manifest.analyzer_id,
        "fusion": manifest.fusion.model_dump(),
        "canaries": [canary.query for canary in manifest.canaries],
        "bytes": size,
        "bytes_a_page": round(size / pages) if pages else 0,
        "files": {path: file.bytes for path, file in sorted(manifest.files.items())},
    }


def lines(facts: dict[str, object]) -> list[str]:
    """Return the facts of ``inspect`` as lines to read."""
    result = []
    for key, value in facts.items():
        if isinstance(value, dict) and value:
            result.append(f"{key}:")
            result += [f"  {name}: {_shown(entry)}" for name, entry in value.items()]
        else:
            result.append(f"{key}: {_shown(value)}")
    return result


def iso(instant: Instant | None) -> str | None:
    """Return an instant as an ISO date and time in UTC; None, and times beyond years, as None."""
    if instant is None:
        return None
    try:
        return dt.datetime.fromtimestamp(instant, dt.UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return None


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_shown, value)) or "none"
    return "none" if value in (None, {}, "") else str(value)


def _languages(manifest: Manifest, columns: Columns) -> dict[str, int]:
    counts = np.bincount(columns.language, minlength=len(manifest.languages))
    pairs = zip(manifest.languages, counts.tolist(), strict=True)
    return dict(sorted(pairs, key=lambda pair: (-pair[1], pair[0])))


def _hosts(columns: Columns) -> dict[str, int]:
    """Return the hosts with most pages, and how many they have."""
    _, firsts = np.unique(columns.version_page, return_index=True)
    counts = Counter(columns.hosts[number] for number in columns.host[firsts].tolist())
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:MOST_HOSTS])


def _near(near: NearFile, columns: Columns) -> dict[str, object] | None:
    if not near.version_count:
        return None
    grouped = int(np.count_nonzero(columns.group >= 0))
    return {"pairs": near.pair_count, "held": near.held_count, "in_groups": grouped}


def _published(columns: Columns) -> dict[str, object]:
    known = columns.published[columns.published != UNKNOWN]
    return {
        "versions": int(known.size),
        "from": iso(int(known.min())) if known.size else None,
        "to": iso(int(known.max())) if known.size else None,
    }
