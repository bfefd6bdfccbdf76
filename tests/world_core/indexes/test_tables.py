from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from world_core.errors import DamagedFileError
from world_core.indexes.tables import best, damaged, mapped


@given(st.lists(st.sampled_from([0.5, 1.0, 2.0, -1.0]), max_size=40), st.integers(0, 50))
def test_the_best_are_those_of_a_full_sort(scores: list[float], k: int) -> None:
    units = np.arange(len(scores), dtype=np.int64)[::-1] * 3
    pairs = sorted(zip(units.tolist(), scores, strict=True), key=lambda pair: (-pair[1], pair[0]))

    found = best(units, np.array(scores, dtype=np.float64), k)

    assert list(zip(found.units.tolist(), found.scores.tolist(), strict=True)) == pairs[:k]


def test_a_table_is_mapped_as_a_plain_array(tmp_path: Path) -> None:
    np.save(tmp_path / "t.npy", np.arange(5), allow_pickle=False)

    table = mapped(tmp_path / "t.npy", np.dtype(np.int64), 1)

    assert type(table) is np.ndarray
    assert not table.flags.writeable
    assert table.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("kind", "axes"), [(np.int32, 1), (np.int64, 2)])
def test_another_kind_or_shape_is_damage(tmp_path: Path, kind: type, axes: int) -> None:
    np.save(tmp_path / "t.npy", np.arange(5), allow_pickle=False)

    with pytest.raises(DamagedFileError, match=r"t\.npy is not a table"):
        mapped(tmp_path / "t.npy", np.dtype(kind), axes)


@pytest.mark.parametrize("content", [None, b"", b"\x93NUMPY", b"no table at all"])
def test_what_cannot_be_read_is_damage(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "t.npy").write_bytes(content)

    with pytest.raises(DamagedFileError, match=r"t\.npy cannot be read") as caught:
        mapped(tmp_path / "t.npy", np.dtype(np.int64), 1)

    assert caught.value.hint


def test_damage_names_the_file() -> None:
    assert damaged(Path("x.npy"), "is odd").sentence == "x.npy is odd."
