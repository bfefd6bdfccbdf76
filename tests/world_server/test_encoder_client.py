from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from world_core.encoders.loading import load
from world_core.encoders.tiny import TinyEncoder
from world_core.errors import BadInputError, EncoderError, MissingPartError, WorldError
from world_server.encoder_child import Patience
from world_server.encoder_client import RemoteEncoder
from world_server.encoder_process import Spec, _failed
from world_server.engine_protocol import ErrorTold, decoded, error_of
from world_server.errors import EncoderDownError
from world_server.query_encoder import READY
from world_server.restarts import Restarts

TINY = TinyEncoder(64)
SPEC = Spec(kind="tiny", arguments=(("dim", 64),))
QUICK = Patience(beat_s=0.25, beats=10, retry_s=60.0)
PATIENCE = 60.0
LONG = "a query about nothing in particular that goes on for very long " * 30


def alone(text: str) -> bytes:
    return TINY.encode_queries([text]).tobytes()


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.01)


def signalled(encoder: RemoteEncoder, number: signal.Signals) -> int:
    process = encoder.process_id
    assert process is not None
    os.kill(process, number)
    return process


def is_back(encoder: RemoteEncoder, restarts: int) -> Callable[[], bool]:
    """Say whether at least so many processes were replaced and one works."""
    return lambda: encoder.report().restarts >= restarts and encoder.report().state == READY


@pytest.fixture
def encoder() -> Iterator[RemoteEncoder]:
    made = RemoteEncoder(SPEC, patience=QUICK)
    yield made
    made.close()


def test_it_is_the_encoder_of_the_other_process(encoder: RemoteEncoder) -> None:
    assert (encoder.id, encoder.dim) == (TINY.id, 64)
    assert encoder.process_id != os.getpid()
    texts = ["one", "zwei", "\ud800 three", ""]
    assert encoder.encode_queries(texts).tobytes() == TINY.encode_queries(texts).tobytes()
    assert encoder.encode_passages(texts).tobytes() == TINY.encode_passages(texts).tobytes()
    assert encoder.encode_queries([]).shape == (0, 64)
    assert encoder.report().state == READY
    until(lambda: encoder.report().texts == 4)


def test_many_threads_get_their_own_answers(encoder: RemoteEncoder) -> None:
    with ThreadPoolExecutor(16) as pool:
        rows = list(pool.map(lambda n: encoder.encode_queries([f"q {n}"]).tobytes(), range(300)))
    assert rows == [alone(f"q {number}") for number in range(300)]


def test_calls_of_a_killed_process_are_answered_by_the_next(encoder: RemoteEncoder) -> None:
    process = signalled(encoder, signal.SIGSTOP)
    futures = [encoder.submit(f"query {number}") for number in range(20)]
    until(lambda: len(encoder._calls) == 20)
    os.kill(process, signal.SIGKILL)
    for number, future in enumerate(futures):
        assert future.result(PATIENCE).tobytes() == alone(f"query {number}")
    assert encoder.report().restarts == 1
    assert encoder.process_id != process


def test_a_stopped_process_is_noticed_and_replaced(encoder: RemoteEncoder) -> None:
    process = signalled(encoder, signal.SIGSTOP)
    assert encoder.submit("query").result(PATIENCE).tobytes() == alone("query")
    assert encoder.process_id != process
    with pytest.raises(ProcessLookupError):  # it was killed and waited for
        os.kill(process, 0)


def test_a_call_without_a_process_fails_at_once_by_name(encoder: RemoteEncoder) -> None:
    signalled(encoder, signal.SIGKILL)
    until(lambda: encoder.report().state != READY)
    with pytest.raises(EncoderDownError, match="starting") as caught:
        encoder.encode_queries(["query"])
    assert (caught.value.code, caught.value.status) == ("encoder", 503)
    assert caught.value.hint
    until(is_back(encoder, 1))
    assert encoder.encode_queries(["query"]).tobytes() == alone("query")


def test_counts_go_on_over_restarts(encoder: RemoteEncoder) -> None:
    encoder.encode_queries(["a", "b"])
    until(lambda: encoder.report().texts == 2)
    signalled(encoder, signal.SIGKILL)
    until(is_back(encoder, 1))
    encoder.encode_queries(["c"])
    until(lambda: encoder.report().texts == 3)


def test_a_process_that_keeps_dying_is_left_alone_for_a_while() -> None:
    encoder = RemoteEncoder(SPEC, patience=QUICK, restarts=Restarts(limit=2, window_s=3600.0))
    signalled(encoder, signal.SIGKILL)
    until(is_back(encoder, 1))
    process = signalled(encoder, signal.SIGSTOP)
    waiting = encoder.submit("query")
    until(lambda: len(encoder._calls) == 1)
    os.kill(process, signal.SIGKILL)
    with pytest.raises(EncoderDownError, match=r"starts again in 3[56]\d\d s"):
        waiting.result(PATIENCE)
    with pytest.raises(EncoderDownError, match=r"starts again in 3[56]\d\d s"):
        encoder.encode_queries(["query"])
    assert encoder.process_id is None
    assert encoder.report().restarts == 1
    encoder.close()


def test_after_the_pause_it_starts_again() -> None:
    encoder = RemoteEncoder(SPEC, patience=QUICK, restarts=Restarts(limit=1, window_s=1.0))
    signalled(encoder, signal.SIGKILL)
    until(is_back(encoder, 1))
    assert encoder.encode_queries(["query"]).tobytes() == alone("query")
    encoder.close()


