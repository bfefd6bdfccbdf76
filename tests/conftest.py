"""Fixtures every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent


# How long an example takes says how busy the machine is, not whether the code is right.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """Return the folder of evaluation data; the test is skipped where there is none."""
    folder = Path(os.environ.get("SEARCHWORLD_SHARED", ROOT.parent / "shared")).resolve()
    if not (folder / "data").is_dir():
        pytest.skip(f"no evaluation data: {folder} has no data folder (set SEARCHWORLD_SHARED)")
    return folder


@pytest.fixture(scope="session")
def case_inputs(shared_dir: Path) -> Path:
    """Return the folder of the cases' inputs."""
    folder = shared_dir / "cases" / "inputs"
    if not folder.is_dir():
        pytest.skip(f"no case inputs: {folder} is missing")
    return folder
