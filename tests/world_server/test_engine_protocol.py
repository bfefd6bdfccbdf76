from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import world_core.errors
import world_server.errors
from tests.world_server.stub import hit, manifest, version
from world_core.errors import (
    BadInputError,
    CancelledCallError,
    DamagedFileError,
    PageStoreError,
    WorldError,
)
from world_core.types import (
    FetchAnswer,
    FetchCall,
    Hit,
    Mode,
    Outcome,
    ScoreParts,
    SearchAnswer,
    SearchCall,
    VersionMeta,
)
from world_server import engine_protocol
from world_server.engine_protocol import (
    ErrorTold,
    FetchAsked,
    FetchFound,
    Kind,
    SearchAsked,
    SearchFound,
    WorldsTold,
    WorldTold,
    decoded,
    encoded,
    error_of,
    told,
)
from world_server.errors import FrameError, OverloadedError

INTEGERS = st.integers(-(2**62), 2**62)
FLOATS = st.floats(allow_nan=False)
CALLS = st.builds(
    SearchCall,
    st.text(max_size=20),
    count=st.integers(1, 100),
    offset=st.integers(0, 10_000),
    mode=st.sampled_from(Mode),
    published_from=st.none() | INTEGERS,
    published_to=st.none() | INTEGERS,
)
METAS = st.builds(
    VersionMeta,
    version=INTEGERS,
    page=INTEGERS,
    page_id=st.text(max_size=5),
    url=st.text(max_size=5),
    title=st.text(max_size=5),
    language=st.text(max_size=2),
    published=st.none() | INTEGERS,
    modified=st.none() | INTEGERS,
    valid_from=INTEGERS,
    valid_to=INTEGERS,
    characters=INTEGERS,
)
HITS = st.builds(
    Hit,
    METAS,
    snippet=st.text(max_size=20),
    score=FLOATS,
    parts=st.builds(
        ScoreParts, FLOATS, FLOATS, st.none() | st.integers(1), st.none() | st.integers(1)
    ).filter(lambda parts: max(parts.lexical_rank or 1, parts.dense_rank or 1) < 2**63),
    passage=INTEGERS,
)
ANSWERS = st.builds(SearchAnswer, st.sampled_from(Outcome), st.lists(HITS, max_size=3).map(tuple))


@given(st.integers(0, 2**32), st.lists(CALLS, max_size=4))
def test_searches_arrive_as_they_were_asked(opening: int, calls: list[SearchCall]) -> None:
    assert decoded(SearchAsked, encoded(SearchAsked(opening, calls))) == SearchAsked(opening, calls)


@given(st.lists(ANSWERS, max_size=3), st.dictionaries(st.text(max_size=5), FLOATS, max_size=3))
def test_answers_arrive_to_the_last_bit(
    answers: list[SearchAnswer], seconds: dict[str, float]
) -> None:
    found = decoded(SearchFound, encoded(SearchFound(answers, seconds)))
    assert found == SearchFound(answers, seconds)
    for one, other in zip(found.answers, answers, strict=True):
        assert repr(one) == repr(other)


@pytest.mark.parametrize(
    "answer",
    [
        FetchAnswer(Outcome.OK, "https://a.example/", version=version(3)),
        FetchAnswer(Outcome.DEAD_LINK, "https://a.example/", status=404),
        FetchAnswer(Outcome.NOT_IN_WORLD, "not an address"),
    ],
)
def test_pages_arrive_whole(answer: FetchAnswer) -> None:
    assert decoded(FetchFound, encoded(FetchFound(answer))).answer == answer


def test_an_answer_of_ten_hits_is_compact() -> None:
    answers = [SearchAnswer(Outcome.OK, tuple(hit(number) for number in range(10)))]
    assert len(encoded(SearchFound(answers, {}))) < 4000


def test_worlds_are_told_with_their_manifests_or_faults() -> None:
    whole = manifest("atlas", canaries=3)
    fault = told(DamagedFileError("'pages.sqlite' differs.", hint="Run: check"))
    sent = WorldsTold(
        [WorldTold("atlas", 4, whole.model_dump_json().encode()), WorldTold("b", fault=fault)]
    )
    first, second = decoded(WorldsTold, encoded(sent)).worlds
    assert (first.opening, first.fault) == (4, None)
    assert first.read_manifest() == whole
    assert second.fault is not None
    assert isinstance(error_of(second.fault), DamagedFileError)


def _classes() -> list[type[WorldError]]:
    return [
        kind
        for module in (world_core.errors, world_server.errors)
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, WorldError)
    ]


@pytest.mark.parametrize("kind", sorted(set(_classes()), key=str))
def test_every_error_keeps_its_class(kind: type[WorldError]) -> None:
    sent = ErrorTold(kind.__name__, kind.code, "It is so.", "Do that.")
    error = error_of(decoded(ErrorTold, encoded(sent)))
    assert type(error) is kind
    assert (error.code, error.sentence, error.hint) == (kind.code, "It is so.", "Do that.")
    assert str(error) == "It is so. Do that."


def test_an_error_keeps_when_to_try_again() -> None:
    error = error_of(told(OverloadedError("Full.", retry_after=4)))
    assert isinstance(error, OverloadedError)
    assert (error.retry_after, error.hint) == (4, "Try again in 4 s.")


def test_two_errors_of_one_code_stay_apart() -> None:
    assert isinstance(error_of(told(CancelledCallError("Gone."))), CancelledCallError)
    assert isinstance(error_of(told(PageStoreError("Gone."))), PageStoreError)


def test_an_error_nobody_knows_is_a_plain_one() -> None:
    error = error_of(ErrorTold("NewerError", "newer", "It is so.", ""))
    assert type(error) is WorldError
    assert error.sentence == "It is so."


@pytest.mark.parametrize(
    "body",
    [
        FetchAsked(1, FetchCall("https://a.example/\ud800")),
        SearchAsked(1, [SearchCall("x", count=2**70)]),
    ],
)
def test_what_cannot_be_written_is_the_callers_fault(body: msgspec.Struct) -> None:
    with pytest.raises(BadInputError, match="cannot be passed on"):
        encoded(body)


@pytest.mark.parametrize("data", [b"", b"\xc1", encoded(FetchAsked(1, FetchCall("x")))])
def test_what_is_no_body_of_a_kind_is_told(data: bytes) -> None:
    with pytest.raises(FrameError, match="are no SearchAsked"):
        decoded(SearchAsked, data)


def test_the_documentation_names_every_kind() -> None:
    assert engine_protocol.__doc__ is not None
    assert [kind.name for kind in Kind if kind.name not in engine_protocol.__doc__] == []
    assert len({kind.value for kind in Kind}) == len(Kind)
