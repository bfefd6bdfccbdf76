"""What every lexical engine must do, run over each of them."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import ROOT
from tests.world_core.indexes import lexical_cases as cases
from world_core.errors import BadInputError, DamagedFileError, IndexFailedError
from world_core.indexes.lexical import LexicalIndex
from world_core.types import LexicalField, LexicalQuery, Numbers, as_numbers

COUNT = 1500

STRANGE = [
    "straße",
    "Straße",
    "العربية",
    "हिन्दी",
    "日本",
    "本語",
    "한국",
    "😀",
    "👨‍👩‍👧",
    "a\u0301",
    "á",
    "c++",
    "AND",
    "OR",
    "NOT",
    "body:w1",
    "+w1",
    "-w1",
    '"w1',
    "w1*",
    "w1~2",
    "(w1)",
    "[a",
    "\\",
    "a/b",
    "^2",
    "x" * 64,
    "😀" * 64,
    "\u200bhidden",
    "nul\x00byte",
]

ANSWERS = """
import json, sys
from pathlib import Path
import random
from tests.world_core.indexes import lexical_cases as cases
index = cases.engine(sys.argv[1]).open(Path(sys.argv[2]))
source = random.Random(11)
answers = [index.search(cases.random_query(source), 20) for _ in range(60)]
print(json.dumps([[a.units.tolist(), a.scores.tolist()] for a in answers]))
"""


@pytest.fixture(scope="module", params=cases.PARAMETERS)
def engine(request: pytest.FixtureRequest) -> cases.Engine:
    return cases.engine(request.param)


@pytest.fixture(scope="module")
def folder(engine: cases.Engine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    units = cases.random_units(1, COUNT)
    return engine.build(tmp_path_factory.mktemp("index") / engine.name, units)


@pytest.fixture(scope="module")
def index(engine: cases.Engine, folder: Path) -> Iterator[LexicalIndex]:
    opened = engine.open(folder)
    yield opened
    opened.close()


def ranking(index: LexicalIndex, query: LexicalQuery) -> list[tuple[int, float]]:
    """Return every match, best first, out of the scores of all units."""
    scores = index.score(query, np.arange(index.count))
    order = np.lexsort((np.arange(index.count), -scores))
    return [(int(unit), float(scores[unit])) for unit in order if scores[unit] > 0]


def found(
    index: LexicalIndex, query: LexicalQuery, k: int, allowed: Sequence[int] | None = None
) -> list[tuple[int, float]]:
    """Return what the search finds, with the allowed units given as numbers."""
    bitmap = None
    if allowed is not None:
        bitmap = np.zeros(index.count, dtype=np.bool_)
        bitmap[list(allowed)] = True
    answer = index.search(query, k, bitmap)
    assert answer.units.dtype == np.int64
    assert answer.scores.dtype == np.float64
    return list(zip(answer.units.tolist(), answer.scores.tolist(), strict=True))


def test_engine_names_itself_and_counts(engine: cases.Engine, index: LexicalIndex) -> None:
    assert index.engine.startswith(f"{engine.name}-")
    assert index.engine.split("-")[1].count(".") == 2
    assert index.count == COUNT


def test_finds_exactly_the_units_with_a_term(index: LexicalIndex) -> None:
    units = cases.random_units(1, COUNT)
    for term in ("w0", "w17", "w120", "w399"):
        expected = {number for number, unit in enumerate(units) if term in unit["body"]}
        assert {unit for unit, _ in found(index, cases.query(body=[term]), COUNT)} == expected


@pytest.mark.parametrize(
    "query",
    [
        LexicalQuery(()),
        cases.query(body=[]),
        cases.query(title=[], body=[]),
        cases.query(body=["nowhere"]),
        cases.query(absent=["w1"]),
        cases.query(body=(0.0, ["w1"])),
        cases.query(pid=["1"]),
    ],
)
def test_a_query_that_matches_nothing(index: LexicalIndex, query: LexicalQuery) -> None:
    assert found(index, query, 10) == []
    assert index.score(query, as_numbers([0, 3])).tolist() == [0.0, 0.0]


def test_an_unknown_term_or_field_changes_nothing(index: LexicalIndex) -> None:
    plain = found(index, cases.query(body=["w3", "w9"]), 30)
    assert found(index, cases.query(body=["w3", "nowhere", "w9"]), 30) == plain
    assert found(index, cases.query(stem_xx=["w5"], body=["w3", "w9"]), 30) == plain


def test_k_of_zero_more_than_there_are_and_negative(index: LexicalIndex) -> None:
    query = cases.query(body=["w1", "w2"])
    everything = found(index, query, COUNT)
    assert 0 < len(everything) < COUNT
    assert found(index, query, 10 * COUNT) == everything
    assert found(index, query, 0) == []
    for k in (1, 7, len(everything) - 1, len(everything)):
        assert found(index, query, k) == everything[:k]
    with pytest.raises(BadInputError, match="-1"):
        index.search(query, -1)


def test_search_is_the_ranking_of_the_scores(index: LexicalIndex) -> None:
    source = random.Random(5)
    for _ in range(30):
        query = cases.random_query(source)
        assert found(index, query, COUNT) == ranking(index, query)


def compare_scores(index: LexicalIndex, seed: int, queries: int) -> int:
    """Compare the scores of hits with those asked for by unit; return how many were compared."""
    source = random.Random(seed)
    compared = 0
    for _ in range(queries):
        query = cases.random_query(source)
        answer = index.search(query, source.choice([1, 10, 40]))
        order = np.random.default_rng(len(answer.units)).permutation(len(answer.units))
        assert (index.score(query, answer.units[order]) == answer.scores[order]).all()
        compared += len(order)
    return compared


def test_scores_of_hits_are_the_same_numbers(index: LexicalIndex) -> None:
    assert compare_scores(index, 6, 300) > 2_000


@pytest.mark.slow
def test_scores_of_hits_are_the_same_numbers_many_times(index: LexicalIndex) -> None:
    assert compare_scores(index, 7, 6_000) > 60_000


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32), share=st.sampled_from([0.002, 0.03, 0.2, 0.5, 0.8, 0.998]))
def test_a_filter_is_the_filtered_ranking(index: LexicalIndex, seed: int, share: float) -> None:
    source = random.Random(seed)
    query = cases.random_query(source)
    allowed = {unit for unit in range(COUNT) if source.random() < share}
    expected = [hit for hit in ranking(index, query) if hit[0] in allowed]
    for k in (1, 10, 100, COUNT):
        assert found(index, query, k, sorted(allowed)) == expected[:k]


def test_filters_of_everything_nothing_and_one(index: LexicalIndex) -> None:
    query = cases.query(body=["w0", "w5"])
    everything = found(index, query, COUNT)
    last = everything[-1]
    assert found(index, query, 20, range(COUNT)) == everything[:20]
    assert found(index, query, 20, []) == []
    assert found(index, query, 20, [last[0]]) == [last]
    assert found(index, query, 20, [hit for hit, _ in everything[20:]]) == everything[20:40]


def test_a_bitmap_changed_in_place_is_another_filter(index: LexicalIndex) -> None:
    query = cases.query(body=["w0"])
    bitmap = np.ones(COUNT, dtype=np.bool_)
    seen = []
    for _ in range(6):
        bitmap[index.search(query, 3, bitmap).units] = False
        seen += index.search(query, 3, bitmap).units.tolist()
    assert seen == [unit for unit, _ in found(index, query, 21)][3:21]


@pytest.mark.parametrize(
    "bitmap",
    [
        np.ones(COUNT - 1, dtype=np.bool_),
        np.ones((COUNT, 1), dtype=np.bool_),
        np.ones(COUNT, dtype=np.int8),
    ],
)
def test_a_bitmap_that_does_not_fit_is_refused(index: LexicalIndex, bitmap: Numbers) -> None:
    with pytest.raises(BadInputError, match=str(COUNT)):
        index.search(cases.query(body=["w1"]), 5, bitmap.view())  # type: ignore[arg-type]


def test_scores_come_in_the_order_asked_with_repeats(index: LexicalIndex) -> None:
    query = cases.query(body=["w2", "w3"], title=["w2"])
    all_scores = index.score(query, np.arange(COUNT))
    units = as_numbers([900, 3, 3, 0, COUNT - 1, 900, 12])
    assert index.score(query, units).tolist() == all_scores[units].tolist()
    assert index.score(query, as_numbers([])).shape == (0,)
    assert index.score(query, as_numbers([5])).tolist() == [all_scores[5]]


@pytest.mark.parametrize("units", [[-1], [0, COUNT], [[1, 2]], [0.5]])
def test_units_that_do_not_exist_are_refused(index: LexicalIndex, units: list[int]) -> None:
    with pytest.raises(BadInputError):
        index.score(cases.query(body=["w1"]), np.asarray(units))


def test_the_score_is_the_weighted_sum_over_fields(index: LexicalIndex) -> None:
    units = np.arange(COUNT)
    title = index.score(cases.query(title=["w1", "w4"]), units)
    body = index.score(cases.query(body=["w4"]), units)
    both = index.score(cases.query(title=(2.5, ["w1", "w4"]), body=(0.25, ["w4"])), units)
    np.testing.assert_allclose(both, 2.5 * title + 0.25 * body, rtol=1e-5)
    assert (title > 0).any()
    assert ((title == 0) & (body > 0)).any()


def test_a_term_said_twice_counts_twice(index: LexicalIndex) -> None:
    units = np.arange(COUNT)
    once = index.score(cases.query(body=["w7"]), units)
    for twice in (
        cases.query(body=["w7", "w7"]),
        cases.query(body=(2.0, ["w7"])),
        LexicalQuery((LexicalField("body", 0.5, ("w7",)), LexicalField("body", 1.5, ("w7",)))),
    ):
        np.testing.assert_allclose(index.score(twice, units), 2 * once, rtol=1e-6)


def test_a_field_of_weight_zero_neither_scores_nor_matches(index: LexicalIndex) -> None:
    plain = found(index, cases.query(body=["w3"]), COUNT)
    assert found(index, cases.query(title=(0.0, ["w1"]), body=["w3"]), COUNT) == plain


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf"), 1e30])
def test_weights_out_of_range_are_refused(index: LexicalIndex, weight: float) -> None:
    with pytest.raises(BadInputError, match="weight"):
        index.search(cases.query(body=(weight, ["w1"])), 5)


@pytest.mark.parametrize("term", ["", "two words", "no\u00a0break", "a\u3000b", "x" * 65, "\ud800"])
def test_malformed_terms_are_refused(
    engine: cases.Engine, index: LexicalIndex, tmp_path: Path, term: str
) -> None:
    with pytest.raises(BadInputError, match="body"):
        index.search(cases.query(body=["w1", term]), 5)
    with (
        pytest.raises(BadInputError, match="body"),
        engine.writer(tmp_path / "index", ["body"]) as writer,
    ):
        writer.add({"body": ["w1", term]})


def test_terms_are_taken_as_they_are(engine: cases.Engine, tmp_path: Path) -> None:
    units = [{"body": [term, "filler", term]} for term in STRANGE]
    index = engine.index(tmp_path / "index", units)
    for number, term in enumerate(STRANGE):
        assert [unit for unit, _ in found(index, cases.query(body=[term]), 99)] == [number], term
    index.close()


def test_an_index_of_no_units_works(engine: cases.Engine, tmp_path: Path) -> None:
    index = engine.index(tmp_path / "index", [])
    assert index.count == 0
    assert found(index, cases.query(body=["w1"]), 10) == []
    assert found(index, cases.query(body=["w1"]), 10, []) == []
    assert index.score(cases.query(body=["w1"]), as_numbers([])).shape == (0,)
    with pytest.raises(BadInputError):
        index.score(cases.query(body=["w1"]), as_numbers([0]))
    index.close()


def test_an_index_of_one_unit_works(engine: cases.Engine, tmp_path: Path) -> None:
    index = engine.index(tmp_path / "index", [{"body": ["only"]}])
    query = cases.query(body=["only"], title=["only"])
    ((unit, score),) = found(index, query, 10)
    assert unit == 0
    assert score > 0
    assert index.score(query, as_numbers([0])).tolist() == [score]
    assert found(index, query, 10, []) == []
    index.close()


def test_units_without_terms_keep_their_number(engine: cases.Engine, tmp_path: Path) -> None:
    units: list[cases.Unit] = [{}, {"body": []}, {"title": ["a"]}, {}, {"body": ["a"]}, {}]
    index = engine.index(tmp_path / "index", units)
    assert index.count == 6
    assert {unit for unit, _ in found(index, cases.query(title=["a"], body=["a"]), 9)} == {2, 4}
    index.close()


def test_a_thousand_terms_in_twelve_fields(engine: cases.Engine, tmp_path: Path) -> None:
    fields = [f"field{number}" for number in range(12)]
    terms = cases.vocabulary(1000)
    source = random.Random(8)
    units = [{field: source.choices(terms, k=30) for field in fields} for _ in range(120)]
    index = engine.index(tmp_path / "index", units, fields)
    query = LexicalQuery(
        tuple(LexicalField(field, 1.0 + n / 7, tuple(terms)) for n, field in enumerate(fields))
    )
    ranked = ranking(index, query)
    assert len(ranked) == 120
    assert found(index, query, 50) == ranked[:50]
    thirds = [hit for hit in ranked if hit[0] % 3 == 0]
    assert found(index, query, 20, range(0, 120, 3)) == thirds[:20]
    index.close()


@pytest.mark.parametrize("k", [1, 5, 40, 200])
def test_ties_come_by_unit_number(engine: cases.Engine, tmp_path: Path, k: int) -> None:
    twin = {"title": ["red", "fox"], "body": ["red", "fox", "red", "hen", "owl"]}
    units = [twin if n % 3 else {"body": ["red", f"other{n}"]} for n in range(600)]
    index = engine.index(tmp_path / "index", units)
    query = cases.query(title=(1.7, ["red", "fox"]), body=(0.9, ["owl", "red", "fox", "hen"]))
    twins = [n for n in range(600) if n % 3]
    hits = found(index, query, k)
    assert [unit for unit, _ in hits] == twins[:k]
    assert len({score for _, score in hits}) == 1
    odd = [n for n in twins if n % 2]
    assert [unit for unit, _ in found(index, query, k, odd)] == odd[:k]
    assert [unit for unit, _ in found(index, query, k, twins[-9:])] == twins[-9:][:k]
    index.close()


def test_threads_get_the_answers_of_a_serial_run(index: LexicalIndex) -> None:
    def ask(seed: int) -> tuple[list[tuple[int, float]], list[float]]:
        source = random.Random(seed)
        query = cases.random_query(source)
        allowed = None
        if seed % 2:
            allowed = [unit for unit in range(COUNT) if (unit + seed) % (2 + seed % 7)]
        hits = found(index, query, 10, allowed)
        return hits, index.score(query, as_numbers([unit for unit, _ in hits] + [seed])).tolist()

    seeds = [seed % 150 for seed in range(1200)]
    serial = [ask(seed) for seed in range(150)]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(ask, seeds))
    wrong = sum(answer != serial[seed] for answer, seed in zip(together, seeds, strict=True))
    assert wrong == 0


def answers(engine: cases.Engine, folder: Path) -> list[list[list[float]]]:
    """Return the answers to random queries as a process of their own gives them."""
    shown = subprocess.run(
        [sys.executable, "-c", ANSWERS, engine.name, str(folder)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=True,
        text=True,
    )
    result: list[list[list[float]]] = json.loads(shown.stdout)
    return result


def test_a_restart_and_a_second_build_give_equal_answers(
    engine: cases.Engine, folder: Path, tmp_path: Path, index: LexicalIndex
) -> None:
    source = random.Random(11)
    here = [index.search(cases.random_query(source), 20) for _ in range(60)]
    assert answers(engine, folder) == [[a.units.tolist(), a.scores.tolist()] for a in here]
    again = engine.index(tmp_path / "again", cases.random_units(1, COUNT))
    source = random.Random(11)
    for answer in here:
        twin = again.search(cases.random_query(source), 20)
        assert twin.units.tolist() == answer.units.tolist()
        assert twin.scores.tolist() == answer.scores.tolist()
    again.close()


def test_a_closed_index_refuses(engine: cases.Engine, folder: Path) -> None:
    index = engine.open(folder)
    index.close()
    index.close()
    with pytest.raises(IndexFailedError, match="closed"):
        index.search(cases.query(body=["w1"]), 5)
    with pytest.raises(IndexFailedError, match="closed"):
        index.score(cases.query(body=["w1"]), as_numbers([1]))


def test_closing_under_load_ends_in_answers_or_refusals(engine: cases.Engine, folder: Path) -> None:
    index = engine.open(folder)
    expected = found(index, cases.query(body=["w1", "w2"]), 10)

    def ask(_: int) -> bool:
        try:
            return found(index, cases.query(body=["w1", "w2"]), 10) == expected
        except IndexFailedError:
            return True

    with ThreadPoolExecutor(6) as pool:
        asked = pool.map(ask, range(600))
        index.close()
        assert all(asked)


def test_opening_and_asking_writes_nothing(engine: cases.Engine, folder: Path) -> None:
    def state() -> dict[str, tuple[int, int]]:
        return {f.name: (f.stat().st_mtime_ns, f.stat().st_size) for f in folder.iterdir()}

    before, mode = state(), folder.stat().st_mode
    assert not [name for name in before if name.startswith(".") or "lock" in name]
    folder.chmod(0o555)
    index = engine.open(folder)
    found(index, cases.query(body=["w1"]), 10)
    index.close()
    folder.chmod(mode)
    assert state() == before
    assert all(file.stat().st_mode & 0o444 == 0o444 for file in folder.iterdir())


def _gone(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


def _empty(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()


def _text(folder: Path) -> None:
    _empty(folder)
    (folder / "notes.txt").write_text("not an index")


def _halved(folder: Path) -> None:
    for file in folder.iterdir():
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def _largest_removed(folder: Path) -> None:
    max(folder.iterdir(), key=lambda file: file.stat().st_size).unlink()


def _description_broken(folder: Path) -> None:
    (*folder.glob("segments_*"), *folder.glob("meta.json"))[0].write_bytes(b"{}")


@pytest.mark.parametrize(
    "damage", [_gone, _empty, _text, _halved, _largest_removed, _description_broken]
)
def test_a_damaged_folder_is_named(
    engine: cases.Engine, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    folder = engine.build(tmp_path / "index", cases.random_units(3, 40))
    damage(folder)
    with pytest.raises(DamagedFileError) as caught:
        engine.open(folder)
    assert str(folder) in caught.value.sentence
    assert "world-server check" in caught.value.hint


def test_the_index_of_the_other_engine_is_named(engine: cases.Engine, tmp_path: Path) -> None:
    (other,) = {"lucene", "tantivy"} - {engine.name}
    folder = cases.engine(other).build(tmp_path / "index", [{"body": ["w1"]}])
    with pytest.raises(DamagedFileError, match=str(folder)):
        engine.open(folder)


@pytest.mark.parametrize("fields", [[], ["body", "body"], ["pid"], ["two words"], ["a.b"], [""]])
def test_field_names_are_checked(
    engine: cases.Engine, tmp_path: Path, fields: Sequence[str]
) -> None:
    with pytest.raises(BadInputError, match="fields"):
        engine.writer(tmp_path / "index", fields)


def test_a_folder_in_use_is_refused_and_kept(engine: cases.Engine, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(IndexFailedError, match=r"mine\.txt"), engine.writer(tmp_path, ["body"]):
        pass
    assert (tmp_path / "mine.txt").read_text() == "mine"
    with (
        pytest.raises(IndexFailedError, match="cannot be made"),
        engine.writer(tmp_path / "mine.txt", ["body"]),
    ):
        pass


def test_an_error_while_writing_leaves_nothing(engine: cases.Engine, tmp_path: Path) -> None:
    def write() -> None:
        with engine.writer(tmp_path / "index", ["body"]) as writer:
            writer.add({"body": ["w1"]})
            raise KeyError("stopped")

    with pytest.raises(KeyError, match="stopped"):
        write()
    assert list(tmp_path.iterdir()) == []


def test_a_writer_takes_known_fields_while_it_is_open(engine: cases.Engine, tmp_path: Path) -> None:
    writer = engine.writer(tmp_path / "index", ["body"])
    with pytest.raises(IndexFailedError, match="not open"):
        writer.add({"body": ["w1"]})
    with writer:
        writer.add({"body": ["w1"]})
        with pytest.raises(BadInputError, match="titel"):
            writer.add({"titel": ["w2"]})
        writer.add({"body": ["w3"]})
    with pytest.raises(IndexFailedError, match="not open"):
        writer.add({"body": ["w1"]})
    index = engine.open(tmp_path / "index")
    assert index.count == 2
    assert [unit for unit, _ in found(index, cases.query(body=["w3"]), 5)] == [1]
    index.close()
