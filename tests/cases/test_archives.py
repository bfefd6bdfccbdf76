"""Archive input, and packages that want to write elsewhere: RB-001 to RB-008, RB-055, RB-058."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases.worlds import HOSTS, HTML, Built, Served, built

pytestmark = pytest.mark.shared

FERRY, LIGHT, LIBRARY = "ferry", "lighthouse", "library"
WORDS = {FERRY: "212 passengers", LIGHT: "built in 1874", LIBRARY: "48,200 volumes"}


def host_of(name: str) -> str:
    return HOSTS[name].decode()


def present(served: Served, world: str, host: str) -> list[str]:
    """Return which of the three pages are there, each whole and with its own text."""
    found = []
    for name, words in WORDS.items():
        answer = served.fetch(world, f"https://{host}/{name}")
        if answer["outcome"] == "ok":
            text = str(answer["text"])
            assert text.count(words) == 3, text
            found.append(name)
        else:
            assert answer["outcome"] == "not_in_world"
    return found


def losses(build: Built, origin: str) -> list[tuple[int, str]]:
    return [(offset, reason) for name, offset, reason in build.losses if name == origin]


def notes(build: Built, origin: str) -> list[str]:
    return [reason for name, _, reason in build.notes if name.startswith(origin)]


def test_rb_001_a_cut_archive_gives_its_whole_pages_only(
    served: Served, builds: dict[str, Built]
) -> None:
    cut = builds["cut"]
    assert cut.code == 3
    assert cut.report["status"] == "finished with losses"
    assert cut.count("pages") == 2
    assert cut.losses == [("truncated-tail.warc.gz", 761, "cut short")]
    assert present(served, "cut", "pages.example") == [FERRY, LIGHT]


def test_rb_002_reading_goes_on_after_a_damaged_member(
    served: Served, builds: dict[str, Built]
) -> None:
    assert losses(builds["crawl"], "corrupt-middle.warc.gz") == [(380, "damaged")]
    assert present(served, "crawl", "pages.example") == [FERRY, LIBRARY]


def test_rb_003_a_record_without_address_is_skipped(
    served: Served, builds: dict[str, Built]
) -> None:
    name = "no-target-uri.warc"
    assert losses(builds["crawl"], name) == [(817, "no URI")]
    assert present(served, "crawl", host_of(name)) == [FERRY, LIBRARY]


@pytest.mark.parametrize("name", ["no-blank-line-between.warc", "whole-file-gzip.warc.gz"])
def test_rb_004_and_006_odd_framing_costs_no_page(
    name: str, served: Served, builds: dict[str, Built]
) -> None:
    assert losses(builds["crawl"], name) == []
    assert present(served, "crawl", host_of(name)) == [FERRY, LIGHT, LIBRARY]
    if name.endswith(".gz"):
        assert notes(builds["crawl"], name) == ["several records in one gzip member"]


def test_rb_005_a_huge_length_swallows_nothing(served: Served, builds: dict[str, Built]) -> None:
    name = "content-length-huge.warc"
    assert losses(builds["crawl"], name) == [(817, "cut short")]
    assert present(served, "crawl", host_of(name)) == [FERRY, LIBRARY]


def test_rb_005_an_empty_archive_needs_the_flag(
    inputs: Path, builds: dict[str, Built], tmp_path: Path
) -> None:
    assert builds["empty"].code == 0
    assert builds["empty"].count("pages") == 0
    assert builds["empty"].notes == [("empty.warc", 0, "empty file")]
    refused = built(tmp_path, "empty", [inputs / "empty.warc"])
    assert refused.code == 2
    assert "--allow-empty" in refused.errors
    assert not refused.folder.exists()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("not-a-warc.warc", "is not a WARC"),
        ("wacz-hash-mismatch.wacz", "--unverified"),
        ("wacz-zip-slip.wacz", "leads out of it"),
        ("wacz-symlink.wacz", "is a link"),
    ],
)
def test_rb_005_007_055_what_is_refused_leaves_nothing(
    name: str, said: str, inputs: Path, tmp_path: Path
) -> None:
    work = tmp_path / "a" / "b" / "c"
    refused = built(work, "refused", [inputs / name])
    assert refused.code == 2
    assert said in refused.errors
    assert name in refused.errors
    assert "Traceback" not in refused.errors
    assert not refused.folder.exists()
    assert [path for path in tmp_path.rglob("*") if "escaped" in path.name] == []
    assert [path for path in tmp_path.rglob("*") if path.is_symlink()] == []
    assert not Path("/abs-escaped.txt").exists()


@pytest.mark.slow
def test_rb_007_a_mismatch_can_be_accepted(inputs: Path, tmp_path: Path) -> None:
    taken = built(tmp_path, "taken", [inputs / "wacz-hash-mismatch.wacz"], "--unverified")
    assert taken.code in (0, 3)
    assert taken.count("pages") == 3


def test_rb_007_a_package_without_lists_gives_its_pages(
    served: Served, builds: dict[str, Built]
) -> None:
    name = "wacz-no-index-no-pages.wacz"
    assert losses(builds["crawl"], name) == []
    assert notes(builds["crawl"], name) == ["package without index", "package without page list"]
    assert present(served, "crawl", host_of(name)) == [FERRY, LIGHT, LIBRARY]


def test_rb_008_unchanged_captures_are_one_page(served: Served, builds: dict[str, Built]) -> None:
    page = served.fetch("crawl", "https://pages.example/rota")
    assert page["valid_from"] == "2026-01-15T08:00:00Z"
    assert str(page["text"]).count(WORDS[FERRY]) == 3
    assert notes(builds["crawl"], "revisit-chain-28.warc.gz") == ["unchanged"] * 28


def test_rb_014_a_redirect_loop_is_a_definite_miss(
    served: Served, builds: dict[str, Built]
) -> None:
    host = host_of("redirect-loop-slash.warc")
    for path in ("hall", "hall/"):
        url = f"https://{host}/{path}"
        assert served.fetch("crawl", url)["outcome"] == "not_in_world"
        assert served.reads("crawl", f"/{url}").status == 422
    told = builds["crawl"].report["notes"]
    assert isinstance(told, dict)
    assert told["redirect loop"] == 2
    assert present(served, "crawl", host) == [FERRY, LIBRARY]


def test_rb_058_bodies_that_grow_stop_at_the_cap(served: Served, builds: dict[str, Built]) -> None:
    reasons = [reason for _, reason in losses(builds["crawl"], "made.warc")]
    assert reasons.count("too large") == 4
    for coding in ("gzip", "deflate", "br", "zstd"):
        assert served.fetch("crawl", f"https://made.example/zeros-{coding}")["outcome"] == (
            "not_in_world"
        )


def test_rule_5_no_input_takes_much_memory(builds: dict[str, Built]) -> None:
    idle = builds["empty"].worker_mib
    assert builds["crawl"].worker_mib < idle + 200
    assert builds["cut"].worker_mib < idle + 50


def test_the_control_has_three_pages_and_no_losses(inputs: Path, tmp_path: Path) -> None:
    good = built(tmp_path, "good", [inputs / "good-3.warc.gz"])
    assert good.code == 0
    assert good.count("pages") == 3
    assert good.losses == []


@pytest.mark.slow
def test_rule_6_the_same_input_gives_the_same_world(
    crawl_inputs: list[Path], builds: dict[str, Built], tmp_path: Path
) -> None:
    again = built(tmp_path, "crawl", crawl_inputs, *HTML, "--workers", "4")
    assert again.world_id == builds["crawl"].world_id
    assert again.losses == builds["crawl"].losses
