from __future__ import annotations

import re

from tests.conftest import ROOT
from world_core.types import Timings
from world_server.metrics import BUCKETS, TABLE, Metrics, render
from world_server.query_encoder import EncoderReport


def lines(metrics: Metrics) -> list[str]:
    counts = metrics.counts(running=1, waiting=2, refused=3, expired=4)
    return render(counts).decode().splitlines()


def test_requests_are_counted_by_route_and_outcome() -> None:
    metrics = Metrics()
    metrics.count_request("search", "ok", 0.02)
    metrics.count_request("search", "ok", 0.3)
    metrics.count_request("search", "empty", 99.0)
    text = lines(metrics)
    assert 'world_requests_total{route="search",outcome="ok"} 2' in text
    assert 'world_requests_total{route="search",outcome="empty"} 1' in text
    assert 'world_request_seconds_count{route="search"} 3' in text
    assert 'world_request_seconds_bucket{route="search",le="0.025"} 1' in text
    assert 'world_request_seconds_bucket{route="search",le="0.5"} 2' in text
    assert 'world_request_seconds_bucket{route="search",le="10.0"} 2' in text
    assert 'world_request_seconds_bucket{route="search",le="+Inf"} 3' in text


def test_a_bound_belongs_to_its_bucket() -> None:
    metrics = Metrics()
    metrics.count_request("r", "ok", BUCKETS[0])
    assert f'world_request_seconds_bucket{{route="r",le="{BUCKETS[0]}"}} 1' in lines(metrics)


def test_steps_are_summed() -> None:
    metrics = Metrics()
    for _ in range(2):
        timings = Timings()
        timings.add("encode", 0.25)
        timings.add("fuse", 0.5)
        metrics.count_steps(timings)
    text = lines(metrics)
    assert 'world_step_seconds_total{step="encode"} 0.5' in text
    assert 'world_step_calls_total{step="fuse"} 2' in text


def test_gauges_switches_and_departures() -> None:
    metrics = Metrics()
    metrics.client_left = 5
    metrics.count_switch("done")
    text = lines(metrics)
    assert "world_running_calls 1" in text
    assert "world_waiting_calls 2" in text
    assert "world_refused_total 3" in text
    assert "world_expired_total 4" in text
    assert "world_client_left_total 5" in text
    assert 'world_switches_total{result="done"} 1' in text


def test_encoders_are_told_by_world() -> None:
    metrics = Metrics()
    metrics.degraded = 7
    busy = EncoderReport(batches=4, texts=10, hits=3, misses=10, restarts=2)
    reports = {"b": busy, "a": EncoderReport(state="starting")}
    shown = render(metrics.counts(running=0, waiting=0, refused=0, expired=0), reports)
    text = shown.decode().splitlines()
    assert "world_degraded_total 7" in text
    assert 'world_encoder_ready{world="a"} 0' in text
    assert 'world_encoder_batch_size{world="a"} 0' in text
    assert [line for line in text if 'world="b"' in line] == [
        'world_encoder_ready{world="b"} 1',
        'world_encoder_batches_total{world="b"} 4',
        'world_encoder_texts_total{world="b"} 10',
        'world_encoder_batch_size{world="b"} 2.5',
        'world_encoder_hits_total{world="b"} 3',
        'world_encoder_misses_total{world="b"} 10',
        'world_encoder_restarts_total{world="b"} 2',
    ]


def test_every_line_is_of_the_text_format_and_every_name_is_in_the_table() -> None:
    metrics = Metrics()
    metrics.count_request("search", "ok", 0.02)
    pattern = re.compile(r'[a-z_]+(\{([a-z]+="[^"]*",?)+\})? [0-9.e+-]+')
    text = lines(metrics)
    for line in text:
        if not line.startswith("#"):
            assert pattern.fullmatch(line), line
            name = line.split("{")[0].split(" ")[0]
            assert re.sub("_(bucket|sum|count)$", "", name) in TABLE
    for name, (kind, meaning) in TABLE.items():
        assert f"# TYPE {name} {kind}" in text
        assert f"# HELP {name} {meaning}" in text
        assert meaning.endswith(".")


def test_the_page_of_the_docs_names_every_metric() -> None:
    text = (ROOT / "docs" / "metrics.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.+) \|$", text, re.MULTILINE)
    assert rows == [(name, kind, meaning) for name, (kind, meaning) in TABLE.items()]
