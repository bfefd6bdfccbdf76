"""The inputs of the cases, put into few worlds, and what the tests ask of them.

Several archives hold the same addresses. All but one of them get another host of equal length, so
that they can be one world and still be told apart.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import brotli
import zstandard

from tests.corpus_builder.archives import http, warc
from tests.support import Answer, RunningServer, build

KEY = "key-of-the-cases"
CLOCK = "2026-02-20"
HOST = b"pages.example"
HOSTS = {
    "no-target-uri.warc": b"case1.example",
    "no-blank-line-between.warc": b"case2.example",
    "content-length-huge.warc": b"case3.example",
    "whole-file-gzip.warc.gz": b"case4.example",
    "redirect-loop-slash.warc": b"case5.example",
    "wacz-no-index-no-pages.wacz": b"case6.example",
}
AS_THEY_ARE = (
    "corrupt-middle.warc.gz",
    "revisit-chain-28.warc.gz",
    "percent2f.warc",
    "www-www2.warc",
)
HTML = ("--base-url", "https://pages.example/", "--strip-ending")
NESTED = (330, 1000, 5000, 20000, 200_000)
SENTENCE = (
    "The signal mast on the western pier number {} shows two green lights when the harbour is open "
    "and one red light when ships have to wait."
)
ZEROS = 64 << 20
SHORT_TEXTS = ("栈", "404 error", "ok", "ՆԵՐԱԾԱԿԱՆ", "https://x.example/a?b=c")
TIMES = 20


@dataclass(frozen=True)
class Built:
    """What a build came to: exit code, what it printed, its report."""

    code: int
    output: str
    errors: str
    folder: Path
    report: dict[str, object] = field(default_factory=dict)

    @property
    def losses(self) -> list[tuple[str, int, str]]:
        """File, offset and reason of every listed loss that is no note."""
        return list(self._listed(note=False))

    @property
    def notes(self) -> list[tuple[str, int, str]]:
        """File, offset and reason of every listed note."""
        return list(self._listed(note=True))

    def _listed(self, *, note: bool) -> Iterator[tuple[str, int, str]]:
        listed = self.report["listed"]
        assert isinstance(listed, list)
        for loss in listed:
            if loss["note"] is note:
                yield loss["origin"], loss["offset"], loss["reason"]

    def count(self, name: str) -> int:
        """Return a count of the world, such as ``pages``."""
        counts = self.report["counts"]
        assert isinstance(counts, dict)
        return int(counts[name])

    @property
    def world_id(self) -> str:
        return str(self.report["world_id"])

    @property
    def worker_mib(self) -> int:
        """Highest memory of a worker process in MiB."""
        peak = self.report["peak_memory_mib"]
        assert isinstance(peak, dict)
        return int(peak["worker"])


def built(out: Path, name: str, inputs: Sequence[Path], *options: str) -> Built:
    """Run ``corpus-builder build`` on the inputs; the world is in ``out / name``."""
    choice = ["--lexical", "tantivy", "--encoder", "tiny", "--workers", "1", "--clock", CLOCK]
    done = build(
        *map(str, inputs),
        *("--name", name, "--out", str(out), "--cache", str(out / "cache"), "--json"),
        *choice,
        *options,
    )
    report = json.loads(done.stdout) if done.stdout.startswith("{") else {}
    return Built(done.returncode, done.stdout, done.stderr, out / name, report)


@dataclass(frozen=True)
class Served:
    """Worlds and the one server that serves them all."""

    server: RunningServer
    builds: dict[str, Built]
    broken: dict[str, str]
    """Worlds that must not be served, and the file that is damaged in each."""

    def ask(self, path: str, content: object | bytes | None = None, **headers: str) -> Answer:
        """Send a request with the server's key."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.server.ask(path, content, {"Authorization": f"Bearer {KEY}", **named})

    def fetch(self, world: str, url: str) -> dict[str, object]:
        """Fetch a page on the native route."""
        return parsed(self.ask(f"/w/{world}/v1/fetch", {"url": url}))

    def text(self, world: str, url: str) -> str:
        """Fetch a page that must be there and return its text."""
        answer = self.fetch(world, url)
        assert answer["outcome"] == "ok", answer
        return str(answer["text"])

    def links(self, world: str, query: str, **fields: object) -> list[str]:
        """Search on the native route and return the addresses found."""
        answer = parsed(self.ask(f"/w/{world}/v1/search", {"query": query, **fields}))
        hits = answer["hits"]
        assert isinstance(hits, list)
        return [hit["url"] for hit in hits]

    def reads(self, world: str, path: str, content: object = None, **headers: str) -> Answer:
        """Ask Jina Reader's route for a page."""
        return self.ask(f"/w/{world}{path}", content, **headers)


def parsed(answer: Answer) -> dict[str, object]:
    """Return the JSON object of an answer that must be 200."""
    assert answer.status == 200, (answer.status, answer.body[:500])
    value = answer.json()
    assert isinstance(value, dict)
    return value


