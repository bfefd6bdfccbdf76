"""What the journeys share: small worlds, commands that refuse, and looking into processes."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from corpus_builder import cli
from tests.conftest import ROOT
from tests.support import command

PATIENCE = 60.0

PLACES = ("Norrvik", "Skarholm", "Stennes", "Alder Point", "Lune", "Fagerstad")


def rows(edition: str = "first") -> list[dict[str, str]]:
    """Return dump rows whose pages all say which edition of the world they are of."""
    return [
        {
            "url": f"https://harbour.example/{place.lower().replace(' ', '-')}",
            "title": f"Harbour of {place}, {edition} edition",
            "text": f"The harbour of {place} holds {40 + number} boats and a small lighthouse. "
            f"So says the {edition} edition of the pilot book.",
        }
        for number, place in enumerate(PLACES)
    ]


def publish(out: Path, name: str, *more: str, edition: str = "first") -> Path:
    """Build and publish a world of ``rows`` within this process; return its version folder."""
    out.mkdir(parents=True, exist_ok=True)
    dump = out / f"{name}.jsonl"
    dump.write_text("".join(json.dumps(row) + "\n" for row in rows(edition)), encoding="utf-8")
    words = ["build", str(dump), "--name", name, "--out", str(out), "--cache", str(out / "cache")]
    assert cli.main([*words, "--workers", "1", *more]) == 0
    return current(out / name)


def current(world: Path) -> Path:
    """Return the version folder that the pointer of a named world names."""
    return world / (world / "current").read_text(encoding="utf-8").strip()


def refused(
    *words: str, folder: Path = ROOT, environment: dict[str, str] | None = None
) -> list[str]:
    """Run a command that must refuse; return the lines it wrote to standard error.

    It must end with exit code 2 and, as its last line, one sentence that begins with its name.
    """
    ran = subprocess.run(
        [command(words[0]), *words[1:]],
        cwd=folder,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ran.returncode == 2, (ran.returncode, ran.stdout, ran.stderr)
    assert "Traceback" not in ran.stdout + ran.stderr
    lines = ran.stderr.splitlines()
    assert lines[-1].startswith(f"{words[0]}: "), lines
    assert sum(line.startswith(f"{words[0]}: ") for line in lines) == 1
    return lines


def eventually(found: Callable[[], object], what: str) -> None:
    """Wait until something is true."""
    deadline = time.monotonic() + PATIENCE
    while not found():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.05)


def children(pid: int) -> list[int]:
    """Return the worker processes of a server, oldest first."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text(encoding="ascii").split():
            if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                found.append(int(child))
    return sorted(found)


def engine_of(pid: int) -> int | None:
    """Return the engine process of a server, ``None`` while it has none."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text(encoding="ascii").split():
            with contextlib.suppress(FileNotFoundError):
                command = Path(f"/proc/{child}/cmdline").read_bytes()
                if b"world_server.engine_process" in command:
                    return int(child)
    return None


def open_files(pids: Sequence[int], folder: Path) -> list[str]:
    """Return the files below a folder that processes have open or mapped."""
    wanted = f"{folder.resolve()}/"
    found = []
    for pid in pids:
        maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace")
        found += [line.split(None, 5)[-1] for line in maps.splitlines() if wanted in line]
        for handle in Path(f"/proc/{pid}/fd").iterdir():
            try:
                target = str(handle.readlink())
            except FileNotFoundError:
                continue
            found += [target] if target.startswith(wanted) else []
    return found
