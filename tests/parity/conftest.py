"""One world for all parity tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import build


@pytest.fixture(scope="session")
def atlas_world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the named folder of a published atlas world with real vectors."""
    out = tmp_path_factory.mktemp("worlds")
    shown = build("--recipe", "atlas-demo", "--name", "parity", "--out", str(out))
    assert shown.returncode == 0, shown.stdout + shown.stderr
    return out / "parity"
