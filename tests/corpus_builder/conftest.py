"""The world that several tests look at, built once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.corpus_builder.samples import build_small


@pytest.fixture(scope="session")
def small_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the small world under ``worlds/small``; only to be read."""
    root = tmp_path_factory.mktemp("small")
    build_small(root)
    return root
