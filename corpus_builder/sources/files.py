"""HTML files of a folder tree, in a fixed order, without ever leaving the tree."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from corpus_builder.coding import BODY_LIMIT
from corpus_builder.decoders import PackedError, gzip_decoder, unpacked

ENDINGS = (".html", ".htm", ".xhtml")
SHARD_SIZE = 1000
_PATH_CHARACTERS = "/!$&'()*+,;=:@~"


@dataclass(frozen=True, slots=True)
class HtmlFile:
    """A file of the tree: its path below the root with ``/``, and the file a link leads to.

    ``target`` is "" for a file proper, the path below the root for a link to a file of the same
    tree, and None for a link that leads out of the tree or nowhere.
    """

    path: str
    target: str | None = ""


def html_files(root: Path) -> list[HtmlFile]:
    """Return the HTML files below the root by path; linked folders are not entered."""
    found: list[HtmlFile] = []
    real_root = root.resolve()
    for file in _files(root):
        if _is_html(file):
            target = _target(file, real_root) if file.is_symlink() else ""
            found.append(HtmlFile(file.relative_to(root).as_posix(), target))
    return sorted(found, key=lambda file: os.fsencode(file.path))


def other_files(root: Path) -> list[str]:
    """Return the paths below the root of the files that ``html_files`` leaves out, in order."""
    found = [file.relative_to(root).as_posix() for file in _files(root) if not _is_html(file)]
    return sorted(found, key=os.fsencode)


def _files(root: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(root, followlinks=False):
        yield from [Path(folder, name) for name in names]


def _is_html(file: Path) -> bool:
    return file.name.lower().removesuffix(".gz").endswith(ENDINGS)


def _target(link: Path, real_root: Path) -> str | None:
    resolved = Path(os.path.realpath(link))
    if not resolved.is_file() or not resolved.is_relative_to(real_root):
        return None
    return resolved.relative_to(real_root).as_posix()


def read_body(file: Path) -> tuple[bytes, str]:
    """Return the file's content, unpacked if it is gzip, and "" or why it cannot be used."""
    parts: list[bytes] = []
    size = 0
    try:
        for piece in _pieces(file):
            parts.append(piece)
            size += len(piece)
            if size > BODY_LIMIT:
                return b"", "too large"
    except PackedError as error:
        return b"", str(error)
    except OSError as error:
        return b"", f"unreadable: {error.strerror}"
    return b"".join(parts), ""


def _pieces(file: Path) -> Iterator[bytes]:
    with file.open("rb") as stream:
        if file.name.lower().endswith(".gz"):
            yield from unpacked(stream, gzip_decoder)
        else:
            yield stream.read(BODY_LIMIT + 1)


def quoted(path: str) -> str:
    """Return a path as it stands in an address, percent-encoded where needed."""
    return quote(os.fsencode(path), safe=_PATH_CHARACTERS)
