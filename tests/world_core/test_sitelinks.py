"""Sitelinks as they lie in a world's folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from world_core.errors import DamagedFileError
from world_core.sitelinks import FOLDER, SiteLinks, is_start, write_sitelinks
from world_core.urls import canonical


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://a.example", True),
        ("https://a.example/", True),
        ("https://a.example/guide/", True),
        ("https://a.example/guide/index.html", True),
        ("https://a.example/guide/INDEX.HTM", True),
        ("https://a.example/guide", False),
        ("https://a.example/guide.html", False),
        ("https://a.example/?page=2", False),
        ("https://a.example/guide/?page=2", False),
        ("https://a.example/index.html.bak", False),
    ],
)
def test_starts_are_known_by_their_address(url: str, expected: bool) -> None:
    assert is_start(canonical(url)) is expected


@given(st.dictionaries(st.integers(0, 500), st.lists(st.integers(0, 900), max_size=24)))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_written_is_read(tmp_path: Path, targets: dict[int, list[int]]) -> None:
    write_sitelinks(tmp_path, targets)
    found = SiteLinks.open(tmp_path)
    assert all(found.of(version) == pages for version, pages in targets.items())
    assert all(found.of(version) == [] for version in range(510) if version not in targets)


@pytest.mark.parametrize("name", ["versions", "starts", "targets"])
def test_a_damaged_file_is_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / FOLDER / f"{name}.npy"
    write_sitelinks(tmp_path, {1: [2, 3], 4: [5]})
    whole = path.read_bytes()
    for content in (b"", whole[:-1], whole[:90], b"x" * len(whole)):
        path.write_bytes(content)
        with pytest.raises(DamagedFileError, match=f"{name}.npy"):
            SiteLinks.open(tmp_path)
    path.unlink()
    with pytest.raises(DamagedFileError, match=f"{name}.npy.*build the world again"):
        SiteLinks.open(tmp_path)


def test_files_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    write_sitelinks(tmp_path, {1: [2, 3], 4: [5]})
    for name, values in (
        ("versions", np.array([1], np.int32)),
        ("versions", np.array([1, 4], np.int64)),
        ("targets", np.array([2], np.int32)),
        ("targets", np.array([[2, 3, 5]], np.int32)),
        ("starts", np.array([1, 2, 3], np.int64)),
    ):
        write_sitelinks(tmp_path, {1: [2, 3], 4: [5]})
        np.save(tmp_path / FOLDER / f"{name}.npy", values)
        with pytest.raises(DamagedFileError, match=r"starts\.npy|is not a table"):
            SiteLinks.open(tmp_path)
