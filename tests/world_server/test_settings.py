from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.conftest import ROOT
from world_core.indexes.devices import DEVICES
from world_server.errors import SettingsError
from world_server.settings import Settings, as_markdown, load, table


def test_defaults_need_nothing() -> None:
    assert load({}, {}) == Settings()
    assert Settings().host == "127.0.0.1"
    assert Settings().port == 8000


def test_flag_wins_over_environment_over_file_over_default(tmp_path: Path) -> None:
    config = tmp_path / "world.toml"
    config.write_text('port = 1\nqueue_limit = 11\nwait_s = 1\nworlds = ["a", "b"]\n')
    environment = {"WORLD_PORT": "2", "WORLD_QUEUE_LIMIT": "22", "OTHER_PORT": "9"}
    found = load({"port": 3, "host": None}, environment, config)
    assert (found.port, found.queue_limit, found.wait_s) == (3, 22, 1.0)
    assert found.worlds == ("a", "b")
    assert found.host == "127.0.0.1"


def test_the_file_may_be_named_by_the_environment(tmp_path: Path) -> None:
    config = tmp_path / "world.toml"
    config.write_text("port = 4\n")
    assert load({}, {"WORLD_CONFIG": str(config)}).port == 4


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("PORT", " 80 ", 80),
        ("WAIT_S", "2.5", 2.5),
        ("VERIFY", "no", False),
        ("ALLOW_NO_KEY", "TRUE", True),
        ("WORLDS", "a, b,,c ", ("a", "b", "c")),
        ("LOG_LEVEL", "debug", "debug"),
    ],
)
def test_environment_texts_become_values(name: str, text: str, value: object) -> None:
    assert getattr(load({}, {f"WORLD_{name}": text}), name.lower()) == value


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"WORLD_PORT": "eighty"}, "WORLD_PORT is 'eighty'"),
        ({"WORLD_VERIFY": "perhaps"}, "WORLD_VERIFY is 'perhaps'"),
        ({"WORLD_PORT": "65536"}, "port is 65536"),
        ({"WORLD_WORK_S": "0"}, "work_s is 0.0"),
        ({"WORLD_WORKERS": "0"}, "workers is 0"),
        ({"WORLD_LOG_LEVEL": "loud"}, "log_level is 'loud'"),
        ({"WORLD_ENCODER_PROCESS": "maybe"}, "encoder_process is 'maybe'"),
        ({"WORLD_BATCH_LIMIT": "0"}, "batch_limit is 0"),
        ({"WORLD_QUERY_CACHE_MB": "-1"}, "query_cache_mb is -1"),
        ({"WORLD_DENSE_DEVICE": "tpu"}, "dense_device is 'tpu'"),
        ({"WORLD_CORS_ORIGINS": "*"}, "'*'"),
        ({"WORLD_WAIT_S": "nan-sense"}, "WORLD_WAIT_S"),
        ({"WORLD_WAIT_S": "nan"}, "wait_s is nan"),
        ({"WORLD_WORK_S": "inf"}, "work_s is inf"),
    ],
)
def test_bad_values_are_named(environment: dict[str, str], said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load({}, environment)
    assert said in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("colour = 1\n", "colour"),
        ('port = "80"\n', "port"),
        ("verify = 1\n", "verify"),
        ("worlds = [1]\n", "worlds"),
        ("port = true\n", "port"),
        ("port =\n", "not TOML"),
    ],
)
def test_a_bad_file_is_refused(tmp_path: Path, text: str, said: str) -> None:
    config = tmp_path / "world.toml"
    config.write_text(text)
    with pytest.raises(SettingsError) as caught:
        load({}, {}, config)
    assert said in str(caught.value)
    assert str(config) in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"gone\.toml cannot be read"):
        load({}, {}, tmp_path / "gone.toml")


