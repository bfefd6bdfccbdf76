from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from corpus_builder import stages
from corpus_builder.capture import Capture, Draft, Loss
from corpus_builder.cpu_limit import ENDED_BY
from corpus_builder.errors import BadSourceError, StageFailedError
from corpus_builder.extract import ExtractSettings
from corpus_builder.parts import whole_parts
from corpus_builder.rows import read_rows
from corpus_builder.sources.html_folder import HtmlFolderSource
from corpus_builder.sources.jsonl import JsonlSource
from corpus_builder.stages import (
    PageExtractor,
    ReadFacts,
    ReadTask,
    draft_of,
    read_shard,
    read_shards,
)
from tests.corpus_builder.fakes import Broken, Numbers, Stops, Trouble

LIMIT = 0.3


def run(
    folder: Path, source: Numbers, extractor: Trouble | None = None, workers: int = 1
) -> tuple[ReadFacts, str]:
    return read_shards(
        [source],
        folder,
        extractor=extractor or Trouble({}),
        cpu_seconds=LIMIT,
        workers=workers,
        tell=lambda count: None,
    )


def addresses(facts: ReadFacts) -> set[str]:
    found = set()
    for part in facts.parts:
        for row in read_rows(part):
            assert isinstance(row, list)
            draft = row[4]
            assert isinstance(draft, dict)
            found.add(draft["key"])
    return found


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_every_item_is_a_draft_or_a_counted_loss(tmp_path: Path) -> None:
    facts, _ = run(tmp_path / "d", Numbers(tmp_path / "in"))
    assert (facts.items, facts.drafts) == (50, 46)
    assert facts.lost == Counter(ninth=4)
    assert [(loss.origin, loss.offset) for loss in facts.losses] == [
        ("0", 9),
        ("0", 19),
        ("1", 9),
        ("1", 19),
    ]
    assert addresses(facts) == {
        f"https://{s}.example/{n}" for s in (0, 1) for n in range(25) if n % 10 != 9
    }


def test_the_number_of_processes_leaves_no_trace(tmp_path: Path) -> None:
    one = run(tmp_path / "one", Numbers(tmp_path / "in"))
    two = run(tmp_path / "two", Numbers(tmp_path / "in"), workers=2)
    assert one[1] == two[1]
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_a_finished_shard_is_not_read_again(tmp_path: Path) -> None:
    run(tmp_path / "d", Numbers(tmp_path / "in"))
    before = contents(tmp_path / "d")
    told: list[int] = []
    facts, _ = read_shards(
        [Numbers(tmp_path / "in")],
        tmp_path / "d",
        extractor=Trouble({}),
        cpu_seconds=LIMIT,
        workers=1,
        tell=told.append,
    )
    assert told == []
    assert facts.items == 50
    assert contents(tmp_path / "d") == before


def test_other_settings_or_inputs_are_read_again(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    source = Numbers(tmp_path / "in")
    _, first = run(tmp_path / "d", source)
    _, second = run(tmp_path / "d", source, Trouble({"x": "raise"}))
    (tmp_path / "in" / "file").write_text("more")
    _, third = run(tmp_path / "d", source, Trouble({"x": "raise"}))
    assert len({first, second, third}) == 3


def test_parts_of_dropped_shards_go(tmp_path: Path) -> None:
    run(tmp_path / "d", Numbers(tmp_path / "in", shard_count=3))
    facts, _ = run(tmp_path / "d", Numbers(tmp_path / "in", shard_count=1))
    assert facts.items == 25
    assert len(list((tmp_path / "d").iterdir())) == 2


def task(tmp_path: Path, source: Numbers, extractor: Trouble) -> ReadTask:
    shard = source.shards()[0]
    return ReadTask(0, source, shard, "d", tmp_path, extractor, LIMIT)


def test_reading_goes_on_after_the_last_whole_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, "PART_DRAFTS", 4)
    whole = tmp_path / "whole"
    broken = tmp_path / "broken"
    whole.mkdir()
    broken.mkdir()
    read_shard(task(whole, Numbers(tmp_path / "in"), Trouble({})), print)
    stops = Stops(tmp_path / "in")
    with pytest.raises(KeyboardInterrupt):
        read_shard(task(broken, stops, Trouble({})), print)
    assert 0 < len(whole_parts(broken, 0, "d")) < len(whole_parts(whole, 0, "d"))
    read_shard(task(broken, Numbers(tmp_path / "in"), Trouble({})), print)
    assert contents(broken) == contents(whole)


def here(function: Callable[..., int], tasks: Sequence[ReadTask], **_: object) -> list[int]:
    """Stand in for processes, so that the sizes of parts set by a test hold."""
    return [function(task, lambda count: None) for task in tasks]


