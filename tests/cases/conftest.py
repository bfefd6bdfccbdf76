"""One build of each world and one server, for all cases."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.cases.worlds import (
    AS_THEY_ARE,
    HOSTS,
    HTML,
    KEY,
    Built,
    Served,
    built,
    made_archive,
    pages_folder,
    rehosted,
    rows,
)
from tests.support import running_server
from world_core import manifest as manifests


@pytest.fixture(scope="session")
def inputs(case_inputs: Path) -> Path:
    """Return the folder of the inputs of the cases."""
    return case_inputs


@pytest.fixture(scope="session")
def crawl_inputs(inputs: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return the inputs of the world ``crawl``: HTML files and archives."""
    folder = tmp_path_factory.mktemp("inputs")
    return [
        pages_folder(inputs, folder / "pages"),
        made_archive(inputs, folder),
        *(inputs / name for name in AS_THEY_ARE),
        *(rehosted(inputs / name, folder, host) for name, host in HOSTS.items()),
    ]


@pytest.fixture(scope="session")
def builds(
    inputs: Path, crawl_inputs: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Built]:
    """Build the worlds, two at a time."""
    out = tmp_path_factory.mktemp("worlds")
    dumps = [inputs / "corpus-dirty.jsonl", inputs / "corpus-cjk.jsonl", rows(out)]
    wanted: dict[str, Callable[[], Built]] = {
        "crawl": lambda: built(out, "crawl", crawl_inputs, *HTML),
        "cut": lambda: built(out, "cut", [inputs / "truncated-tail.warc.gz"]),
        "dumps": lambda: built(out, "dumps", dumps),
        "two-docs": lambda: built(out, "two-docs", [inputs / "corpus-two-docs.jsonl"]),
        "ties": lambda: built(out, "ties", [inputs / "corpus-ties.jsonl"]),
        "empty": lambda: built(out, "empty", [inputs / "empty.warc"], "--allow-empty"),
    }
    with ThreadPoolExecutor(2) as pool:
        made = {name: pool.submit(make) for name, make in wanted.items()}
        done = {name: one.result() for name, one in made.items()}
    for name, one in done.items():
        assert one.code in (0, 3), (name, one.errors)
    return done


@pytest.fixture(scope="session")
def served(builds: dict[str, Built], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Serve all worlds, and try to serve damaged ones beside them."""
    folder = tmp_path_factory.mktemp("served")
    broken = _broken(builds, folder)
    worlds = [str(build.folder) for build in builds.values()]
    worlds += [str(folder / name) for name in broken]
    with running_server(folder, "serve", *worlds, environment={"WORLD_KEYS": KEY}) as server:
        yield Served(server, builds, broken)


def _broken(builds: dict[str, Built], folder: Path) -> dict[str, str]:
    """Make damaged copies of a world; return the damaged file of each."""
    root = _version(builds["two-docs"])
    damaged: dict[str, str] = {}
    for number, path in enumerate(sorted(path for path in root.rglob("*") if path.is_file())):
        if path.stat().st_size:
            name = f"flipped-{number}"
            target = _copy(root, folder, name) / path.relative_to(root)
            content = bytearray(target.read_bytes())
            content[len(content) // 2] ^= 0x80
            target.write_bytes(content)
            damaged[name] = path.name
    codes = _copy(root, folder, "shortened") / "dense" / "codes.npy"
    codes.write_bytes(codes.read_bytes()[:-100])
    damaged["shortened"] = codes.name
    swapped = _copy(root, folder, "swapped") / "dense"
    shutil.rmtree(swapped)
    shutil.copytree(_version(builds["ties"]) / "dense", swapped)
    damaged["swapped"] = codes.name
    return damaged


def _copy(root: Path, folder: Path, name: str) -> Path:
    """Copy a world under another name, which would be served if the damage went unnoticed."""
    target = folder / name
    shutil.copytree(root, target)
    manifests.write(target, manifests.read(root).model_copy(update={"name": name}))
    return target


def _version(build: Built) -> Path:
    """Return the folder of the published version."""
    return build.folder / (build.folder / "current").read_text().strip()
