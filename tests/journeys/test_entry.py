"""The commands of the base install name what is missing instead of breaking."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import ROOT


def run(module: str, missing: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        f"from {module}.entry import main\nsys.exit(main({list(arguments)!r}))"
    )
    return subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("module", "missing", "extra"),
    [
        ("world_server", "numpy", "[server,cpu]"),
        ("world_server", "uvicorn", "[server,cpu]"),
        ("corpus_builder", "numpy", "[builder,cpu]"),
    ],
)
def test_a_missing_package_is_one_sentence(module: str, missing: str, extra: str) -> None:
    shown = run(module, missing, "--help")
    assert shown.returncode == 2
    assert shown.stderr.count("\n") == 1
    assert missing in shown.stderr
    assert extra in shown.stderr


@pytest.mark.parametrize("module", ["world_server", "corpus_builder"])
def test_with_everything_there_the_command_runs(module: str) -> None:
    shown = run(module, "a_package_nobody_has", "--help")
    assert shown.returncode == 0
    assert "usage: " in shown.stdout
