"""The manifest of a world: what it holds, what made it, and the digest of every file."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationError

from world_core.content import canonical_json
from world_core.errors import (
    BadInputError,
    DamagedFileError,
    ForeignWorldError,
    NewerFormatError,
)
from world_core.lexical_settings import LexicalSettings
from world_core.manifest_options import Part, RerankerSettings, SparseSettings, left_out
from world_core.types import Instant

FORMAT = 1
MANIFEST_NAME = "manifest.json"
SAMPLE_LIMIT = 1 << 20
"""Files up to this many bytes are hashed even by a sampled ``verify``."""

_SELF = "self_sha256"
_BLOCK = 1 << 20
_MANIFEST_LIMIT = 64 << 20
_WORLD_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_BUILD_HINT = "Name the folder of a world, or build one: corpus-builder build FILES... --name NAME."


def check_name(name: str) -> str:
    """Return the name of a world, or of a version of it, if it is a good one.

    Raises:
        BadInputError: it does not match ``[a-z0-9][a-z0-9._-]{0,63}``.
    """
    if not _WORLD_NAME.fullmatch(name):
        raise BadInputError(
            f"{name[:80]!a} cannot name a world.",
            hint="Use 1 to 64 of a-z, 0-9, dot, dash and underscore, a letter or digit first.",
        )
    return name


def _good_name(name: str) -> str:
    if not _WORLD_NAME.fullmatch(name):
        raise ValueError("not of the form [a-z0-9][a-z0-9._-]{0,63}")
    return name


_Name = Annotated[str, AfterValidator(_good_name)]
_Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_Count = Annotated[int, Field(ge=0)]


class FileDigest(Part):
    """The sha256 and the size in bytes of a file."""

    sha256: _Sha256
    bytes: _Count


class Canary(Part):
    """A query with the page ids it must bring up, best first; asked before a world is ready."""

    query: str
    page_ids: tuple[str, ...]


class EncoderSettings(Part):
    """How to load the encoder: ``world_core.encoders.load(kind, arguments)``."""

    kind: str
    arguments: dict[str, str | int] = Field(default_factory=dict)


class DenseSettings(Part):
    """The dense index: its tier, shape (rows, dim) and the digest of codes and scales."""

    kind: str
    dim: _Count
    rows: _Count
    vectors_digest: str


class FusionSettings(Part):
    """The weight of the dense score in the fused score, 0 to 1."""

    weight: Annotated[float, Field(ge=0.0, le=1.0)] = 0.5


class Counts(Part):
    """How much a world holds, and what its build left out by reason."""

    pages: _Count
    versions: _Count
    passages: _Count
    links: _Count = 0
    dead_links: _Count = 0
    dropped: dict[str, int] = Field(default_factory=dict)


class Manifest(Part):
    """What ``manifest.json`` says of a world; see ``docs/format.md``.

    ``files`` holds the digest of every other file by its path in the folder, with ``/``.
    ``capture_from`` and ``capture_to`` are the times of the first and last capture, ``clock`` is
    the world clock. ``encoder_id`` is "" exactly when the world has no dense index; ``sparse`` and
    ``reranker`` are left out of the file when there are none.
    """

    format: int = FORMAT
    name: _Name
    version: _Name = "1"
    world_id: _Sha256
    files: dict[str, FileDigest]
    encoder_id: str
    encoder: EncoderSettings | None
    analyzer_id: str
    languages: tuple[str, ...]
    lexical: LexicalSettings
    dense: DenseSettings | None
    sparse: SparseSettings | None = None
    fusion: FusionSettings = FusionSettings()
    reranker: RerankerSettings | None = None
    counts: Counts
    capture_from: Instant | None
    capture_to: Instant | None
    clock: Instant
    canaries: tuple[Canary, ...] = ()


def render(manifest: Manifest) -> bytes:
    """Return the bytes of ``manifest.json``: JSON with its own digest as ``self_sha256``."""
    fields = left_out(manifest.model_dump(mode="json"))
    fields[_SELF] = hashlib.sha256(canonical_json(fields)).hexdigest()
    text = json.dumps(fields, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8") + b"\n"


def write(folder: Path, manifest: Manifest) -> None:
    """Write the manifest into the folder, durably and in one step; it is the last file written.

    Raises:
        OSError: the folder cannot be written.
    """
    part = folder / f"{MANIFEST_NAME}.part"
    with part.open("wb") as file:
        file.write(render(manifest))
        file.flush()
        os.fsync(file.fileno())
    part.replace(folder / MANIFEST_NAME)
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read(folder: Path) -> Manifest:
    """Return the manifest of a world; its files are not looked at, see ``verify``.

    Raises:
        ForeignWorldError: no manifest, or one that is not of this format.
        NewerFormatError: a newer program wrote it.
        DamagedFileError: it cannot be read, or differs from its own digest.
    """
    path = folder / MANIFEST_NAME
    raw = _raw_manifest(folder)
    try:
        fields = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise _damaged(folder, MANIFEST_NAME, f"is not readable JSON ({error})") from error
    if not isinstance(fields, dict) or type(fields.get("format")) is not int:
        raise ForeignWorldError(
            f"{folder} is not a world: {MANIFEST_NAME} names no format.", hint=_BUILD_HINT
        )
    stated = fields.pop(_SELF, None)
    if stated != _own_digest(folder, fields):
        raise _damaged(folder, MANIFEST_NAME, "differs from its own digest")
    if fields["format"] > FORMAT:
        raise NewerFormatError(
            f"{path} has format {fields['format']}; this program reads up to {FORMAT}.",
            hint="Upgrade: pip install --upgrade searchworld.",
        )
    if fields["format"] != FORMAT:
        raise ForeignWorldError(
            f"{path} has format {fields['format']}, which never was.", hint=_BUILD_HINT
        )
    try:
        # As JSON: strict types of JSON, lists for tuples.
        manifest = Manifest.model_validate_json(canonical_json(fields))
    except ValidationError as error:
        raise ForeignWorldError(
            f"{path} is not ours: {_first(error)}.", hint=_BUILD_HINT
        ) from error
    # The digest covers the values; this covers the spelling, so that no bit at all is free.
    if render(manifest) != raw:
        raise _damaged(folder, MANIFEST_NAME, "is not spelled as it was written")
    return manifest


def digest_files(folder: Path) -> dict[str, FileDigest]:
    """Return the digest of every file in the folder but the manifest, by path, sorted.

    Raises:
        DamagedFileError: there is a link or something else that is no plain file.
        OSError: a file cannot be read.
    """
    paths = []
    for path, plain in _walk(folder):
        if not plain:
            raise _damaged(folder, path, "is a link or no plain file")
        paths.append(path)
    with _pool() as pool:
        return dict(zip(paths, pool.map(lambda path: _digest(folder / path), paths), strict=True))


def verify(folder: Path, manifest: Manifest, *, sample: bool = False) -> None:
    """Check that the folder holds exactly the files of the manifest, bit for bit.

    With ``sample``, files above ``SAMPLE_LIMIT`` are checked by size alone: fast for big worlds,
    but a flipped bit in them goes unseen until the full check.

    Raises:
        DamagedFileError: the first file that is missing, cut, changed, unlisted or a link.
    """
    for damage in damages(folder, manifest, sample=sample):
        raise damage


def damages(
    folder: Path, manifest: Manifest, *, sample: bool = False
) -> Iterator[DamagedFileError]:
    """Yield all damage ``verify`` looks for: first by the paths, then inside the files."""
    try:
        found = dict(_walk(folder))
    except OSError as error:
        yield _damaged(folder, str(error.filename), f"cannot be read ({error.strerror})")
        return
    for path in sorted({*found, *manifest.files}):
        if not _is_inside(path):
            yield _damaged(folder, path, "has a path that no file of a world may have")
        elif path not in found:
            yield _damaged(folder, path, "is missing")
        elif not found[path]:
            yield _damaged(folder, path, "is a link or no plain file")
        elif path not in manifest.files:
            yield _damaged(folder, path, f"is not listed in {MANIFEST_NAME}")
    # Only what the walk met is opened, so nothing is read through a link or outside the folder.
    listed = [path for path in sorted(manifest.files) if _is_inside(path) and found.get(path)]
    with _pool() as pool:
        for fault in pool.map(
            lambda path: _fault(folder, path, manifest.files[path], sample=sample), listed
        ):
            if fault is not None:
                yield fault


def _fault(
    folder: Path, path: str, expected: FileDigest, *, sample: bool
) -> DamagedFileError | None:
    """Return what is wrong with a listed file, None if nothing is."""
    target = folder / path
    try:
        size = target.stat().st_size
        if size != expected.bytes:
            return _damaged(folder, path, f"has {size} bytes instead of {expected.bytes}")
        if sample and size > SAMPLE_LIMIT:
            return None
        same = _digest(target) == expected
    except OSError as error:
        return _damaged(folder, path, f"cannot be read ({error.strerror})")
    return None if same else _damaged(folder, path, "differs from its digest in the manifest")


def _own_digest(folder: Path, fields: dict[str, object]) -> str:
    try:
        return hashlib.sha256(canonical_json(fields)).hexdigest()
    except BadInputError as error:
        raise _damaged(folder, MANIFEST_NAME, "holds values no manifest can hold") from error


def _raw_manifest(folder: Path) -> bytes:
    path = folder / MANIFEST_NAME
    try:
        with path.open("rb") as file:
            raw = file.read(_MANIFEST_LIMIT + 1)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ForeignWorldError(
            f"{folder} is not a world: it has no {MANIFEST_NAME}.", hint=_BUILD_HINT
        ) from error
    except OSError as error:
        raise _damaged(folder, MANIFEST_NAME, f"cannot be read ({error.strerror})") from error
    if len(raw) > _MANIFEST_LIMIT:
        raise _damaged(folder, MANIFEST_NAME, f"is larger than {_MANIFEST_LIMIT} bytes")
    return raw


def _first(error: ValidationError) -> str:
    """Return the first complaint of a validation as ``name: reason (value)``."""
    detail = error.errors(include_url=False)[0]
    place = ".".join(str(step) for step in detail["loc"])
    return f"{place}: {detail['msg']} (found {str(detail['input'])[:80]!a})"


def _damaged(folder: Path, path: str, what: str) -> DamagedFileError:
    return DamagedFileError(
        f"{path!r} of world {folder} {what}.",
        hint=f"See all damage with: world-server check {folder}; then remove the folder and "
        "get the world again: corpus-builder unpack, or corpus-builder build.",
    )


def _is_inside(path: str) -> bool:
    """True for a path that names a file below the folder on every system, in one spelling only."""
    if not path or "\0" in path or "\\" in path or path == MANIFEST_NAME:
        return False
    parts = PurePosixPath(path).parts
    return "/".join(parts) == path and not {"..", "/", "."} & set(parts) and ":" not in parts[0]


def _walk(folder: Path) -> Iterator[tuple[str, bool]]:
    """Yield every file but the manifest, sorted, and whether it is a plain file; enters no link."""
    names = []
    for root, folders, files in os.walk(folder, onerror=_raise, followlinks=False):
        inner = PurePosixPath(Path(root).relative_to(folder).as_posix())
        links = [name for name in folders if (Path(root) / name).is_symlink()]
        names += [str(inner / name) for name in (*files, *links)]
    for name in sorted(names):
        if name != MANIFEST_NAME:
            yield name, stat.S_ISREG((folder / name).lstat().st_mode)


def _raise(error: OSError) -> None:
    raise error


def _digest(path: Path) -> FileDigest:
    """Return digest and size of a file, read in blocks so that memory stays flat."""
    running = hashlib.sha256()
    size = 0
    with path.open("rb", buffering=0) as file:
        while block := file.read(_BLOCK):
            running.update(block)
            size += len(block)
    return FileDigest(sha256=running.hexdigest(), bytes=size)


def _pool() -> ThreadPoolExecutor:
    """Hashing leaves the interpreter lock, so threads use the cores; a disk gains from no more."""
    return ThreadPoolExecutor(min(8, os.cpu_count() or 1), thread_name_prefix="digest")
