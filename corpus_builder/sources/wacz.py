"""Captures of WACZ packages: zip files with WARCs under ``archive/`` and a list of digests."""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
import stat
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from corpus_builder.capture import Capture, Loss, Shard
from corpus_builder.errors import BadSourceError
from corpus_builder.sources.members import IN_MEMORY
from corpus_builder.sources.warc import read_archive
from corpus_builder.textclean import path_text
from world_core.types import Instant

KIND = "wacz"
DATAPACKAGE_LIMIT = 16 * 1024 * 1024
ARCHIVE_LIMIT = 64 * 1024**3
_ARCHIVE = re.compile(r"archive/[^/]+\.w?arc(?:\.gz)?", re.IGNORECASE)
_ABSOLUTE = re.compile(r"[/\\]|[A-Za-z]:")


@dataclass(frozen=True, slots=True)
class WaczSource:
    """WACZ packages, one shard each.

    ``unverified`` accepts packages whose digests do not match. Nothing is ever unpacked by name.
    """

    paths: Sequence[Path]
    default_time: Instant = 0
    unverified: bool = False

    def shards(self) -> list[Shard]:
        """Return one shard a package.

        Raises:
            BadSourceError: a package is missing, is no zip file, holds no WARC, holds a link or a
                name that leads out of it, or does not match its digests.
        """
        for path in self.paths:
            with _opened(path) as package:
                _check(path, package, unverified=self.unverified)
        arguments = {"default_time": str(self.default_time)}
        return [Shard(KIND, path, dict(arguments)) for path in self.paths]

    def read(self, shard: Shard) -> Iterator[Capture | Loss]:
        """Yield the captures and losses of the package's archives by name."""
        default_time = int(shard.arguments.get("default_time", "0"))
        with _opened(shard.path) as package:
            yield from _remarks(path_text(shard.path.name), package)
            for name in _archives(package):
                origin = path_text(f"{shard.path.name}/{name}")
                with _copied(package, name) as file:
                    if file.tell() > ARCHIVE_LIMIT:
                        yield Loss(origin, 0, "too large")
                        continue
                    yield from read_archive(file, origin, default_time)


def _opened(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except (OSError, zipfile.BadZipFile) as error:
        raise BadSourceError(
            f"{path} is not a WACZ: {error}.", hint="Check the path, or fetch the file again."
        ) from error


def _check(path: Path, package: zipfile.ZipFile, *, unverified: bool) -> None:
    for info in package.infolist():
        if _is_unsafe(info):
            raise BadSourceError(
                f"{path} is refused: its entry {info.filename!r} is a link or leads out of it.",
                hint="Take the WARC files out of the package and give them instead.",
            )
    if not _archives(package):
        raise BadSourceError(
            f"{path} holds no WARC under archive/.", hint="Check how the package was made."
        )
    if unverified:
        return
    for name in _mismatches(package):
        raise BadSourceError(
            f"{path} is refused: {name!r} does not match its digest in datapackage.json.",
            hint="Fetch the file again, or accept it: --unverified, in a recipe unverified = true.",
        )


def _is_unsafe(info: zipfile.ZipInfo) -> bool:
    # orig_filename is the name as written; zipfile has already cut and turned the other.
    name = info.orig_filename.replace("\\", "/")
    outside = bool(_ABSOLUTE.match(name)) or posixpath.normpath(name).startswith("..")
    return outside or ".." in name.split("/") or stat.S_ISLNK(info.external_attr >> 16)


def _archives(package: zipfile.ZipFile) -> list[str]:
    return sorted(name for name in package.namelist() if _ARCHIVE.fullmatch(name))


def _datapackage(package: zipfile.ZipFile) -> dict[str, object]:
    """Return the package's description, empty if it is missing or unreadable."""
    try:
        with package.open("datapackage.json") as file:
            found = json.loads(file.read(DATAPACKAGE_LIMIT))
    except (KeyError, ValueError, zipfile.BadZipFile):
        return {}
    return found if isinstance(found, dict) else {}


def _resources(package: zipfile.ZipFile) -> dict[str, str]:
    """Return the written digest of each file by its name in the package."""
    listed = _datapackage(package).get("resources")
    digests: dict[str, str] = {}
    for entry in listed if isinstance(listed, list) else []:
        if isinstance(entry, dict):
            name = entry.get("path") or entry.get("name")
            # The first packages kept the digest one level lower.
            older = entry.get("stats")
            digest = entry.get("hash") or (older.get("hash") if isinstance(older, dict) else None)
            if isinstance(name, str) and isinstance(digest, str):
                digests[name] = digest
    return digests


def _mismatches(package: zipfile.ZipFile) -> Iterator[str]:
    for name, written in sorted(_resources(package).items()):
        algorithm, _, value = written.rpartition(":")
        if algorithm not in ("", "sha256", "md5"):
            continue
        digest = hashlib.new(algorithm or "sha256", usedforsecurity=False)
        try:
            with package.open(name) as file:
                while data := file.read(1024 * 1024):
                    digest.update(data)
        except (KeyError, zipfile.BadZipFile):
            yield name
            continue
        if digest.hexdigest() != value.lower():
            yield name


def _remarks(origin: str, package: zipfile.ZipFile) -> Iterator[Loss]:
    names = package.namelist()
    if not _resources(package):
        yield Loss(origin, 0, "package without digests", note=True)
    if not any(name.startswith("indexes/") for name in names):
        yield Loss(origin, 0, "package without index", note=True)
    if not any(name.startswith("pages/") for name in names):
        yield Loss(origin, 0, "package without page list", note=True)


def _copied(package: zipfile.ZipFile, name: str) -> BinaryIO:
    """Return the entry as a seekable file positioned at its end."""
    copy = cast("BinaryIO", tempfile.SpooledTemporaryFile(max_size=IN_MEMORY))  # noqa: SIM115 - the caller closes it
    with package.open(name) as file:
        while copy.tell() <= ARCHIVE_LIMIT and (data := file.read(1024 * 1024)):
            copy.write(data)
    return copy
