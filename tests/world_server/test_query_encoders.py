from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.world_server.stub import manifest
from world_core.encoders.tiny import TinyEncoder
from world_core.errors import EncoderError, ForeignWorldError, MissingPartError
from world_core.manifest import EncoderSettings, Manifest
from world_core.manifest_options import SparseSettings
from world_core.types import SearchCall
from world_server.batching import MicroBatcher
from world_server.encoder_client import RemoteEncoder
from world_server.engine_client import LocalEngine
from world_server.pointer import WorldFolder
from world_server.query_cache import QueryCache
from world_server.query_encoders import EncoderLease, QueryEncoders
from world_server.settings import Settings
from world_server.worlds import opener_for

TINY = TinyEncoder()


def of(name: str, kind: str = "tiny", **arguments: str | int) -> Manifest:
    encoder_id = TINY.id if kind == "tiny" and not arguments else ""
    if kind == "tiny" and arguments:
        encoder_id = TinyEncoder.load(arguments, 1).id
    chosen = EncoderSettings(kind=kind, arguments=arguments)
    return manifest(name).model_copy(update={"encoder": chosen, "encoder_id": encoder_id})


def inner(encoder: object) -> object:
    assert isinstance(encoder, QueryCache)
    return encoder.wrapped


def test_worlds_of_one_encoder_share_it() -> None:
    encoders = QueryEncoders(Settings())
    first = encoders.take(of("a"))
    assert encoders.take(of("b")) is first
    other = encoders.take(of("c", dim=64))
    assert other is not first
    assert isinstance(inner(first), MicroBatcher)
    encoders.give_back(first)
    assert first.encode_queries(["x"]).tobytes() == TINY.encode_queries(["x"]).tobytes()
    encoders.give_back(first)
    with pytest.raises(EncoderError, match="closed"):
        first.submit("y")
    assert other.encode_queries(["x"]).shape == (1, 64)
    encoders.give_back(other)


def test_it_is_loaded_once_however_many_ask_at_once() -> None:
    encoders = QueryEncoders(Settings())
    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(lambda n: encoders.take(of(f"w{n}")), range(8)))
    assert len(set(map(id, taken))) == 1
    for one in taken:
        encoders.give_back(one)


@pytest.mark.parametrize("chosen", ["always", "never", "auto"])
def test_the_setting_says_where_it_lives(chosen: str) -> None:
    encoders = QueryEncoders(Settings(encoder_process=chosen))
    encoder = encoders.take(of("a"))
    assert isinstance(inner(encoder), RemoteEncoder if chosen == "always" else MicroBatcher)
    assert encoder.encode_queries(["x"]).tobytes() == TINY.encode_queries(["x"]).tobytes()
    encoders.give_back(encoder)


def test_torch_has_its_own_process_unless_the_world_needs_its_weights_here() -> None:
    encoders = QueryEncoders(Settings())
    dense = of("a", "flag", model="/absent")
    sparse = SparseSettings(
        encoder_id="",
        kind="flag",
        bits=8,
        top=0,
        passages=1,
        postings=1,
        weights_digest="",
        weight=0.2,
    )
    both = dense.model_copy(update={"sparse": sparse})
    assert encoders._key(dense)[1] is True
    assert encoders._key(both)[1] is False
    assert QueryEncoders(Settings(encoder_process="never"))._key(dense)[1] is False


def test_the_settings_reach_batches_and_memory() -> None:
    encoders = QueryEncoders(Settings(batch_limit=3, batch_wait_ms=2.0, query_cache_mb=0))
    encoder = encoders.take(of("a"))
    encoder.encode_queries(["x"])
    encoder.encode_queries(["x"])
    assert encoder.report().misses == 2
    batcher = inner(encoder)
    assert isinstance(batcher, MicroBatcher)
    assert (batcher._limit, batcher._wait_s) == (3, 0.002)
    encoders.give_back(encoder)


@pytest.mark.parametrize("chosen", ["always", "never"])
def test_what_cannot_be_loaded_is_said_and_leaves_nothing(chosen: str) -> None:
    encoders = QueryEncoders(Settings(encoder_process=chosen))
    for _ in range(2):
        with pytest.raises(MissingPartError, match="/absent"):
            encoders.take(of("a", "onnx-minilm", folder="/absent"))
    assert encoders._shared == {}


def test_a_world_without_vectors_has_no_encoder() -> None:
    with pytest.raises(ForeignWorldError):
        QueryEncoders(Settings()).take(manifest("a"))


def test_a_lease_gives_back_once() -> None:
    encoders = QueryEncoders(Settings())
    one, other = EncoderLease(encoders), EncoderLease(encoders)
    taken = one.open(of("a"))
    assert other.open(of("b")) is taken
    for _ in range(2):
        one.close()
    assert taken.encode_queries(["x"]).shape == (1, 256)
    other.close()
    with pytest.raises(EncoderError, match="closed"):
        taken.submit("y")
    EncoderLease(encoders).close()


@pytest.mark.parametrize("chosen", ["always", "never"])
async def test_an_opened_world_asks_it_before_it_takes_a_thread(
    tiny_world: Path, chosen: str
) -> None:
    opener = opener_for(Settings(encoder_process=chosen), verify=False)
    served = opener(WorldFolder(tiny_world).target())
    engine = served.engine
    assert isinstance(engine, LocalEngine)
    query = served.manifest.canaries[0].query
    first = await engine.search([SearchCall(query)])
    assert await engine.search([SearchCall(query)]) == first
    report = await engine.encoder_report(probe=True)
    assert report is not None
    assert report.is_ready
    assert report.hits >= 2
    encoder = engine._encoder
    assert encoder is not None
    await served.close()
    with pytest.raises(EncoderError, match="closed"):
        encoder.submit("late")


def test_a_world_that_is_refused_gives_its_encoder_back(tiny_world: Path, tmp_path: Path) -> None:
    opener = opener_for(Settings(), verify=True)
    with pytest.raises(ForeignWorldError):
        opener(tmp_path)
