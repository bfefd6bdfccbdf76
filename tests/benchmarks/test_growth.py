from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.growth import (
    PARTS,
    Size,
    forget,
    measure,
    report,
    spliced,
    write,
)
from benchmarks.vectors import perturbed
from world_core.analysis import Analyzer
from world_core.encoders.loading import load
from world_core.types import Vectors

TEXTS = (
    "The lighthouse of Norrvik was repaired in 1874 by Ida Brandt.",
    "A ferry crosses the bay of Skarholm since 1901.",
    "The library opened its doors in the year of the great flood.",
)


def documents(analyzer: Analyzer) -> list[dict[str, list[str]]]:
    return [analyzer.document("", text, "en") for text in TEXTS]


def real() -> Vectors:
    return load("tiny", {}).encode_passages(TEXTS)


def size_of(place: Path, passages: int, analyzer: Analyzer) -> Size:
    size = Size(passages, "tantivy", place / str(passages), "auto", 0.0)
    rows = perturbed(real(), passages, 1)
    write(size, analyzer.fields, rows, spliced(documents(analyzer), passages, 1))
    return size


def test_splices_are_made_of_real_terms_and_one_of_their_own() -> None:
    analyzer = Analyzer(["en"])
    known = documents(analyzer)

    made = list(spliced(known, 40, 1))

    assert made[:3] == known
    vocabulary = {term for document in known for term in document["body"]}
    for number, passage in enumerate(made[3:], start=3):
        assert passage["body"][-1] == f"own{number}"
        assert set(passage["body"][:-1]) <= vocabulary
        assert set(passage) == set(known[0])
    assert made == list(spliced(known, 40, 1))
    assert made[3:] != list(spliced(known, 40, 2))[3:]
    assert list(spliced(known, 20, 1)) == made[:20]


def test_both_sizes_are_asked_in_turn_and_reported(tmp_path: Path) -> None:
    analyzer, encoder = Analyzer(["en"]), load("tiny", {})
    sizes = [size_of(tmp_path, passages, analyzer) for passages in (30, 60)]

    measure(sizes, TEXTS, analyzer, encoder)

    for size in sizes:
        assert size.tier == "flat"
        assert set(size.wall) == set(size.cpu) == set(PARTS)
        assert all(len(spans) == len(TEXTS) for spans in (*size.wall.values(), *size.cpu.values()))
        parts = np.sum([size.wall[part] for part in PARTS[:-1]], axis=0)
        assert np.allclose(parts, size.wall["hybrid"])
        assert size.line().startswith(f"| {size.passages} | tantivy | flat |")
        assert size.line().count("|") == 8 + len(PARTS)
    assert report(sizes)


def test_the_bar_is_told_where_there_are_sizes_to_compare(tmp_path: Path) -> None:
    base = Size(100_000, "tantivy", tmp_path, "flat", 0.0)
    base.wall = base.cpu = {part: [0.010] for part in PARTS}
    near, far = (Size(1_000_000, "tantivy", tmp_path, "ivf", 0.0) for _ in range(2))
    near.wall = near.cpu = {part: [0.014] for part in PARTS}
    far.wall = far.cpu = {part: [0.016] for part in PARTS}

    assert report([base, near])
    assert not report([base, far])
    assert report([base])


def test_a_file_can_be_forgotten_and_is_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"content")

    forget(path)

    assert path.read_bytes() == b"content"