def test_a_call_does_not_wait_for_ever_for_the_next_process() -> None:
    patience = Patience(beat_s=0.1, beats=600, retry_s=0.2)
    encoder = RemoteEncoder(SPEC, patience=patience, restarts=Restarts(limit=1, window_s=5.0))
    process = signalled(encoder, signal.SIGSTOP)
    future = encoder.submit("query")
    until(lambda: len(encoder._calls) == 1)
    os.kill(process, signal.SIGKILL)
    with pytest.raises(EncoderDownError):
        future.result(PATIENCE)
    encoder.close()


@pytest.mark.slow
def test_a_process_stuck_in_a_call_is_replaced_and_the_call_fails_after_two() -> None:
    patience = Patience(beat_s=0.1, answer_s=0.3, retry_s=60.0)
    encoder = RemoteEncoder(Spec(kind="onnx-minilm", limit=1), patience=patience)
    futures = [encoder.submit(f"{number} {LONG}") for number in range(400)]
    errors = [future.exception(PATIENCE) for future in futures]
    lost = [error for error in errors if error is not None]
    assert lost
    assert all(isinstance(error, EncoderDownError) for error in lost)
    assert {str(error).partition(".")[0] for error in lost} == {"The encoder's process ended twice"}
    until(is_back(encoder, 2))
    encoder.close()


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (EncoderError("The model failed.", hint="Look."), EncoderError),
        (MissingPartError("Not there.", hint="Install it."), MissingPartError),
        (BadInputError("No such kind."), BadInputError),
        (ZeroDivisionError("by zero"), EncoderError),
    ],
)
def test_an_error_keeps_its_kind_on_the_way(raised: Exception, told: type[WorldError]) -> None:
    error = error_of(decoded(ErrorTold, _failed(7, raised).body))
    assert type(error) is told
    assert str(raised) in str(error)


@pytest.mark.parametrize(
    ("spec", "error", "part"),
    [
        (Spec(kind="nonsense"), BadInputError, "nonsense"),
        (Spec(kind="onnx-minilm", arguments=(("folder", "/absent"),)), MissingPartError, "/absent"),
        (Spec(kind="tiny", expected_id="another"), EncoderError, "another"),
    ],
)
def test_what_cannot_be_loaded_is_said_at_opening(
    spec: Spec, error: type[Exception], part: str
) -> None:
    with pytest.raises(error, match=part):
        RemoteEncoder(spec)


def test_a_model_that_takes_too_long_to_load_is_an_error() -> None:
    with pytest.raises(EncoderDownError, match="not loaded within"):
        RemoteEncoder(SPEC, patience=Patience(load_s=0.01))


def test_closing_ends_the_calls_first_and_the_process_then() -> None:
    encoder = RemoteEncoder(SPEC, patience=QUICK)
    process = encoder.process_id
    assert process is not None
    futures = [encoder.submit(str(number)) for number in range(50)]
    encoder.close()
    assert [future.result(0).tobytes() for future in futures] == [alone(str(n)) for n in range(50)]
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    with pytest.raises(EncoderDownError, match="closed"):
        encoder.submit("late")
    encoder.close()


def test_closing_while_the_process_is_away_ends_too() -> None:
    encoder = RemoteEncoder(SPEC, patience=QUICK, restarts=Restarts(limit=1, window_s=3600.0))
    signalled(encoder, signal.SIGKILL)
    until(lambda: encoder.process_id is None)
    encoder.close()
    assert "encoder-client" not in {thread.name for thread in threading.enumerate()}


def _kill_loop(encoder: RemoteEncoder, rounds: int, number: signal.Signals) -> None:
    """End the process again and again under load; every call ends as a vector or by name."""
    stop = threading.Event()
    outcomes: list[list[str]] = [[] for _ in range(4)]

    def ask(place: int) -> None:
        count = 0
        while not stop.is_set():
            count += 1
            text = f"{place} {count}"
            try:
                row = encoder.submit(text).result(PATIENCE)
            except EncoderDownError:
                outcomes[place].append("down")
                time.sleep(0.01)
            else:
                outcomes[place].append("right" if row.tobytes() == alone(text) else "wrong")

    callers = [threading.Thread(target=ask, args=(place,)) for place in range(4)]
    for caller in callers:
        caller.start()
    try:
        for _ in range(rounds):
            before = encoder.report().restarts
            signalled(encoder, number)
            until(is_back(encoder, before + 1))
    finally:
        stop.set()
        for caller in callers:
            caller.join(PATIENCE)
    seen = [one for some in outcomes for one in some]
    assert "wrong" not in seen
    assert seen.count("right") >= 4 * rounds
    assert not any(caller.is_alive() for caller in callers)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_under_load_every_call_ends(encoder: RemoteEncoder, number: signal.Signals) -> None:
    _kill_loop(encoder, 1, number)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_under_load_every_call_ends_however_often_it_dies(number: signal.Signals) -> None:
    encoder = RemoteEncoder(
        Spec(kind="onnx-minilm"), patience=QUICK, restarts=Restarts(limit=100, window_s=0.01)
    )
    texts = [f"what is {number}" for number in range(20)]
    wanted = load("onnx-minilm", {}).encode_queries(texts)
    for _ in range(10):
        before = encoder.report().restarts
        signalled(encoder, number)
        until(is_back(encoder, before + 1))
        assert np.array_equal(encoder.encode_queries(texts), wanted)
    encoder.close()
