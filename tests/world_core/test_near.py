"""Near-duplicates as they lie in a world's folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from world_core.errors import DamagedFileError
from world_core.near import FOLDER, NearFile, write_near

Held = list[dict[int, float]]
held = st.integers(1, 12).flatmap(
    lambda count: st.lists(
        st.dictionaries(st.integers(0, count - 1), st.floats(0.25, 1.0, width=32)),
        min_size=count,
        max_size=count,
    )
)
SAMPLE: Held = [{1: 1.0, 3: 0.75}, {}, {0: 0.5}, {0: 1.0, 1: 1.0, 2: 0.625}]


def write(folder: Path, versions: Held) -> None:
    counts = [len(holders) for holders in versions]
    pairs = [pair for holders in versions for pair in sorted(holders.items())]
    write_near(
        folder,
        {
            "starts": np.concatenate(([0], np.cumsum(counts))),
            "others": np.array([other for other, _ in pairs], np.int64),
            "shares": np.array([share for _, share in pairs], np.float64),
        },
    )


@given(held)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_written_is_read(tmp_path: Path, versions: Held) -> None:
    write(tmp_path, versions)
    near = NearFile.open(tmp_path)
    for version, expected in enumerate(versions):
        others, shares = near.holders(version)
        assert (others.dtype.name, shares.dtype.name) == ("int32", "float32")
        assert others.tolist() == sorted(expected)
        assert shares.tolist() == [expected[other] for other in sorted(expected)]
    assert near.version_count == len(versions)
    assert near.pair_count == sum(map(len, versions))
    assert near.held_count == sum(map(bool, versions))


def test_a_version_that_is_none_has_no_holders(tmp_path: Path) -> None:
    write(tmp_path, SAMPLE)
    near = NearFile.open(tmp_path)
    for version in (-1, 4, 1000):
        assert near.holders(version)[0].size == near.holders(version)[1].size == 0


def test_without_files_nothing_is_known(tmp_path: Path) -> None:
    near = NearFile.open(tmp_path)
    assert (near.version_count, near.pair_count, near.held_count) == (0, 0, 0)
    assert near.holders(0)[0].size == 0


@pytest.mark.parametrize("name", ["starts", "others", "shares"])
def test_a_damaged_file_is_named(tmp_path: Path, name: str) -> None:
    write(tmp_path, SAMPLE)
    path = tmp_path / FOLDER / f"{name}.npy"
    whole = path.read_bytes()
    for content in (b"", whole[:-1], whole[:90], b"x" * len(whole)):
        path.write_bytes(content)
        with pytest.raises(DamagedFileError, match=f"{name}.npy"):
            NearFile.open(tmp_path)
    path.unlink()
    with pytest.raises(DamagedFileError, match=f"{name}.npy.*build the world again"):
        NearFile.open(tmp_path)


@pytest.mark.parametrize(
    ("name", "values", "complaint"),
    [
        ("starts", np.array([0, 2, 2, 3], np.int32), r"starts\.npy.* is not a table of int64"),
        ("starts", np.array([], np.int64), r"starts\.npy.*does not fit"),
        ("starts", np.array([1, 2, 2, 3, 6], np.int64), r"starts\.npy.*does not fit"),
        ("starts", np.array([0, 2, 2, 3, 7], np.int64), r"starts\.npy.*does not fit"),
        ("starts", np.array([0, 3, 2, 3, 6], np.int64), r"starts\.npy.*does not fit"),
        ("others", np.array([1, 3, 0, 0, 1, 4], np.int32), r"others\.npy.*leaves the 4"),
        ("others", np.array([1, 3, -1, 0, 1, 2], np.int32), r"others\.npy.*leaves the 4"),
        ("others", np.array([3, 1, 0, 0, 1, 2], np.int32), r"others\.npy.*does not ascend"),
        ("others", np.array([1, 3, 0, 0, 0, 2], np.int32), r"others\.npy.*does not ascend"),
        (
            "others",
            np.array([[1, 3, 0, 0, 1, 2]], np.int32),
            r"others\.npy.* is not a table of int32 with 1 axes",
        ),
        ("shares", np.array([1, 1, 1, 1, 1], np.float32), r"shares\.npy.*5 values for 6"),
        ("shares", np.array([1, 1, 0, 1, 1, 1], np.float32), r"shares\.npy.*range"),
        ("shares", np.array([1, 1, 2, 1, 1, 1], np.float32), r"shares\.npy.*range"),
        ("shares", np.array([1, 1, np.nan, 1, 1, 1], np.float32), r"shares\.npy.*range"),
    ],
)
def test_files_that_do_not_fit_are_refused(
    tmp_path: Path, name: str, values: np.ndarray, complaint: str
) -> None:
    write(tmp_path, SAMPLE)
    np.save(tmp_path / FOLDER / f"{name}.npy", values)
    with pytest.raises(DamagedFileError, match=complaint):
        NearFile.open(tmp_path)
