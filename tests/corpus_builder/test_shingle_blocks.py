from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from corpus_builder import snapshot as snapshots
from corpus_builder.shingle_blocks import ShingleSets, ShingleTask, write_block, write_shingles
from corpus_builder.snapshot import blocks_of, read_pages
from tests.corpus_builder.samples import drafts, snapshot_of
from world_core.shingles import Shingler


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return three blocks of ten pages with two versions; one version has no text."""
    items = drafts(10, versions=2)
    items[3] = replace(items[3], text="")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshots, "BLOCK_PAGES", 4)
        _, folder = snapshot_of(tmp_path_factory.mktemp("pages"), items)
    return blocks_of(folder)


def made(pages: list[Path], folder: Path, **changes: object) -> ShingleSets:
    settings: dict[str, object] = {"input_digest": "d", "workers": 1, "tell": lambda count: None}
    return write_shingles(pages, folder, **(settings | changes))  # type: ignore[arg-type]


def test_every_version_has_its_shingles(pages: list[Path], tmp_path: Path) -> None:
    told: list[int] = []
    sets = made(pages, tmp_path, tell=told.append)
    shingler = Shingler()
    wanted = [
        (number, shingler.shingles(version.text))
        for number, page in enumerate(read_pages(pages))
        for version in page.versions
    ]
    assert len(pages) == 3
    assert sets.count == len(wanted) == sum(told) == 20
    for version, ((page, shingles), found) in enumerate(zip(wanted, sets.every(), strict=True)):
        assert sets.pages[version] == page
        assert sets.sizes[version] == shingles.size
        assert np.array_equal(found, shingles)
        assert np.array_equal(sets.of(version), shingles)
    assert 0 in sets.sizes


def test_workers_leave_no_trace(pages: list[Path], tmp_path: Path) -> None:
    made(pages, tmp_path / "one")
    made(pages, tmp_path / "three", workers=3)
    one, three = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        for name in ("one", "three")
    )
    assert len(one) == 6
    assert one == three


def test_finished_blocks_are_kept_and_others_made_again(pages: list[Path], tmp_path: Path) -> None:
    made(pages, tmp_path)
    whole = {path: path.read_bytes() for path in tmp_path.iterdir()}
    first, second, *_ = sorted(whole)
    for path in (first, second):  # both of the first block
        path.write_bytes(b"kept as it is")
    told: list[int] = []
    (tmp_path / "00001-old.shingles.npy").touch()
    missing = sorted(whole)[3]  # what marks the second block
    missing.unlink()
    with pytest.raises(ValueError, match=r"magic|pickle"):
        made(pages, tmp_path, tell=told.append)
    assert told == [2] * 4
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in whole}
    assert missing.read_bytes() == whole[missing]


def test_another_input_is_made_anew(pages: list[Path], tmp_path: Path) -> None:
    made(pages, tmp_path)
    before = set(tmp_path.iterdir())
    told: list[int] = []
    made(pages, tmp_path, input_digest="e", tell=told.append)
    assert sum(told) == 20
    assert not before & set(tmp_path.iterdir())


def test_a_block_is_marked_last(
    pages: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = ShingleTask(0, pages[0], tmp_path, "d" * 64)
    saved: list[str] = []
    real = Path.replace

    def noted(path: Path, target: Path) -> Path:
        saved.append(target.name)
        return real(path, target)

    monkeypatch.setattr(Path, "replace", noted)
    assert write_block(task, lambda count: None) == 8
    assert saved == [task.shingle_file.name, task.version_file.name]


def test_no_pages_have_no_shingles(tmp_path: Path) -> None:
    sets = made([], tmp_path)
    assert sets.count == 0
    assert list(sets.every()) == []


def test_pages_without_text_have_none(tmp_path: Path) -> None:
    items = [replace(item, text="") for item in drafts(3)]
    _, folder = snapshot_of(tmp_path, items)
    sets = made(blocks_of(folder), tmp_path / "shingles")
    assert sets.sizes.tolist() == [0, 0, 0]
    assert [found.size for found in sets.every()] == [0, 0, 0]
