"""The container files: valid for their checkers, and as closed as they promise.

No container engine is needed: the files are read, linted and checked against the compose schema.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.conftest import ROOT
from world_server import cli
from world_server.settings import table

DOCKERFILE = ROOT / "deploy" / "Dockerfile"
IGNORED = ROOT / "deploy" / "Dockerfile.dockerignore"
COMPOSE = ROOT / "deploy" / "compose.yaml"
ROOT_COMPOSE = ROOT / "compose.yaml"
SERVICES = ("world", "world-gpu")
UID = "10001:10001"
SECRET = re.compile(
    r"(?i)(password|passwd|secret|token|api_?key|keys?_file|control_key)\s*[:=]\s*\S"
)


def _run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(Path(sys.executable).with_name(name)), *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def _instructions() -> list[tuple[str, str]]:
    """Return the instructions of the Dockerfile, continued lines joined."""
    text = DOCKERFILE.read_text(encoding="utf-8")
    joined = re.sub(r"\\\n\s*", " ", re.sub(r"(?m)^\s*#.*\n", "", text))
    found = [line.split(None, 1) for line in joined.splitlines() if line.strip()]
    return [(name, re.sub(r"\s+", " ", value)) for name, value in found]


def _stages() -> dict[str, tuple[str, list[tuple[str, str]]]]:
    """Return each stage's base and its instructions."""
    stages: dict[str, tuple[str, list[tuple[str, str]]]] = {}
    current: list[tuple[str, str]] = []
    for name, value in _instructions():
        if name == "FROM":
            base, _, stage = value.partition(" AS ")
            current = []
            stages[stage] = (base, current)
        else:
            current.append((name, value))
    return stages


def _final(target: str) -> list[tuple[str, str]]:
    """Return all instructions that the image of a target is made by, oldest first."""
    stages, found, name = _stages(), list[tuple[str, str]](), target
    while name in stages:
        base, instructions = stages[name]
        found = [*instructions, *found]
        name = base
    return found


def _last(target: str, instruction: str) -> str:
    return [value for name, value in _final(target) if name == instruction][-1]


