"""Rules about files: sizes, names of machines, words that do not belong here."""

from __future__ import annotations

import re
from pathlib import Path

from tests.conftest import ROOT

LONGEST_FILE = 400
LARGEST_FILE = 1 << 20
TEXT = {".py", ".md", ".toml", ".txt", ".yaml", ".yml", ".sh", ".html", ".css", ".js", ".tsv", ""}
MACHINE_PATH = re.compile(r"/(?:work|farm|tmp|root|home)/[A-Za-z0-9_.-]+")
EMOJI = re.compile("[\U0001f300-\U0001faff\u2705\u274c\u2728]")
HISTORY = re.compile(
    r"\b(?:TODO|FIXME|XXX|previously|no longer|used to be|as of this commit|issue #?\d+)\b"
)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.suffix in TEXT else ""


def test_source_files_are_short(sources: list[Path]) -> None:
    long = {
        str(path.relative_to(ROOT)): count
        for path in sources
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > LONGEST_FILE
    }
    assert long == {}


def test_no_large_files(tracked: list[Path]) -> None:
    assert [path for path in tracked if path.stat().st_size > LARGEST_FILE] == []


def test_no_paths_of_one_machine(tracked: list[Path]) -> None:
    found = [
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path in tracked
        if path.relative_to(ROOT).parts[0] != "tests"
        for match in MACHINE_PATH.finditer(_text(path))
    ]
    assert found == []


def test_no_emoji_outside_test_data(tracked: list[Path]) -> None:
    found = [
        path
        for path in tracked
        if path.relative_to(ROOT).parts[0] != "tests" and EMOJI.search(_text(path))
    ]
    assert found == []


def test_code_and_docs_describe_the_present(tracked: list[Path]) -> None:
    found = [
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path in tracked
        if path.relative_to(ROOT).parts[0] != "tests" and path.name != "CHANGELOG.md"
        for match in HISTORY.finditer(_text(path))
    ]
    assert found == []


def test_every_package_is_typed(sources: list[Path]) -> None:
    packages = {path.relative_to(ROOT).parts[0] for path in sources}
    assert all((ROOT / name / "py.typed").is_file() for name in packages)


def test_tests_are_at_least_as_long_as_the_source(sources: list[Path]) -> None:
    def lines(paths: list[Path]) -> int:
        return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)

    tests = sorted((ROOT / "tests").rglob("*.py"))
    assert lines(tests) >= lines(sources)
