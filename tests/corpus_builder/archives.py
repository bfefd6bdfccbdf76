"""Writes archive records for tests, well-made and damaged."""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Iterable
from pathlib import Path

from corpus_builder.capture import Capture, Loss, Source

PAGE = "<html><head><title>{0}</title></head><body><h1>{0}</h1><p>Text of {0}.</p></body></html>"


def page(name: str) -> bytes:
    """Return a small HTML page about a name."""
    return PAGE.format(name).encode()


def http(
    body: bytes,
    *,
    status: str = "200 OK",
    headers: Iterable[tuple[str, str]] = (("Content-Type", "text/html; charset=utf-8"),),
    length: bool = True,
    newline: str = "\r\n",
) -> bytes:
    """Return an HTTP response as it stands in a record's block."""
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in headers)]
    if length:
        lines.append(f"Content-Length: {len(body)}")
    return newline.join([*lines, "", ""]).encode("latin-1") + body


def warc(
    block: bytes,
    *,
    uri: str | None = "https://pages.example/a",
    kind: str = "response",
    date: str = "2026-01-15T08:00:00Z",
    content_type: str = "application/http; msgtype=response",
    length: int | str | None = None,
    extra: Iterable[tuple[str, str]] = (),
    end: bytes = b"\r\n\r\n",
) -> bytes:
    """Return a WARC record; ``length`` writes another length than the block's."""
    fields = [("WARC-Type", kind), ("WARC-Date", date), ("Content-Type", content_type)]
    if uri is not None:
        fields.append(("WARC-Target-URI", uri))
    fields.extend(extra)
    if length != "":
        fields.append(("Content-Length", str(len(block) if length is None else length)))
    head = "".join(f"{name}: {value}\r\n" for name, value in fields)
    return b"WARC/1.0\r\n" + head.encode() + b"\r\n" + block + end


def good(name: str) -> bytes:
    """Return a sound record of the page ``https://pages.example/<name>``."""
    return warc(http(page(name)), uri=f"https://pages.example/{name}")


def digest(block: bytes) -> tuple[str, str]:
    """Return the header with the block's SHA-1."""
    value = base64.b32encode(hashlib.sha1(block, usedforsecurity=False).digest()).decode()
    return "WARC-Block-Digest", f"sha1:{value}"


def packed(*records: bytes) -> bytes:
    """Return the records as one gzip member each."""
    return b"".join(gzip.compress(record, 9, mtime=0) for record in records)


def read_all(source: Source) -> tuple[list[Capture], list[Loss]]:
    """Return everything a source yields, captures and losses apart."""
    captures: list[Capture] = []
    losses: list[Loss] = []
    for shard in source.shards():
        for item in source.read(shard):
            if isinstance(item, Capture):
                captures.append(item)
            else:
                losses.append(item)
    return captures, losses


def written(folder: Path, name: str, content: bytes) -> Path:
    """Write a file and return its path."""
    path = folder / name
    path.write_bytes(content)
    return path