def _yaml(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = YAML(typ="safe").load(path)
    return loaded


def _service(name: str) -> dict[str, Any]:
    service: dict[str, Any] = _yaml(COMPOSE)["services"][name]
    return service


@pytest.mark.parametrize("path", [COMPOSE, ROOT_COMPOSE], ids=["deploy", "root"])
def test_compose_files_follow_the_schema(path: Path) -> None:
    ran = _run("check-jsonschema", "--builtin-schema", "vendor.compose-spec", str(path))
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_schema_checker_finds_a_fault(tmp_path: Path) -> None:
    wrong = tmp_path / "compose.yaml"
    text = COMPOSE.read_text(encoding="utf-8")
    wrong.write_text(text.replace("cap_drop: [ALL]", "cap_dropped: [ALL]"))
    ran = _run("check-jsonschema", "--builtin-schema", "vendor.compose-spec", str(wrong))
    assert ran.returncode != 0
    assert "cap_dropped" in ran.stdout + ran.stderr


def test_the_dockerfile_passes_the_linter() -> None:
    ran = _run("hadolint", "--failure-threshold", "warning", str(DOCKERFILE))
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_linter_finds_a_fault(tmp_path: Path) -> None:
    wrong = tmp_path / "Dockerfile"
    wrong.write_text("FROM debian:latest\nRUN cd /src\n")
    ran = _run("hadolint", "--failure-threshold", "warning", str(wrong))
    assert ran.returncode != 0
    assert "DL3007" in ran.stdout


def test_the_root_file_includes_the_other() -> None:
    assert _yaml(ROOT_COMPOSE) == {"include": ["deploy/compose.yaml"]}


def test_both_targets_exist_and_cpu_is_the_default() -> None:
    stages = list(_stages())
    assert {"cpu", "gpu"} <= set(stages)
    assert stages[-1] == "cpu"


@pytest.mark.parametrize("target", ["cpu", "gpu"])
def test_images_run_as_nobody_special(target: str) -> None:
    assert _last(target, "USER") == UID
    made = " ".join(value for name, value in _final(target) if name == "RUN")
    assert "useradd --uid 10001" in made
    # Nothing but the volume belongs to the user, so the program cannot change itself.
    copies = [value for name, value in _final(target) if name == "COPY"]
    assert copies == [f"--from=build-{target} /opt/searchworld /opt/searchworld"]
    assert made.count("--owner=10001") == 1


@pytest.mark.parametrize("target", ["cpu", "gpu"])
def test_images_hold_no_build_tree(target: str) -> None:
    final = _final(target)
    assert not any(name == "COPY" and "--from=" not in value for name, value in final)
    assert not any(name == "RUN" and "pip" in value for name, value in final)


@pytest.mark.parametrize("target", ["cpu", "gpu"])
def test_images_install_the_distribution_with_its_pins(target: str) -> None:
    (installed,) = [value for name, value in _stages()[f"build-{target}"][1] if name == "RUN"]
    assert f'".[server,{target},builder]"' in installed
    assert "--constraint constraints/constraints.txt" in installed
    assert "world-server setup minilm" in installed
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for extra in ("server", target, "builder"):
        assert re.search(rf"^{extra} = \[", project, re.MULTILINE)


def test_every_package_of_the_project_is_copied() -> None:
    copied = {value.split()[0] for name, value in _stages()["source"][1] if name == "COPY"}
    packages = {path.parent.name for path in ROOT.glob("*/py.typed")}
    assert packages
    assert packages <= copied
    allowed = {line[1:] for line in IGNORED.read_text().splitlines() if line.startswith("!")}
    needed = {
        word
        for name, value in _stages()["source"][1]
        if name == "COPY"
        for word in value.split()[:-1]
    }
    assert needed == allowed
    assert all((ROOT / name).exists() for name in needed)


def test_the_entry_point_is_one_plain_command() -> None:
    for target in ("cpu", "gpu"):
        command = json.loads(_last(target, "ENTRYPOINT")) + json.loads(_last(target, "CMD"))
        assert shlex.join(command) == (
            "world-server demo --host 0.0.0.0 --port 8000 --allow-no-key"
        )
        options = cli._parser().parse_args(command[1:])
        assert options.host == "0.0.0.0"  # noqa: S104  behind a port published on loopback
        assert (options.port, options.allow_no_key) == (8000, True)


@pytest.mark.parametrize("target", ["cpu", "gpu"])
def test_images_say_how_they_are(target: str) -> None:
    probe = _last(target, "HEALTHCHECK")
    assert "http://127.0.0.1:8000/ready" in probe
    assert '"python"' in probe
    assert _last(target, "EXPOSE") == "8000"
    labels = _last(target, "LABEL")
    for name in ("title", "description", "licenses"):
        assert f"org.opencontainers.image.{name}=" in labels


@pytest.mark.parametrize("target", ["cpu", "gpu"])
def test_images_write_to_the_volume_only(target: str) -> None:
    assert json.loads(_last(target, "VOLUME")) == ["/data"]
    environment = _last(target, "ENV")
    assert "PYTHONDONTWRITEBYTECODE=1" in environment
    assert "HOME=/data" in environment
    assert "XDG_DATA_HOME=/data" in environment


@pytest.mark.parametrize("path", [DOCKERFILE, COMPOSE, ROOT_COMPOSE], ids=lambda p: p.name)
def test_no_secret_in_a_file(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not SECRET.search(text)
    assert not re.search(r"(?m)^ARG (?!PYTHON_IMAGE=)", text)
    secret = [row.environment for row in table() if not row.flag]
    assert secret
    assert not any(name in text for name in secret)


def test_the_secret_finder_finds_one() -> None:
    assert SECRET.search("POSTGRES_PASSWORD=hunter2")
    assert SECRET.search("api_key: abc")


@pytest.mark.parametrize("name", SERVICES)
def test_services_are_closed(name: str) -> None:
    service = _service(name)
    assert service["user"] == UID
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "cap_add" not in service
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not service.get("privileged", False)
    assert not {"environment", "env_file", "secrets", "network_mode", "pid"} & set(service)
    (scratch,) = service["tmpfs"]
    assert scratch.startswith("/tmp:size=")


@pytest.mark.parametrize("name", SERVICES)
def test_ports_are_published_on_loopback_only(name: str) -> None:
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+:8000", port) for port in _service(name)["ports"])


def test_the_plain_service_is_on_port_8000_and_needs_no_profile() -> None:
    service = _service("world")
    assert service["ports"] == ["127.0.0.1:8000:8000"]
    assert "profiles" not in service


def test_the_gpu_is_behind_its_profile_and_apart() -> None:
    plain, gpu = _service("world"), _service("world-gpu")
    assert gpu["profiles"] == ["gpu"]
    assert gpu["build"]["target"] == "gpu"
    (device,) = gpu["deploy"]["resources"]["reservations"]["devices"]
    assert device["capabilities"] == ["gpu"]
    assert not set(plain["ports"]) & set(gpu["ports"])
    assert not set(plain["volumes"]) & set(gpu["volumes"])


@pytest.mark.parametrize("name", SERVICES)
def test_services_keep_worlds_in_a_volume(name: str) -> None:
    (volume,) = _service(name)["volumes"]
    source, target = volume.split(":")
    assert target == "/data"
    assert source in _yaml(COMPOSE)["volumes"]


@pytest.mark.parametrize("name", SERVICES)
def test_services_build_what_the_dockerfile_offers(name: str) -> None:
    build = _service(name)["build"]
    assert (COMPOSE.parent / build["context"]).resolve() == ROOT
    assert ROOT / build["dockerfile"] == DOCKERFILE
    assert build["target"] in _stages()


@pytest.mark.parametrize("name", SERVICES)
def test_services_run_and_probe_what_the_image_does(name: str) -> None:
    service = _service(name)
    target = service["build"]["target"]
    assert service["command"] == json.loads(_last(target, "CMD"))
    probe = _last(target, "HEALTHCHECK")
    assert json.loads(probe[probe.index("[") :]) == service["healthcheck"]["test"][1:]
    assert service["healthcheck"]["test"][0] == "CMD"


@pytest.mark.parametrize("name", SERVICES)
def test_services_get_time_to_finish(name: str) -> None:
    seconds = next(int(row.default) for row in table() if row.name == "graceful_s")
    assert int(_service(name)["stop_grace_period"].removesuffix("s")) > seconds