def rehosted(source: Path, folder: Path, host: bytes) -> Path:
    """Copy an archive with another host of equal length, packed as it was packed."""
    assert len(host) == len(HOST)
    target = folder / source.name
    content = source.read_bytes()
    if source.suffix == ".gz":
        target.write_bytes(_repacked(content, host))
    elif source.suffix == ".wacz":
        target.write_bytes(_rehosted_package(content, host))
    else:
        target.write_bytes(content.replace(HOST, host))
    return target


def _repacked(content: bytes, host: bytes) -> bytes:
    """Return gzip data with another host, in as many members as before."""
    members = []
    while content:
        unpacker = zlib.decompressobj(wbits=31)
        members.append(unpacker.decompress(content).replace(HOST, host))
        content = unpacker.unused_data
    return b"".join(gzip.compress(member, mtime=0) for member in members)


def _rehosted_package(content: bytes, host: bytes) -> bytes:
    """Return a WACZ with another host and the digests that follow from it, else unchanged."""
    before = zipfile.ZipFile(io.BytesIO(content))
    after = io.BytesIO()
    name = "archive/data.warc.gz"
    data = before.read(name)
    fresh = _repacked(data, host)
    with zipfile.ZipFile(after, "w") as package:
        for info in before.infolist():
            entry = fresh if info.filename == name else before.read(info)
            old, new = (hashlib.sha256(part).hexdigest().encode() for part in (data, fresh))
            package.writestr(info, entry.replace(old, new))
    return after.getvalue()


def pages_folder(inputs: Path, folder: Path) -> Path:
    """Return a folder of all HTML inputs and of the nested pages."""
    folder.mkdir()
    for path in inputs.glob("*.html"):
        (folder / path.name).write_bytes(path.read_bytes())
    for depth in NESTED:
        text = SENTENCE.format(depth)
        body = "<div>" * depth + f"<p>{text}</p>" + "</div>" * depth
        (folder / f"nested-{depth}.html").write_text(f"<html><body>{body}</body></html>")
    breaks = "<br/>" * 24_000 + "\0<p>" + SENTENCE.format("of breaks") + "</p>"
    (folder / "line-breaks.html").write_text(f"<html><body>{breaks}</body></html>")
    return folder


def made_archive(inputs: Path, folder: Path) -> Path:
    """Return an archive of bodies that are described in the cases but not among the inputs."""
    pdf = (inputs / "data-only.pdf").read_bytes()
    html = (
        "<html><head><meta charset='utf-8'><title>{0}</title></head><body><p>{0}</p></body></html>"
    )
    russian = html.format("Паром отходит от пристани каждое утро").encode("windows-1251")
    bodies = {
        "pdf-as-html": (pdf, {"Content-Type": "text/html"}),
        "pdf": (pdf, {"Content-Type": "application/pdf"}),
        "header": (russian, {"Content-Type": "text/html; charset=windows-1251"}),
        **{
            f"zeros-{coding}": (body, {"Content-Type": "text/html", "Content-Encoding": coding})
            for coding, body in _bombs().items()
        },
    }
    records = [
        warc(http(body, headers=headers.items()), uri=f"https://made.example/{name}")
        for name, (body, headers) in bodies.items()
    ]
    path = folder / "made.warc"
    path.write_bytes(b"".join(records))
    return path


def _bombs() -> dict[str, bytes]:
    zeros = bytes(ZEROS)
    return {
        "gzip": gzip.compress(zeros, 1, mtime=0),
        "deflate": zlib.compress(zeros, 1),
        "br": brotli.compress(zeros, quality=1),
        "zstd": zstandard.ZstdCompressor(level=1).compress(zeros),
    }


def rows(folder: Path) -> Path:
    """Return a dump with the addresses and short texts of the cases."""
    ferry = "The ferry timetable of {} is on the board at the quay and changes in {}."
    pages = {
        "https://тест.example:8443/путь": ferry.format("test", "May"),
        "https://bücher.example/": ferry.format("books", "June"),
        "https://pages.example/i.php?option=a&view=b&id=131": ferry.format("all", "July"),
        "https://pages.example/i.php?option=a": ferry.format("one", "August"),
        "https://shop.example/a?utm_source=x&id=3&fbclid=Iw": ferry.format("three", "March"),
        "https://shop.example/a?id=4": ferry.format("four", "April"),
        "https://site.example/x/": ferry.format("folder", "September"),
        "https://site.example/x/index.html": ferry.format("index", "October"),
    }
    lines = [{"url": url, "title": "Board", "text": text} for url, text in pages.items()]
    lines.append({**lines[4], "url": "https://shop.example/a?id=3"})
    for number, text in enumerate(("", *SHORT_TEXTS)):
        for time in range(TIMES):
            url = f"https://short.example/{number}/{time}"
            lines.append({"url": url, "title": "", "text": text})
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path
