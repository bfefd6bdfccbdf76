"""The engine over a world with learned sparse weights and a reranker: against brute force."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.world_core.worlds import PLACES, THINGS, make_world
from world_core import manifest as manifests
from world_core.engine import Engine
from world_core.errors import (
    CancelledCallError,
    DamagedFileError,
    EncoderError,
    MissingPartError,
    RerankerError,
)
from world_core.fusion import fuse, fuse_three
from world_core.generation import Generation
from world_core.rerankers.tiny import TinyReranker
from world_core.scaling import Scaling
from world_core.types import Hit, Mode, Numbers, Outcome, SearchCall, Timings
from world_core.views import View, at_clock

START_OF_2021 = 1_609_459_200
WORDS = [*PLACES, *THINGS, "keeper", "Ida", "Brandt", "built", "1874", "zzz"]
TOP = 12
RECIPE = (
    "[passages]\ntarget = 300\nlimit = 500\n"
    '[lexical]\nengine = "tantivy"\nlong_query = 0\n'
    '[dense]\nencoder = "tiny"\n'
)
SPARSE = '[sparse]\nencoder = "tiny"\nbits = 6\ntop = 20\nweight = 0.3\n'
RERANKER = f'[reranker]\nkind = "tiny"\ntop = {TOP}\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_world(tmp_path_factory.mktemp("sparse"), RECIPE + SPARSE + RERANKER)


@pytest.fixture(scope="module")
def engine(folder: Path) -> Iterator[Engine]:
    opened = Engine(Generation.open(folder))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def fused_only(folder: Path) -> Iterator[Engine]:
    opened = Engine(Generation.open(folder, reranker="none"))
    yield opened
    opened.close()


def brute_force(engine: Engine, call: SearchCall, view: View) -> list[tuple[int, float]]:
    """Score every visible version with the three indexes and sort."""
    generation = engine.generation
    assert generation.encoder is not None
    assert generation.dense is not None
    assert generation.sparse is not None
    assert generation.sparse_encoder is not None
    versions = np.flatnonzero(view.versions)
    vector = generation.encoder.encode_queries([call.query])[0]
    weights = generation.sparse_encoder.encode_queries([call.query])[0]
    lexical = generation.lexical.score(generation.analyzer.query(call.query), versions)
    dense, sparse = [], []
    for version in versions.tolist():
        passages = np.arange(*generation.first_passage[version : version + 2])
        dense.append(max([-1.0, *generation.dense.score(vector, passages).tolist()]))
        sparse.append(max([0.0, *generation.sparse.score(weights, passages).tolist()]))
    scale = Scaling(generation).of(call.query, vector)
    scores = fuse_three(
        *(lexical, np.array(dense), np.array(sparse)), weight=0.5, sparse_weight=0.3, scale=scale
    )
    order = np.lexsort((versions, -scores)).tolist()
    return [(int(versions[place]), float(scores[place])) for place in order]


@given(
    words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=5),
    clock=st.sampled_from([None, START_OF_2021, 0, 1_580_000_000]),
    offset=st.sampled_from([0, 3, 70]),
)
def test_search_equals_brute_force(
    fused_only: Engine, words: list[str], clock: int | None, offset: int
) -> None:
    generation = fused_only.generation
    view = generation.plain_view if clock is None else at_clock(generation.columns, clock)
    call = SearchCall(" ".join(words), count=12, offset=offset)
    answer = fused_only.search(call, view)
    expected = brute_force(fused_only, call, view)[offset : offset + 12]
    assert [(hit.meta.version, hit.score) for hit in answer.hits] == expected
    assert answer.outcome is (Outcome.OK if expected else Outcome.EMPTY)


def test_sparse_scores_and_ranks_explain_the_answer(fused_only: Engine) -> None:
    hits = fused_only.search(SearchCall("lighthouse of Norrvik", count=100)).hits
    listed = [hit for hit in hits if hit.parts.sparse_rank is not None]
    assert listed
    by_rank = sorted(listed, key=lambda hit: hit.parts.sparse_rank or 0)
    scores = [hit.parts.sparse or 0.0 for hit in by_rank]
    assert scores == sorted(scores, reverse=True)
    assert all(hit.parts.sparse == 0.0 for hit in hits if hit.parts.sparse_rank is None)
    assert all(hit.parts.rerank is None for hit in hits)


@pytest.mark.parametrize("mode", [Mode.LEXICAL, Mode.DENSE])
def test_a_search_of_one_index_asks_neither(engine: Engine, mode: Mode) -> None:
    timings = Timings()
    hits = engine.search(SearchCall("ferry of Lune", mode=mode), timings=timings).hits
    assert hits
    assert all((hit.parts.sparse, hit.parts.rerank) == (None, None) for hit in hits)
    assert not {"sparse", "rerank"} & timings.seconds.keys()


def expected_order(engine: Engine, plain: Sequence[Hit], query: str) -> list[int]:
    """Return the versions as the reranker must leave them, by the passages that hits show."""
    texts = [engine.generation.passages.text(hit.passage) for hit in plain[:TOP]]
    versions = [hit.meta.version for hit in plain]
    scores = dict(zip(versions, TinyReranker().score(query, texts).tolist(), strict=False))
    return [*sorted(scores, key=lambda version: (-scores[version], version)), *versions[TOP:]]


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6))
def test_the_first_pages_are_ordered_anew_and_the_rest_stays(
    engine: Engine, fused_only: Engine, words: list[str]
) -> None:
    call = SearchCall(" ".join(words), count=60)
    plain = fused_only.search(call).hits
    hits = engine.search(call).hits
    versions = [hit.meta.version for hit in hits]
    assert versions == expected_order(engine, plain, call.query)
    scores = {hit.meta.version: hit.score for hit in plain}
    assert all(hit.score == scores[hit.meta.version] for hit in hits)
    reranked = [hit.parts.rerank for hit in hits]
    assert None not in reranked[:TOP]
    assert set(reranked[TOP:]) <= {None}


def test_a_call_may_do_without_the_reranker(engine: Engine, fused_only: Engine) -> None:
    call = SearchCall("the ferry of Lune", count=30)
    timings = Timings()
    without = engine.search(replace(call, rerank=False), timings=timings)
    assert without == fused_only.search(call)
    assert without != engine.search(call)
    assert "rerank" not in timings.seconds


def test_pages_of_results_join_without_gap_or_overlap(engine: Engine) -> None:
    query = "the ferry of Lune was built by Ida Brandt"
    whole = engine.search(SearchCall(query, count=50)).hits
    parts = [
        hit
        for offset in range(0, 50, 5)
        for hit in engine.search(SearchCall(query, count=5, offset=offset)).hits
    ]
    assert len(whole) == 50
    assert parts == list(whole)


def test_a_batch_equals_its_searches(engine: Engine) -> None:
    calls = [
        SearchCall("lighthouse", count=3),
        SearchCall("keeper Ida Brandt", mode=Mode.DENSE),
        SearchCall("museum of Stennes", mode=Mode.LEXICAL),
        SearchCall("!?"),
        SearchCall("market of Skarholm", count=30),
    ]
    assert engine.search_batch(calls) == [engine.search(call) for call in calls]


def test_the_steps_are_measured(engine: Engine) -> None:
    timings = Timings()
    engine.search(SearchCall("ferry"), timings=timings)
    assert {"sparse", "rerank", "complete", "fuse"} <= timings.seconds.keys()


def test_nobody_waits_for_the_reranker(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    scored: list[int] = []

    def score(_query: str, passages: Sequence[str]) -> Numbers:
        scored.append(len(passages))
        return np.zeros(len(passages), dtype=np.int64)

    assert engine.generation.reranker is not None
    monkeypatch.setattr(engine.generation.reranker, "score", score)
    with pytest.raises(CancelledCallError, match="rerank"):
        engine.search(SearchCall("ferry"), cancelled=lambda: len(scored) > 1)
    assert sum(scored) < TOP


def test_a_failing_reranker_is_never_another_order(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def score(_query: str, _passages: Sequence[str]) -> Numbers:
        raise RerankerError("The reranker failed.")

    assert engine.generation.reranker is not None
    monkeypatch.setattr(engine.generation.reranker, "score", score)
    with pytest.raises(RerankerError) as caught:
        engine.search(SearchCall("ferry"))
    assert (caught.value.code, caught.value.status) == ("reranker", 503)
    assert engine.search(SearchCall("ferry", mode=Mode.LEXICAL)).outcome is Outcome.OK


def test_pages_without_a_passage_come_after_the_scored_ones(
    engine: Engine, fused_only: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = SearchCall("ferry of Lune", count=20)
    plain = [hit.meta.version for hit in fused_only.search(call).hits]
    real = engine._maker.best_passages
    bare = set(plain[:3])
    monkeypatch.setattr(
        engine._maker,
        "best_passages",
        lambda query, ranking, chosen: [
            -1 if version in bare else number
            for version, number in zip(
                ranking.versions[chosen].tolist(), real(query, ranking, chosen), strict=True
            )
        ],
    )
    found = [hit.meta.version for hit in engine.search(call).hits]
    assert found[TOP - 3 : TOP] == plain[:3]
    assert found[TOP:] == plain[TOP:]


def test_the_operator_may_choose_number_and_reranker(folder: Path) -> None:
    generation = Generation.open(folder, verify=False, reranker="tiny", rerank_top=2)
    hits = Engine(generation).search(SearchCall("ferry of Lune")).hits
    generation.close()
    assert [hit.parts.rerank is not None for hit in hits[:4]] == [True, True, False, False]


@pytest.mark.parametrize(
    ("change", "error", "named"),
    [
        ({"reranker": {"reranker_id": "another"}}, RerankerError, "the world names another"),
        ({"reranker": {"kind": "flag", "arguments": {"model": "/no"}}}, MissingPartError, "/no"),
        ({"sparse": {"encoder_id": "another"}}, EncoderError, "was built with another"),
    ],
)
def test_a_world_whose_models_are_not_here_is_not_opened(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: dict[str, dict[str, object]],
    error: type[Exception],
    named: str,
) -> None:
    real = manifests.read(folder)
    (part, fields), *_ = change.items()
    altered = getattr(real, part).model_copy(update=fields)
    monkeypatch.setattr(manifests, "read", lambda _: real.model_copy(update={part: altered}))
    with pytest.raises(error, match=named):
        Generation.open(folder, verify=False)


def test_a_sparse_index_that_is_gone_is_damage(folder: Path, tmp_path: Path) -> None:
    for path in folder.rglob("*"):
        target = tmp_path / path.relative_to(folder)
        if path.is_dir():
            target.mkdir()
        elif path.parent.name != "sparse":
            target.write_bytes(path.read_bytes())
    with pytest.raises(DamagedFileError, match="sparse"):
        Generation.open(tmp_path)
    with pytest.raises(DamagedFileError, match=r"tokens\.npy"):
        Generation.open(tmp_path, verify=False)


def test_without_the_third_index_nothing_changes(
    folder: Path, fused_only: Engine, tmp_path: Path
) -> None:
    engine = Engine(Generation.open(make_world(tmp_path, RECIPE)))
    encoder = engine.generation.encoder
    assert encoder is not None
    assert engine.generation.manifest.sparse is None
    assert engine.generation.manifest.world_id != fused_only.generation.manifest.world_id
    for query in ("ferry of Lune", "keeper Ida Brandt", "zzz"):
        call = SearchCall(query, count=100)
        two = engine.search(call).hits
        three = {hit.meta.version: hit for hit in fused_only.search(call).hits}
        assert two
        lexical = np.array([hit.parts.lexical for hit in two])
        dense = np.array([hit.parts.dense for hit in two])
        vector = encoder.encode_queries([query])[0]
        scale = Scaling(engine.generation).of(query, vector)
        assert [hit.score for hit in two] == fuse(lexical, dense, scale=scale).tolist()
        for hit in two:
            assert (hit.parts.sparse, hit.parts.sparse_rank) == (None, None)
            other = three[hit.meta.version].parts
            assert hit.parts == replace(other, sparse=None, sparse_rank=None)
    engine.close()