def test_parts_of_other_settings_cost_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, "run_tasks", here)
    monkeypatch.setattr(stages, "PART_DRAFTS", 4)
    whole = run(tmp_path / "whole", Numbers(tmp_path / "in"))
    monkeypatch.setattr(stages, "PART_DRAFTS", 3)
    run(tmp_path / "d", Numbers(tmp_path / "in"), Trouble({"x": "raise"}))
    monkeypatch.setattr(stages, "PART_DRAFTS", 4)
    facts, digest = run(tmp_path / "d", Numbers(tmp_path / "in"))
    assert (facts.items, facts.drafts) == (50, 46)
    assert digest == whole[1]
    assert contents(tmp_path / "d") == contents(tmp_path / "whole")


def test_a_shard_that_is_not_read_to_its_end_stops_the_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def first_only(function: object, tasks: Sequence[ReadTask], **_: object) -> list[int]:
        return [read_shard(tasks[0], print)]

    monkeypatch.setattr(stages, "run_tasks", first_only)
    with pytest.raises(StageFailedError, match="only 0 items were read"):
        run(tmp_path / "d", Numbers(tmp_path / "in"))


CAPTURE = Capture("https://0.example/1", 5, "file", 77, text="x")


def test_a_page_that_raises_is_a_loss() -> None:
    found = draft_of(CAPTURE, Trouble({CAPTURE.url: "raise"}), LIMIT)
    assert found == Loss("file", 77, "extractor failed: KeyError", CAPTURE.url)


@pytest.mark.parametrize("what", ["spin", "swallow"])
def test_a_page_over_the_limit_is_a_loss(what: str) -> None:
    found = draft_of(CAPTURE, Trouble({CAPTURE.url: what}), 0.1)
    assert found == Loss("file", 77, "over 0.1 s of CPU time", CAPTURE.url)


def test_a_good_page_is_a_draft() -> None:
    assert isinstance(draft_of(CAPTURE, Trouble({}), LIMIT), Draft)


def test_a_page_that_kills_its_process_is_lost_alone(tmp_path: Path) -> None:
    table = {"https://0.example/3": "die", "https://1.example/24": "die"}
    facts, _ = run(tmp_path / "d", Numbers(tmp_path / "in"), Trouble(table))
    assert facts.lost == {"ninth": 4, "the process reading it died of signal 9": 2}
    assert facts.drafts == 44
    assert table.keys().isdisjoint(addresses(facts))


def test_a_process_that_dies_once_costs_nothing(tmp_path: Path) -> None:
    trouble = Trouble({"https://0.example/3": "die once"}, tmp_path / "died")
    facts, _ = run(tmp_path / "d", Numbers(tmp_path / "in"), trouble)
    assert (tmp_path / "died").exists()
    assert facts.lost == {"ninth": 4}


def test_a_page_that_hangs_in_c_is_lost_alone(tmp_path: Path) -> None:
    facts, _ = run(
        tmp_path / "d",
        Numbers(tmp_path / "in", shard_count=1),
        Trouble({"https://0.example/5": "crash in C"}),
    )
    assert facts.lost == {"ninth": 2, "over 0.3 s of CPU time": 1}


def test_a_process_that_ends_by_itself_stops_the_stage(tmp_path: Path) -> None:
    with pytest.raises(StageFailedError, match="exit code 7"):
        run(tmp_path / "d", Numbers(tmp_path / "in"), Trouble({"https://0.example/5": "exit"}))


def test_a_source_that_raises_stops_the_stage_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(StageFailedError, match="ZeroDivisionError: no third") as caught:
        run(tmp_path / "d", Broken(tmp_path / "in"))
    assert str(tmp_path / "in") in caught.value.sentence


def test_a_death_while_reading_stops_the_stage(tmp_path: Path) -> None:
    mourner = stages._Mourner()
    one = replace(task(tmp_path, Numbers(tmp_path / "in"), Trouble({})), skip=((4, "x"),))
    one.mark.write_bytes((4).to_bytes(8, "big"))
    mourner.died(one, -9)
    with pytest.raises(StageFailedError, match="item 4"):
        mourner.died(one, -9)


def test_deaths_before_the_first_page_are_forgiven_twice(tmp_path: Path) -> None:
    mourner = stages._Mourner()
    one = task(tmp_path, Numbers(tmp_path / "in"), Trouble({}))
    for _ in range(2):
        assert mourner.died(one, -9) == one
    with pytest.raises(StageFailedError, match="died 3 times"):
        mourner.died(one, -9)


def test_a_death_for_cpu_time_is_not_tried_again(tmp_path: Path) -> None:
    one = task(tmp_path, Numbers(tmp_path / "in"), Trouble({}))
    one.mark.write_bytes((6).to_bytes(8, "big"))
    assert stages._Mourner().died(one, ENDED_BY).skip == ((6, "over 0.3 s of CPU time"),)


