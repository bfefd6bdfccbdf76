"""The same bytes on every way of a query to its vector: batched, remembered, moved."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.parity.asking import digests, mixed_requests
from tests.support import RunningServer, running_server

WAYS = (
    ("--query-cache-mb", "0", "--batch-limit", "1"),
    ("--query-cache-mb", "0", "--batch-limit", "7", "--batch-wait-ms", "5"),
    ("--query-cache-mb", "1", "--batch-limit", "64", "--encoder-process", "always"),
    ("--query-cache-mb", "0", "--encoder-process", "always", "--workers", "2"),
)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_bodies_are_equal_on_every_way_to_a_vector(
    atlas_world: Path, atlas_server: RunningServer, tmp_path: Path, way: tuple[str, ...]
) -> None:
    requests = mixed_requests(atlas_server, 300)
    first = digests(atlas_server, requests, 1)
    with running_server(tmp_path, "serve", str(atlas_world), *way) as other:
        assert digests(other, requests, 16) == first
        assert digests(other, requests, 4) == first
