from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.world_core.indexes.sparse_reference import reference_codes, vector
from world_core.errors import BadInputError
from world_core.indexes import sparse_writer
from world_core.indexes.sparse_writer import coded, write_sparse

NAMES = ("tokens", "starts", "passages", "codes", "scales")
weights = st.dictionaries(
    st.integers(0, 60), st.floats(0.0, 4.0, allow_nan=False, width=32), max_size=12
)


@given(weights, st.integers(2, 8), st.integers(0, 5))
def test_codes_are_those_of_the_definition(
    given_weights: dict[int, float], bits: int, top: int
) -> None:
    one = vector(given_weights)

    found = coded(one, bits, top)

    codes, scale = reference_codes(one, bits, top)
    assert dict(zip(found.tokens.tolist(), found.codes.tolist(), strict=True)) == codes
    assert found.scale == scale
    assert (np.diff(found.tokens) > 0).all()


def test_the_heaviest_weights_are_kept_and_ties_go_to_the_lower_token() -> None:
    found = coded(vector({9: 1.0, 3: 0.5, 7: 0.5, 1: 0.5}), 8, 2)

    assert found.tokens.tolist() == [1, 9]
    assert found.codes.tolist() == [128, 255]


def tables(folder: Path) -> list[np.ndarray]:
    return [np.load(folder / f"{name}.npy", allow_pickle=False) for name in NAMES]


@pytest.mark.parametrize("chunk", [1, 2, 100])
def test_postings_are_passages_ascending_by_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(sparse_writer, "CHUNK", chunk)
    rows = [{5: 1.0, 2: 0.5}, {}, {5: 0.2}, {9: 3.0, 5: 3.0, 2: 1.5}]

    summary = write_sparse(tmp_path, map(vector, rows))

    tokens, starts, passages, codes, scales = tables(tmp_path)
    assert tokens.tolist() == [2, 5, 9]
    assert starts.tolist() == [0, 2, 5, 6]
    assert passages.tolist() == [0, 3, 0, 2, 3, 3]
    assert codes.tolist() == [128, 128, 255, 255, 255, 255]
    assert scales.tolist() == [
        np.float32(weight / 255) for weight in (1.0, 0.0, np.float32(0.2), 3.0)
    ]
    assert (summary.passages, summary.postings, summary.bits, summary.top) == (3, 6, 8, 0)
    data = b"".join(table.tobytes() for table in (tokens, starts, passages, codes, scales))
    assert summary.weights_digest == hashlib.sha256(data).hexdigest()


def test_equal_inputs_give_equal_bytes(tmp_path: Path) -> None:
    rows = [vector({token: 1.0 + token for token in range(n)}) for n in range(9)]
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write_sparse(tmp_path / name, rows, bits=4, top=5)

    for name in NAMES:
        one, two = ((tmp_path / run / f"{name}.npy").read_bytes() for run in ("one", "two"))
        assert one == two


@pytest.mark.parametrize(("bits", "top"), [(1, 0), (9, 0), (8, -1)])
def test_settings_out_of_range_are_refused(tmp_path: Path, bits: int, top: int) -> None:
    with pytest.raises(BadInputError, match=f"{bits} bits and the top {top}"):
        write_sparse(tmp_path, [], bits=bits, top=top)
