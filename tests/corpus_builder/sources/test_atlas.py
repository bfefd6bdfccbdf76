"""The atlas as a source: shards, presets, sizes, and the same bytes everywhere."""

from __future__ import annotations

import hashlib
import os
import pickle
import subprocess
import sys
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from corpus_builder import snapshot
from corpus_builder.capture import Capture, Draft, Shard
from corpus_builder.errors import BadSourceError
from corpus_builder.extract import extract
from corpus_builder.rows import write_rows
from corpus_builder.sources.atlas import CLOCK, MAX_SIZE, PRESETS, AtlasSource
from tests.conftest import ROOT
from tests.corpus_builder.atlas.helpers import crawl, plain
from world_core import urls
from world_core.passages import cut
from world_core.types import PageRecord


def _digest(source: AtlasSource) -> str:
    running = hashlib.sha256()
    for capture in crawl(source):
        running.update(repr(capture).encode())
    for question in source.questions():
        running.update(repr(question.as_dict()).encode())
    return running.hexdigest()


def _pages(source: AtlasSource, folder: Path) -> tuple[snapshot.Snapshot, list[PageRecord]]:
    """Return what extraction and snapshot make of a source."""
    placed = []
    for number, shard in enumerate(source.shards()):
        for item, capture in enumerate(source.read(shard)):
            assert isinstance(capture, Capture)
            draft = extract(capture)
            assert isinstance(draft, Draft), draft
            placed.append(snapshot.Placed(urls.page_id(draft.key), number, item, draft))
    part = folder / "part.zst"
    write_rows(part, (entry.row() for entry in sorted(placed, key=lambda entry: entry.order)))
    made = snapshot.make_snapshot([part], folder, exact_duplicates="auto")
    return made, list(snapshot.read_pages(snapshot.blocks_of(folder)))


def test_presets_and_sizes() -> None:
    assert AtlasSource().size == 2000
    assert AtlasSource(preset="atlas-demo").size == 400
    assert AtlasSource(preset="atlas-toy").size == 200
    assert AtlasSource(17, preset="atlas-demo").size == 17
    assert set(PRESETS) == {"atlas", "atlas-demo", "atlas-toy"}
    assert AtlasSource(MAX_SIZE).size == MAX_SIZE


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(BadSourceError, match="atlas-huge") as caught:
        AtlasSource(preset="atlas-huge")
    assert "atlas-demo" in caught.value.hint


@pytest.mark.parametrize(
    ("size", "preset"), [(0, None), (-3, None), (MAX_SIZE + 1, None), (201, "atlas-toy")]
)
def test_an_impossible_size_is_refused(size: int, preset: str | None) -> None:
    with pytest.raises(BadSourceError, match=str(size)) as caught:
        AtlasSource(size, preset=preset)
    assert "from 1 to" in caught.value.hint


def test_shards_are_slices_that_say_all() -> None:
    shards = AtlasSource(450, seed=9).shards()
    assert [(s.arguments["start"], s.arguments["end"]) for s in shards] == [
        ("0", "200"),
        ("200", "400"),
        ("400", "450"),
    ]
    stranger = AtlasSource()
    for shard in shards:
        assert list(stranger.read(shard)) == list(AtlasSource(450, seed=9).read(shard))


@pytest.mark.parametrize(
    "change",
    [
        {"seed": "one"},
        {"start": ""},
        {"preset": "atlas-huge"},
    ],
)
def test_a_foreign_shard_is_refused(change: dict[str, str]) -> None:
    (shard,) = AtlasSource(40).shards()
    with pytest.raises(BadSourceError):
        list(AtlasSource(40).read(replace(shard, arguments={**shard.arguments, **change})))


def test_a_shard_without_arguments_is_refused() -> None:
    with pytest.raises(BadSourceError, match="not one of an atlas"):
        list(AtlasSource(40).read(Shard("atlas", Path("atlas"))))


def test_source_and_shards_travel_to_workers() -> None:
    source = AtlasSource(80, preset="atlas-demo")
    again = pickle.loads(pickle.dumps(source))  # noqa: S301  as the process pool does
    assert again.shards() == source.shards()
    assert _digest(again) == _digest(source)


