"""Captures of a folder of HTML files that is a copy of a site or of a part of one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from corpus_builder.capture import Capture, Loss, Shard
from corpus_builder.errors import BadRecipeError, BadSourceError
from corpus_builder.sources.files import (
    ENDINGS,
    SHARD_SIZE,
    HtmlFile,
    html_files,
    other_files,
    quoted,
    read_body,
)
from corpus_builder.textclean import path_text
from world_core.types import Instant
from world_core.urls import canonical

KIND = "html"

INDEXES = frozenset({"index.html", "index.htm", "index.xhtml"})
"""Names of the pages that a server shows for a folder."""


@dataclass(frozen=True, slots=True)
class HtmlFolderSource:
    """A folder of HTML files below a base address, a thousand files a shard.

    ``strip_ending`` makes ``https://site.example/page`` of ``page.html``. ``time`` is the capture
    time of every page: a file's own date says when it was copied, not when it was crawled.
    """

    root: Path
    base_url: str
    time: Instant = 0
    strip_ending: bool = False

    def shards(self) -> list[Shard]:
        """Return the folder's slices by path.

        Raises:
            BadRecipeError: the base address is not one of the web.
            BadSourceError: the folder is missing or holds no HTML file.
        """
        if not canonical(self.base_url):
            raise BadRecipeError(
                f"The base address {self.base_url!r} of the folder {self.root} is not of the web.",
                hint='Give base_url = "https://site.example/" in the recipe.',
            )
        if not self.root.is_dir():
            raise BadSourceError(f"{self.root} is not a folder.", hint="Check the path.")
        files = html_files(self.root)
        if not files:
            raise BadSourceError(
                f"{self.root} holds no HTML file.", hint=f"Files must end in {', '.join(ENDINGS)}."
            )
        arguments = {
            "base_url": self.base_url if self.base_url.endswith("/") else self.base_url + "/",
            "time": str(self.time),
            "strip_ending": "yes" if self.strip_ending else "",
        }
        return [
            Shard(KIND, self.root, {**arguments, "first": str(first)})
            for first in range(0, len(files), SHARD_SIZE)
        ]

    def read(self, shard: Shard) -> Iterator[Capture | Loss]:
        """Yield a capture or a loss for each file; a link within the folder is a redirect.

        The address of a folder leads to its index page, as on a server. Files that are not HTML are
        noted.
        """
        first = int(shard.arguments["first"])
        for file in html_files(shard.path)[first : first + SHARD_SIZE]:
            read = _read(shard, file)
            yield read
            if isinstance(read, Capture) and PurePosixPath(file.path).name.lower() in INDEXES:
                yield _folder(shard, file, read.url)
        if not first:
            yield from [
                Loss(path_text(path), 0, "not HTML", note=True) for path in other_files(shard.path)
            ]


def _read(shard: Shard, file: HtmlFile) -> Capture | Loss:
    url = _address(shard, file.path)
    origin = path_text(file.path)
    if file.target is None:
        return Loss(origin, 0, "link out of the folder", url, note=True)
    time = int(shard.arguments["time"])
    if file.target:
        location = _address(shard, file.target)
        return Capture(url, time, origin, 0, status=308, location=location, body=b"")
    body, flaw = read_body(shard.path / file.path)
    return Loss(origin, 0, flaw, url) if flaw else Capture(url, time, origin, 0, body=body)


def _folder(shard: Shard, file: HtmlFile, index: str) -> Capture:
    """Return the redirect from the address of a folder to its index page."""
    folder = str(PurePosixPath(file.path).parent)
    below = "" if folder == "." else quoted(folder) + "/"
    return Capture(
        shard.arguments["base_url"] + below,
        int(shard.arguments["time"]),
        path_text(file.path),
        0,
        status=308,
        location=index,
        body=b"",
    )


def _address(shard: Shard, path: str) -> str:
    if path.lower().endswith(".gz"):
        path = path[: -len(".gz")]
    if shard.arguments["strip_ending"]:
        for ending in ENDINGS:
            if path.lower().endswith(ending):
                path = path[: -len(ending)]
                break
    return shard.arguments["base_url"] + quoted(path)
