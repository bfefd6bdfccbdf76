"""The tracked files of the project, for the checks of house rules."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT

PACKAGES = ("world_core", "world_server", "world_client", "corpus_builder")


@pytest.fixture(scope="session")
def tracked() -> list[Path]:
    """Return every file git knows or would add, that exists."""
    shown = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    names = shown.stdout.decode().split("\0")
    return sorted(ROOT / name for name in names if name and (ROOT / name).is_file())


@pytest.fixture(scope="session")
def sources(tracked: list[Path]) -> list[Path]:
    """Return the Python files of the packages."""
    return [
        path
        for path in tracked
        if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in PACKAGES
    ]
