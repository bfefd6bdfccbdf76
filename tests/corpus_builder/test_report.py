from __future__ import annotations

import json
from pathlib import Path

import pytest

from corpus_builder.capture import Loss
from corpus_builder.report import LOSSES_EXIT, Report, StageReport, peak_memory


def full() -> Report:
    return Report(
        "w",
        world_id="ab" * 32,
        folder="worlds/w",
        stages=[StageReport("read", 10, 8, {"bad": 2}, "records", 10, 2.0)],
        losses={"bad": 2},
        notes={"hm": 1},
        listed=[
            Loss("f.warc", 77, "bad", "https://a.example/"),
            Loss("f.warc", 90, "hm", note=True),
            Loss("f.warc", 99, "bad"),
        ],
        counts={"pages": 4, "versions": 5, "passages": 1234},
        bytes_by_part={"pages.sqlite": 100, "lexical": 101},
    )


def test_losses_give_an_exit_code_of_their_own() -> None:
    assert full().exit_code == LOSSES_EXIT == 3
    assert Report("w", notes={"hm": 1}).exit_code == 0


def test_stages_add_up_or_say_so() -> None:
    stage = full().stages[0]
    assert stage.balanced
    assert stage.rate == 5.0
    assert StageReport("s", 3, 2).balanced is False
    assert StageReport("s", 3, 3).rate == 0.0


def test_near_duplicates_are_told_if_they_were_sought() -> None:
    report = full()
    assert not any("Near" in line for line in report.lines())
    report.near = {"pairs": 1234, "held": 56, "skipped": 7}
    (line,) = [line for line in report.lines() if "Near" in line]
    assert all(number in line for number in ("1,234 pairs", "56 versions", "7 shingles"))
    assert report.as_json()["near"] == report.near


def test_the_file_holds_everything(tmp_path: Path) -> None:
    full().write(tmp_path / "r.json")
    saved = json.loads((tmp_path / "r.json").read_text())
    assert saved["status"] == "finished with losses"
    assert saved["bytes"] == 201
    assert saved["bytes_a_page"] == 50
    assert saved["stages"][0]["rate"] == 5.0
    assert saved["stages"][0]["balanced"] is True
    assert saved["losses"] == {"bad": 2}
    assert saved["listed"][0] == {
        "origin": "f.warc",
        "offset": 77,
        "reason": "bad",
        "url": "https://a.example/",
        "note": False,
    }
    assert saved["peak_memory_mib"]["build"] > 0


def test_half_a_surrogate_does_not_stop_a_report(tmp_path: Path) -> None:
    report = Report("w", listed=[Loss("f\udc80", 1, "bad")])
    report.write(tmp_path / "r.json")
    assert json.loads((tmp_path / "r.json").read_text())["listed"][0]["origin"] == "f?"


def test_an_empty_world_has_no_bytes_a_page() -> None:
    assert Report("w").as_json()["bytes_a_page"] == 0
    assert Report("w").as_json()["status"] == "finished"


@pytest.mark.parametrize(
    "line",
    [
        "World w, id abababababab",
        "4 pages, 5 versions, 1,234 passages",
        "Lost: 2 x bad",
        "  f.warc at 77: bad https://a.example/",
        "  f.warc at 99: bad",
        "Noted: 1 x hm",
        "Finished with losses: 2 pages or records were left out.",
        "Serve it: world-server serve worlds/w",
    ],
)
def test_lines_say_what_a_person_wants_to_know(line: str) -> None:
    assert line in full().lines()


def test_notes_are_not_listed_as_losses() -> None:
    assert not any("at 90" in line for line in full().lines())


def test_peak_memory_is_in_mib() -> None:
    assert 5 < peak_memory()["build"] < 100_000
