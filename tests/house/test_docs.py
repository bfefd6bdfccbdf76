"""The pages made from code are current, and the others name what exists."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT


def test_generated_pages_are_current() -> None:
    shown = subprocess.run(
        [sys.executable, "scripts/make_docs.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert shown.returncode == 0, shown.stderr


def _links(path: Path) -> list[str]:
    return re.findall(r"\]\(([^)#:]+)\)", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_links_between_documents_lead_somewhere(name: str) -> None:
    links = _links(ROOT / name)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_readme_names_only_commands_that_exist() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for command in set(re.findall(r"\.venv/bin/([a-z-]+)", text)):
        assert f"\n{command} = " in project
    for script in set(re.findall(r"\bscripts/([a-z]+)", text)):
        assert (ROOT / "scripts" / script).is_file()


def test_the_changelog_has_the_projects_version_or_is_ahead() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## \[([^\]]+)\]", text, re.MULTILINE)
    assert headings
    assert headings[0] == "Unreleased" or headings[0] in (ROOT / "pyproject.toml").read_text()
