"""The demo world: where it lies, and how it gets there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from world_core.errors import MissingPartError
from world_core.manifest import MANIFEST_NAME
from world_server.pointer import POINTER_NAME

NAME = "demo"
RECIPE = "atlas-demo"


def default_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of the demo world: below the user's data folder."""
    base = environment.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "searchworld" / "worlds" / NAME


def build_with_command(folder: Path) -> None:
    """Build the demo world by the builder's own command, so that the packages stay apart.

    Raises:
        MissingPartError: the builder is not installed, or failed.
    """
    run(
        [
            *(sys.executable, "-m", "corpus_builder.cli", "build"),
            *("--recipe", RECIPE, "--name", folder.name, "--out", str(folder.parent)),
        ]
    )


def ensure(folder: Path, build: Callable[[Path], None] = build_with_command) -> bool:
    """Build the demo world if it is not there, and say whether it was built.

    Raises:
        MissingPartError: it could not be built.
    """
    if _is_world(folder):
        return False
    folder.parent.mkdir(parents=True, exist_ok=True)
    build(folder)
    if not _is_world(folder):
        raise MissingPartError(
            f"The builder ended well, but {folder} holds no world.",
            hint=f"Remove {folder} and try again.",
        )
    return True


def _is_world(folder: Path) -> bool:
    """Say whether a world, or the pointer to one, lies in the folder."""
    return (folder / MANIFEST_NAME).exists() or (folder / POINTER_NAME).exists()


def run(command: Sequence[str]) -> None:
    """Run the builder's command, its output going where ours goes.

    Raises:
        MissingPartError: it cannot be started, or failed.
    """
    try:
        # The builder's modules are found as ours are, even when the project is not installed.
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        }
        subprocess.run(command, check=True, env=environment)  # noqa: S603 - fixed arguments
    except subprocess.CalledProcessError as error:
        raise MissingPartError(
            f"The demo world could not be built: the builder ended with {error.returncode}.",
            hint="The lines above say why.",
        ) from error
    except OSError as error:
        raise MissingPartError(
            f"The builder {command[0]!r} cannot be started ({error}).",
            hint="Install the project again, with the extra [builder].",
        ) from error
