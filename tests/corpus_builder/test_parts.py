from __future__ import annotations

from collections import Counter
from pathlib import Path

from corpus_builder.capture import Draft, Loss
from corpus_builder.parts import PartWriter, drop_other_parts, whole_parts
from corpus_builder.rows import read_rows
from corpus_builder.snapshot import LISTED_LOSSES
from world_core import urls


def draft(number: int, time: int = 0) -> Draft:
    url = f"https://s.example/{number}"
    return Draft(url, url, time, "f", number, text="abc")


def write(
    folder: Path, shard: int, first: int, count: int, *, last: bool, digest: str = "d"
) -> str:
    writer = PartWriter(folder, shard, first, digest)
    for number in range(first, first + count):
        writer.add(draft(number))
    writer.commit(last=last)
    return writer.facts.name


def test_a_part_is_sorted_and_says_what_it_holds(tmp_path: Path) -> None:
    writer = PartWriter(tmp_path, 3, 10, "d")
    found: list[Draft | Loss] = [
        draft(1, 9),
        Loss("f", 2, "bad"),
        draft(2),
        Loss("f", 3, "hm", note=True),
        draft(1, 4),
    ]
    for item in found:
        writer.add(item)
    writer.commit(last=True)
    assert not whole_parts(tmp_path, 3, "d")  # it begins at item 10, those before are missing
    rows = list(read_rows(tmp_path / f"{writer.facts.name}.jsonl.zst"))
    orders = [tuple(row[:4]) for row in rows if isinstance(row, list)]
    assert orders == sorted(orders)
    assert {order[0] for order in orders} == {urls.page_id(draft(n).key) for n in (1, 2)}
    assert {order[3] for order in orders} == {10, 12, 14}
    assert writer.characters == 9


def test_facts_come_back(tmp_path: Path) -> None:
    writer = PartWriter(tmp_path, 0, 0, "d")
    writer.add(Loss("f", 2, "bad", "u"))
    writer.add(draft(1))
    writer.add(Loss("f", 3, "hm", note=True))
    writer.commit(last=True)
    (part,) = whole_parts(tmp_path, 0, "d")
    assert part == writer.facts
    assert part.lost == Counter(bad=1)
    assert part.noted == Counter(hm=1)
    assert part.losses == [Loss("f", 2, "bad", "u"), Loss("f", 3, "hm", note=True)]
    assert part.balanced()
    part.drafts += 1
    assert not part.balanced()


def test_all_losses_are_counted_and_the_first_listed(tmp_path: Path) -> None:
    writer = PartWriter(tmp_path, 0, 0, "d")
    for number in range(LISTED_LOSSES + 5):
        writer.add(Loss("f", number, "bad"))
    assert writer.facts.lost == Counter(bad=LISTED_LOSSES + 5)
    assert len(writer.facts.losses) == LISTED_LOSSES


def test_parts_count_as_far_as_they_follow_each_other(tmp_path: Path) -> None:
    one = write(tmp_path, 0, 0, 2, last=False)
    two = write(tmp_path, 0, 2, 3, last=False)
    write(tmp_path, 0, 7, 1, last=True)
    write(tmp_path, 1, 0, 9, last=True)
    assert [part.name for part in whole_parts(tmp_path, 0, "d")] == [one, two]
    assert whole_parts(tmp_path, 0, "d")[-1].after == 5
    assert not whole_parts(tmp_path, 0, "other")
    assert not whole_parts(tmp_path, 2, "d")


def test_nothing_follows_a_last_part(tmp_path: Path) -> None:
    write(tmp_path, 0, 0, 2, last=True)
    write(tmp_path, 0, 2, 1, last=True)
    assert len(whole_parts(tmp_path, 0, "d")) == 1


def test_a_part_without_marker_does_not_count(tmp_path: Path) -> None:
    name = write(tmp_path, 0, 0, 2, last=True)
    (tmp_path / f"{name}.done.json").unlink()
    assert not whole_parts(tmp_path, 0, "d")


def test_other_parts_are_dropped(tmp_path: Path) -> None:
    keep = write(tmp_path, 0, 0, 2, last=True)
    write(tmp_path, 1, 0, 2, last=True)
    drop_other_parts(tmp_path, {keep})
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"{keep}.done.json",
        f"{keep}.jsonl.zst",
    ]


def test_parts_of_other_settings_do_not_hide_the_rest(tmp_path: Path) -> None:
    write(tmp_path, 0, 1, 2, last=False, digest="old")
    write(tmp_path, 0, 3, 9, last=True, digest="old")
    one = write(tmp_path, 0, 0, 2, last=False)
    two = write(tmp_path, 0, 2, 3, last=True)
    assert [part.name for part in whole_parts(tmp_path, 0, "d")] == [one, two]


def test_a_part_of_an_earlier_reading_does_not_hide_the_rest(tmp_path: Path) -> None:
    write(tmp_path, 0, 3, 9, last=True)
    one = write(tmp_path, 0, 0, 5, last=False)
    two = write(tmp_path, 0, 5, 7, last=True)
    assert [part.name for part in whole_parts(tmp_path, 0, "d")] == [one, two]