@pytest.mark.parametrize("hash_seed", ["0", "4242"])
def test_the_same_bytes_in_another_process(hash_seed: str) -> None:
    code = (
        "from tests.corpus_builder.sources.test_atlas import _digest\n"
        "from corpus_builder.sources.atlas import AtlasSource\n"
        "print(_digest(AtlasSource(120, seed=5)), _digest(AtlasSource(seed=5, preset='atlas-toy')))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    toy = AtlasSource(seed=5, preset="atlas-toy")
    assert ran.stdout.split() == [_digest(AtlasSource(120, seed=5)), _digest(toy)]


@pytest.mark.parametrize("size", [1, 39, 41, 100])
def test_the_size_is_the_number_of_pages(size: int) -> None:
    found = {
        urls.canonical(capture.url)
        for capture in crawl(AtlasSource(size))
        if capture.status == 200 and urls.host_of(capture.url) != "mirror.example"
    }
    assert len(found) == size


def test_growing_keeps_earlier_pages() -> None:
    small, large = list(crawl(AtlasSource(100))), list(crawl(AtlasSource(160)))
    # Neither the offset in a cut block nor its other addresses are part of a page.
    known = {(c.url, c.time, c.status, c.body) for c in large}
    assert {(c.url, c.time, c.status, c.body) for c in small} <= known


@pytest.mark.parametrize("preset", ["atlas", "atlas-demo"])
def test_two_hundred_of_four_hundred_pages_have_three_to_five_versions(preset: str) -> None:
    bodies: defaultdict[str, list[bytes | None]] = defaultdict(list)
    for capture in crawl(AtlasSource(440, preset=preset)):
        if capture.status == 200 and urls.host_of(capture.url) != "mirror.example":
            seen = bodies[urls.canonical(capture.url)]
            if not seen or seen[-1] != capture.body:
                seen.append(capture.body)
    counts = Counter(len(found) for found in bodies.values())
    assert len(bodies) == 440
    assert counts[3] + counts[4] + counts[5] == 200
    assert min(counts[3], counts[4], counts[5]) > 0
    assert counts[1] == 240


def test_the_clock_is_after_every_capture() -> None:
    assert max(capture.time for capture in crawl(AtlasSource(440))) < CLOCK


def test_every_kind_of_capture_occurs() -> None:
    statuses = Counter(capture.status for capture in crawl(AtlasSource(40)))
    assert set(statuses) == {200, 301, 404, 410}


def test_the_builder_finds_the_pages_and_folds_all_else(tmp_path: Path) -> None:
    source = AtlasSource(80, preset="atlas-demo")
    made, pages = _pages(source, tmp_path)
    assert made.losses == []
    assert len(pages) == 80
    assert sum(3 <= len(page.versions) <= 5 for page in pages) == 40
    assert made.dead_links == 5
    assert {v.language for p in pages for v in p.versions} == {"en", "de", "es", "fr", "zh"}
    assert made.counts["redirect loop"] == 2
    assert made.counts["exact duplicate, now an alias"] == 4
    by_host = Counter(urls.host_of(page.key) for page in pages)
    assert "mirror.example" not in by_host
    assert by_host["harbour-gazette.example"] == 2
    dates = Counter(v.published is None for p in pages for v in p.versions)
    assert dates[True] > 0
    assert dates[False] > dates[True]


def test_the_demo_is_small_enough_to_build_in_half_a_minute() -> None:
    passages: set[tuple[str, str]] = set()
    for capture in crawl(AtlasSource(preset="atlas-demo")):
        if capture.status == 200 and urls.host_of(capture.url) != "mirror.example":
            text = plain(capture.body or b"")
            passages |= {(capture.url, text[span.start : span.end]) for span in cut(text)}
    assert 800 < len(passages) <= 1100


def test_the_toy_world_is_two_hundred_pages_of_one_sentence(tmp_path: Path) -> None:
    made, pages = _pages(AtlasSource(preset="atlas-toy"), tmp_path)
    assert made.pages == len(pages) == 200
    asked = {
        page.url: q for q in AtlasSource(preset="atlas-toy").questions() for page in q.evidence
    }
    for page in pages:
        (version,) = page.versions
        assert len(version.text.split()) == 6
        assert asked[page.url].answers[0] in version.text.split()


def test_a_cut_toy_world_asks_for_its_own_pages() -> None:
    source = AtlasSource(10, preset="atlas-toy")
    assert len(list(crawl(source))) == len(list(source.questions())) == 10


@pytest.mark.slow
def test_the_largest_world_has_no_address_twice() -> None:
    seen: set[str] = set()
    source = AtlasSource(MAX_SIZE, preset="atlas-demo")
    for shard in source.shards():
        found = {c.url for c in source.read(shard) if isinstance(c, Capture) and c.status == 200}
        assert not found & seen
        seen |= found