def test_a_part_that_does_not_add_up_stops_the_stage(tmp_path: Path) -> None:
    run(tmp_path / "d", Numbers(tmp_path / "in", shard_count=1))
    marker = next((tmp_path / "d").glob("*.done.json"))
    marker.write_text(marker.read_text().replace('"drafts": 23', '"drafts": 22'))
    with pytest.raises(StageFailedError, match="does not account"):
        run(tmp_path / "d", Numbers(tmp_path / "in", shard_count=1))


def test_fingerprints_see_changes_of_files_and_trees(tmp_path: Path) -> None:
    file = tmp_path / "a" / "file"
    file.parent.mkdir()
    file.write_text("one")
    os.utime(file, ns=(1, 1))
    seen = {stages._fingerprint(file), stages._fingerprint(file.parent)}
    file.write_text("four")
    os.utime(file, ns=(1, 1))
    seen |= {stages._fingerprint(file), stages._fingerprint(file.parent)}
    os.utime(file, ns=(2, 2))
    seen |= {stages._fingerprint(file), stages._fingerprint(file.parent)}
    assert len(seen) == 6
    assert stages._fingerprint(tmp_path / "none") == ""


def parts_of(folder: Path) -> list[tuple[int, int, bool]]:
    return [(part.first, part.after, part.last) for part in whole_parts(folder, 0, "d")]


def test_a_part_is_full_at_a_number_of_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, "PART_CHARACTERS", 10)
    read_shard(task(tmp_path, Numbers(tmp_path / "in"), Trouble({})), print)
    assert parts_of(tmp_path) == [(0, 11, False), (11, 22, False), (22, 25, True)]


def test_a_part_is_full_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "PART_SECONDS", 0.0)
    read_shard(task(tmp_path, Numbers(tmp_path / "in", count=3), Trouble({})), print)
    assert parts_of(tmp_path) == [(0, 1, False), (1, 2, False), (2, 3, False), (3, 3, True)]


def test_a_shard_of_nothing_is_finished_all_the_same(tmp_path: Path) -> None:
    facts, _ = run(tmp_path / "d", Numbers(tmp_path / "in", shard_count=1, count=0))
    assert (facts.items, facts.drafts) == (0, 0)
    assert len(facts.parts) == 1


def test_no_shards_are_no_work(tmp_path: Path) -> None:
    facts, digest = run(tmp_path / "d", Numbers(tmp_path / "in", shard_count=0))
    assert (facts.items, facts.parts) == (0, [])
    assert len(digest) == 64


def test_all_items_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "TOLD_EVERY", 8)
    told: list[int] = []
    read_shard(task(tmp_path, Numbers(tmp_path / "in"), Trouble({})), told.append)
    assert sum(told) == 25


def test_a_refusal_of_a_source_passes_as_it_is(tmp_path: Path) -> None:
    source = JsonlSource([tmp_path / "none.jsonl"])
    with pytest.raises(BadSourceError, match=r"none\.jsonl"):
        read_shards(
            [source],
            tmp_path / "d",
            extractor=Trouble({}),
            cpu_seconds=LIMIT,
            workers=1,
            tell=print,
        )


def test_the_builds_own_extractor_reads_pages() -> None:
    extractor = PageExtractor()
    extractor.prepare()
    body = b"<html><title>Mill</title><body><p>The old mill grinds rye on Mondays.</p></body>"
    page = Capture("https://mill.example/a", 5, "f", 1, body=body)
    found = draft_of(page, extractor, 10.0)
    assert isinstance(found, Draft)
    assert found.title == "Mill"
    assert "grinds rye" in found.text


def test_settings_of_the_extractor_count(tmp_path: Path) -> None:
    strict = PageExtractor(ExtractSettings(least_words=50))
    assert repr(strict) != repr(PageExtractor())
    row = Capture("https://mill.example/a", 5, "f", 1, text="Only four words here.")
    assert isinstance(draft_of(row, strict, 10.0), Loss)
    assert isinstance(draft_of(row, PageExtractor(), 10.0), Draft)


def test_names_that_are_not_utf8_are_read(tmp_path: Path) -> None:
    root = tmp_path / os.fsdecode(b"caf\xe9")
    root.mkdir()
    (root / os.fsdecode(b"th\xe9.html")).write_text("<p>The tea is hot and the cup is blue.</p>")
    facts, digest = read_shards(
        [HtmlFolderSource(root, "https://s.example/")],
        tmp_path / "d",
        extractor=PageExtractor(),
        cpu_seconds=5.0,
        workers=1,
        tell=lambda count: None,
    )
    assert (facts.items, facts.drafts, len(digest)) == (1, 1, 64)
    assert addresses(facts) == {"https://s.example/th%E9.html"}
