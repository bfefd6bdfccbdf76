from __future__ import annotations

import tomllib

import pytest

from corpus_builder.installed import PACKAGES, check_packages
from tests.conftest import ROOT
from world_core.errors import MissingPartError


def test_here_all_are_installed() -> None:
    check_packages()


def test_the_missing_one_is_named_with_the_command_that_brings_it() -> None:
    with pytest.raises(MissingPartError) as caught:
        check_packages(["brotli", "no_such_package", "lz4"])
    assert "no_such_package is not installed" in caught.value.sentence
    assert "pip install 'searchworld[builder]'" in caught.value.hint


def test_all_packages_of_the_extra_are_asked_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = project["optional-dependencies"]["builder"]
    extra = {line.partition(">")[0].replace("-", "_") for line in lines}
    # The server's packages are needed to start at all.
    assert extra - {"searchworld[server]"} == set(PACKAGES)
