"""A world as one file to hand on: a zstd-compressed tar named by the world id.

Packing the same folder twice gives the same bytes. Unpacking takes nothing on trust: members are
read one by one, only plain files with the names a world may have are written, sizes and the ratio
of compression are bounded, and the result is verified before it gets its place.
"""

from __future__ import annotations

import os
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import zstandard

from corpus_builder import publish
from corpus_builder.errors import BadSourceError
from corpus_builder.verifying import check_content
from corpus_builder.workspace import TEMPORARY, sync, sync_tree
from world_core import manifest as manifests
from world_core.errors import DamagedFileError
from world_core.manifest import MANIFEST_NAME, Manifest

LEVEL = 9
SUFFIX = ".tar.zst"
MOST_MEMBERS = 10_000
MOST_BYTES = 64 * 1024**3
MOST_RATIO = 200
RATIO_FROM = 16 * 1024 * 1024
"""Bytes below which the ratio is not looked at: small files of zeros are no bomb."""

TOP_FILES = frozenset({"recipe.toml", "pages.sqlite", "passages.bin", "questions.jsonl"})
FOLDERS = frozenset({"columns", "near", "sitelinks", "lexical", "dense", "sparse"})
_BLOCK = 1 << 20
_HINT = "Get the file again from where it was packed."


@dataclass(slots=True)
class _Budget:
    """What an archive may still unfold to."""

    packed: int
    most_bytes: int
    members: int = 0
    written: int = 0

    def member(self) -> None:
        self.members += 1
        if self.members > MOST_MEMBERS:
            raise BadSourceError(f"The archive has more than {MOST_MEMBERS} members.", hint=_HINT)

    def bytes(self, count: int) -> None:
        self.written += count
        if self.written > self.most_bytes:
            raise BadSourceError(
                f"The archive unfolds to more than {self.most_bytes} bytes.",
                hint="Give --max-bytes if you trust where it comes from.",
            )
        if self.written > max(RATIO_FROM, MOST_RATIO * self.packed):
            raise BadSourceError(
                f"The archive unfolds to more than {MOST_RATIO} times its size.", hint=_HINT
            )


def pack(world: Path, file: Path) -> Path:
    """Pack a world, verified first; return the file, named after the world if ``file`` is a folder.

    Raises:
        BadWorldError: the folder is no world, or is damaged.
        OSError: the file cannot be written.
    """
    folder = publish.resolve(world)
    manifest = manifests.read(folder)
    manifests.verify(folder, manifest)
    if file.is_dir():
        file /= f"{manifest.name}-{manifest.world_id[: publish.SHORT_ID]}{SUFFIX}"
    part = file.with_name(file.name + TEMPORARY)
    try:
        with (
            part.open("wb") as out,
            zstandard.ZstdCompressor(LEVEL).stream_writer(out) as stream,
            tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as archive,
        ):
            for name in [MANIFEST_NAME, *sorted(manifest.files)]:
                _add(archive, folder / name, f"{manifest.world_id}/{name}")
        sync(part)
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)
    return file


def unpack(file: Path, out: Path, *, most_bytes: int = MOST_BYTES) -> Path:
    """Unpack, verify and publish a world below ``out`` as a build would; return its folder.

    Raises:
        BadSourceError: no such file, no archive of a world, or one that is not safe.
        BadWorldError: what was unpacked is damaged or not what its id says.
        PublishError: the place is taken.
    """
    out.mkdir(parents=True, exist_ok=True)
    part = out / f".unpack-{os.getpid()}{TEMPORARY}"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    try:
        with _opened(file) as archive:
            world_id = _extract(archive, part, _Budget(file.stat().st_size, most_bytes))
        manifest = _checked(part, world_id)
        home = out / manifest.name
        publish.check_place(home)
        sync_tree(part)
        target = publish.place(part, manifest, home)
        publish.point(home, target)
        return target
    except (tarfile.TarError, zstandard.ZstdError, EOFError) as error:
        raise BadSourceError(f"{file} is not a packed world: {error}.", hint=_HINT) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


@contextmanager
def _opened(file: Path) -> Iterator[tarfile.TarFile]:
    try:
        source = file.open("rb")
    except OSError as error:
        raise BadSourceError(f"{file} cannot be read: {error.strerror}.", hint=_HINT) from error
    with (
        source,
        zstandard.ZstdDecompressor(max_window_size=2**27).stream_reader(source) as stream,
        tarfile.open(fileobj=stream, mode="r|") as archive,
    ):
        yield archive


def _add(archive: tarfile.TarFile, path: Path, name: str) -> None:
    info = tarfile.TarInfo(name)
    info.size = path.stat().st_size
    info.mode = 0o644
    with path.open("rb") as file:
        archive.addfile(info, file)


def _extract(archive: tarfile.TarFile, folder: Path, budget: _Budget) -> str:
    """Write the members that a world may have; return the world id they are named by."""
    world_id = ""
    for member in archive:
        budget.member()
        root, path = _split(member)
        if world_id and root != world_id:
            raise _unsafe(member.name, "belongs to a second world")
        world_id = root
        target = folder / path
        if target.exists():
            raise _unsafe(member.name, "comes twice")
        target.parent.mkdir(parents=True, exist_ok=True)
        content = archive.extractfile(member)
        if content is None:
            raise _unsafe(member.name, "has no content")
        with target.open("xb") as out:
            while block := content.read(_BLOCK):
                budget.bytes(len(block))
                out.write(block)
    if not world_id:
        raise BadSourceError("The archive is empty.", hint=_HINT)
    return world_id


def _split(member: tarfile.TarInfo) -> tuple[str, PurePosixPath]:
    """Return world id and path of a member, if it is one that a world may have."""
    if not member.isreg():
        raise _unsafe(member.name, "is a link, a folder or a device")
    if "\\" in member.name or "\0" in member.name or member.name.startswith("/"):
        raise _unsafe(member.name, "is no plain relative name")
    root, *parts = member.name.split("/")
    allowed = parts in ([MANIFEST_NAME], *([name] for name in TOP_FILES)) or (
        len(parts) == 2 and parts[0] in FOLDERS and parts[1] not in {"", ".", ".."}
    )
    if not allowed or len(root) != 64 or not set("0123456789abcdef").issuperset(root):
        raise _unsafe(member.name, "is not a file of a world")
    return root, PurePosixPath(*parts)


def _unsafe(name: str, reason: str) -> BadSourceError:
    return BadSourceError(f"The archive's member {name[:120]!a} {reason}.", hint=_HINT)


def _checked(folder: Path, world_id: str) -> Manifest:
    manifest = manifests.read(folder)
    if manifest.world_id != world_id:
        raise DamagedFileError(
            f"The archive is named {world_id[:12]}, its manifest says {manifest.world_id[:12]}.",
            hint=_HINT,
        )
    manifests.verify(folder, manifest)
    check_content(folder, manifest)
    return manifest
