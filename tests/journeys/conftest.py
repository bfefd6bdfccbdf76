"""Worlds that several journeys start from; nobody may change them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.journeys.processes import publish


@pytest.fixture(scope="session")
def plain_world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the version folder of a small world that needs neither Java nor weights."""
    out = tmp_path_factory.mktemp("plain")
    return publish(out, "plain", "--lexical", "tantivy", "--encoder", "tiny")


@pytest.fixture(scope="session")
def full_world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the version folder of a small world as the builder makes it unless told otherwise."""
    return publish(tmp_path_factory.mktemp("full"), "full")