def test_the_environment_carries_every_setting_to_a_worker() -> None:
    changed = Settings(
        worlds=("a", "b"),
        port=0,
        wait_s=0.5,
        verify=False,
        keys=("k1", "k2"),
        keys_file="f",
        control_key="c",
        allow_no_key=True,
        log_level="debug",
        cors_origins=("http://x",),
        host="::1",
        workers=2,
        engine="local",
        engine_threads=3,
        encoder_threads=2,
        dense_device="cpu",
        reranker="tiny",
        rerank_top=3,
        plan_check=False,
        encoder_process="always",
        query_cache_mb=1,
        batch_limit=2,
        batch_wait_ms=0.5,
        max_running=5,
        queue_limit=6,
        work_s=7.0,
        body_limit=8,
        body_s=9.0,
        head_limit=2048,
        head_s=3.0,
        keep_alive_s=4,
        graceful_s=5,
        watch_s=0.1,
        ready_s=1.0,
        ready_deadline_s=2.0,
    )
    for row in dataclasses.fields(Settings):
        assert getattr(changed, row.name) != row.default, f"{row.name} is not covered"
    assert load({}, changed.to_environment()) == changed
    assert Settings().to_environment() == {}


def test_secrets_are_neither_shown_nor_given_flags() -> None:
    shown = repr(Settings(keys=("hush-1",), control_key="hush-2"))
    assert "hush" not in shown
    flags = {row.name: row.flag for row in table()}
    assert flags["keys"] == flags["control_key"] == ""
    assert flags["port"] == "--port"


def test_running_limit_is_eight_times_the_threads_unless_set() -> None:
    assert Settings(engine_threads=3).running_limit == 24
    assert Settings(engine_threads=3, max_running=100).running_limit == 100


@pytest.mark.parametrize(
    ("engine", "workers", "has_process"),
    [
        ("auto", 1, False), ("auto", 2, True), ("local", 1, False),
        ("local", 4, False), ("process", 1, True), ("process", 4, True),
    ],
)  # fmt: skip
def test_where_the_worlds_are_open(engine: str, workers: int, has_process: bool) -> None:
    assert Settings(engine=engine, workers=workers).has_engine_process is has_process


def test_an_unknown_place_for_the_engine_is_refused() -> None:
    with pytest.raises(SettingsError, match="engine is 'remote'"):
        Settings(engine="remote")


def test_every_setting_is_documented_and_read() -> None:
    text = as_markdown()
    sources = "\n".join(
        path.read_text("utf-8")
        for path in (ROOT / "world_server").rglob("*.py")
        if path.name != "settings.py"
    )
    for row in table():
        assert row.meaning.endswith(".")
        assert f"`{row.name}`" in text
        assert f"`{row.environment}`" in text
        assert f"settings.{row.name}" in sources or row.name == "max_running", row.name


def test_the_page_of_the_docs_is_current() -> None:
    assert (ROOT / "docs" / "settings.md").read_text("utf-8") == as_markdown()


@pytest.mark.parametrize("folders", [("a,b", "c"), (" a ", "[x]"), ('["q"]',), ("\u9577\u6c5f",)])
def test_lists_reach_the_workers_whatever_they_hold(folders: tuple[str, ...]) -> None:
    assert load({}, Settings(worlds=folders).to_environment()).worlds == folders


@pytest.mark.parametrize("text", ['["a"', '["a", 1]'])
def test_a_broken_json_list_is_refused_unseen(text: str) -> None:
    with pytest.raises(SettingsError, match="WORLD_KEYS is no JSON array") as caught:
        load({}, {"WORLD_KEYS": text})
    assert text not in str(caught.value)


def test_a_list_with_commas_may_begin_with_a_bracket() -> None:
    assert load({}, {"WORLD_WORLDS": "[a],b"}).worlds == ("[a]", "b")


@pytest.mark.parametrize("device", DEVICES)
def test_the_dense_devices_are_those_of_the_core(device: str) -> None:
    assert load({}, {"WORLD_DENSE_DEVICE": device}).dense_device == device
