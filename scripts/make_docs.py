"""Writes the pages of ``docs/`` that are made from code, or checks that they are current.

usage: make_docs.py [--check]
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import corpus_builder.errors
import world_client.errors
import world_core.errors
import world_server.errors
from world_server import settings

ROOT = Path(__file__).resolve().parent.parent
COMMANDS = {
    "world-server": ("serve", "demo", "get", "check", "plan", "setup", "settings"),
    "corpus-builder": ("build", "plan", "inspect", "pack", "unpack", "recipes"),
    "world-client": ("search", "fetch"),
}
TREES = (
    ("world_core", world_core.errors),
    ("world_server", world_server.errors),
    ("corpus_builder", corpus_builder.errors),
    ("world_client", world_client.errors),
)


def main() -> int:
    """Write the pages; with ``--check`` return 1 when one of them differs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    stale = []
    for name, text in pages().items():
        path = ROOT / "docs" / name
        if check and (not path.is_file() or path.read_text(encoding="utf-8") != text):
            stale.append(name)
        elif not check:
            path.write_text(text, encoding="utf-8")
    if stale:
        print(f"not current: {', '.join(stale)}; run scripts/docs", file=sys.stderr)
    return 1 if stale else 0


def pages() -> dict[str, str]:
    """Return every generated page by file name."""
    return {
        "settings.md": settings.as_markdown(),
        "errors.md": errors_page(),
        "commands.md": commands_page(),
    }


def errors_page() -> str:
    """Return the table of every error a package raises on purpose."""
    rows = ["# Errors", "", "Made from the error trees of the packages by `scripts/docs`.", ""]
    for package, module in TREES:
        rows += [
            f"## {package}",
            "",
            "| error | code | status or exit | meaning |",
            "|---|---|---|---|",
        ]
        rows += [error_row(kind) for kind in error_classes(module)]
        rows.append("")
    return "\n".join(rows)


def error_classes(module: ModuleType) -> list[type[Exception]]:
    """Return the module's own error classes in the order they are written."""
    return [
        kind
        for kind in vars(module).values()
        if isinstance(kind, type)
        and issubclass(kind, Exception)
        and kind.__module__ == module.__name__
    ]


def error_row(kind: type[Exception]) -> str:
    """Return one row of the table."""
    code = getattr(kind, "code", getattr(kind, "outcome", ""))
    code = code if isinstance(code, str) else getattr(kind, "outcome", "")
    status = getattr(kind, "status", getattr(kind, "exit_code", ""))
    meaning = re.sub(r"\s+", " ", (kind.__doc__ or "").split("\n\n")[0]).strip()
    return f"| `{kind.__name__}` | `{code}` | {status} | {meaning} |"


def commands_page() -> str:
    """Return the help text of every command."""
    rows = ["# Commands", "", "The help texts of the commands, written by `scripts/docs`.", ""]
    for command, parts in COMMANDS.items():
        for words in ([command], *([command, part] for part in parts)):
            rows += [f"## {' '.join(words)}", "", "```", help_text(words), "```", ""]
    return "\n".join(rows)


def help_text(words: list[str]) -> str:
    """Return what the command prints for ``--help``, at a width of 100."""
    program = str(Path(sys.executable).with_name(words[0]))
    shown = subprocess.run(
        [program, *words[1:], "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"},
    )
    return shown.stdout.rstrip()


if __name__ == "__main__":
    sys.exit(main())
