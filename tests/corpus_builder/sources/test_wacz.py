from __future__ import annotations

import hashlib
import json
import stat
import zipfile
from pathlib import Path

import pytest

from corpus_builder.errors import BadSourceError
from corpus_builder.sources.wacz import WaczSource
from tests.corpus_builder.archives import good, packed, read_all

DATA = packed(good("a"), good("b"))


def package(
    path: Path,
    files: dict[str, bytes],
    *,
    listed: dict[str, str] | None = None,
    old: bool = False,
    compression: int = zipfile.ZIP_STORED,
) -> Path:
    """Write a WACZ with the files and a list of their digests, or of those given."""
    digests = listed
    if digests is None:
        digests = {
            name: f"sha256:{hashlib.sha256(data).hexdigest()}" for name, data in files.items()
        }
    resources = [
        {"path": name, "stats": {"hash": digest.rpartition(":")[2]}}
        if old
        else {"name": name.rpartition("/")[2], "path": name, "hash": digest}
        for name, digest in digests.items()
    ]
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, data in files.items():
            file.writestr(name, data)
        file.writestr("datapackage.json", json.dumps({"resources": resources}))
    return path


FILES = {
    "archive/b.warc.gz": DATA,
    "archive/a.warc": good("c"),
    "indexes/index.cdx": b"",
    "pages/pages.jsonl": b"{}\n",
}


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("old", [False, True])
def test_archives_are_read_by_name(tmp_path: Path, compression: int, old: bool) -> None:
    path = package(tmp_path / "x.wacz", FILES, compression=compression, old=old)
    captures, losses = read_all(WaczSource([path]))
    assert [(capture.url[-1], capture.origin) for capture in captures] == [
        ("c", "x.wacz/archive/a.warc"),
        ("a", "x.wacz/archive/b.warc.gz"),
        ("b", "x.wacz/archive/b.warc.gz"),
    ]
    assert losses == []


def test_a_package_without_index_and_pages_is_read_with_notes(tmp_path: Path) -> None:
    path = package(tmp_path / "x.wacz", {"archive/a.warc": good("a")})
    captures, losses = read_all(WaczSource([path]))
    assert len(captures) == 1
    assert [(loss.reason, loss.note) for loss in losses] == [
        ("package without index", True),
        ("package without page list", True),
    ]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"resources": 3}', b'{"resources": [1]}'])
def test_a_package_without_digests_is_read_with_a_note(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.wacz"
    with zipfile.ZipFile(path, "w") as file:
        for name, data in FILES.items():
            file.writestr(name, data)
        file.writestr("datapackage.json", content)
    captures, losses = read_all(WaczSource([path]))
    assert len(captures) == 3
    assert [loss.reason for loss in losses] == ["package without digests"]


@pytest.mark.parametrize(
    "listed",
    [
        {"archive/b.warc.gz": "sha256:" + "0" * 64},
        {"archive/b.warc.gz": "0" * 64},
        {"archive/gone.warc.gz": "sha256:" + "0" * 64},
    ],
)
def test_a_wrong_digest_is_refused_unless_accepted(tmp_path: Path, listed: dict[str, str]) -> None:
    path = package(tmp_path / "x.wacz", FILES, listed=listed)
    with pytest.raises(BadSourceError, match="does not match its digest") as caught:
        WaczSource([path]).shards()
    assert next(iter(listed)) in str(caught.value)
    assert len(read_all(WaczSource([path], unverified=True))[0]) == 3


def test_a_digest_of_an_unknown_kind_proves_nothing(tmp_path: Path) -> None:
    path = package(tmp_path / "x.wacz", FILES, listed={"archive/a.warc": "blake9:00"})
    assert len(read_all(WaczSource([path]))[0]) == 3


@pytest.mark.parametrize(
    "name",
    [
        "archive/../../out.txt",
        "../out.txt",
        "/etc/out.txt",
        "..\\..\\out.txt",
        "C:\\out.txt",
        "\\\\host\\share\\out.txt",
        "archive/sub/../x.warc",
    ],
)
def test_names_that_lead_out_are_refused(tmp_path: Path, name: str) -> None:
    path = package(tmp_path / "x.wacz", {**FILES, name: b"x"}, listed={})
    with pytest.raises(BadSourceError, match="leads out of it"):
        WaczSource([path], unverified=True).shards()
    assert [file.name for file in tmp_path.iterdir()] == ["x.wacz"]


def test_links_are_refused(tmp_path: Path) -> None:
    path = package(tmp_path / "x.wacz", FILES)
    link = zipfile.ZipInfo("archive/link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "a") as file:
        file.writestr(link, "/etc/passwd")
    with pytest.raises(BadSourceError, match="is a link"):
        WaczSource([path], unverified=True).shards()


def test_a_package_without_archive_is_refused(tmp_path: Path) -> None:
    path = package(tmp_path / "x.wacz", {"data/archive/test.txt": b"x"})
    with pytest.raises(BadSourceError, match="holds no WARC"):
        WaczSource([path]).shards()


@pytest.mark.parametrize("content", [b"", b"no zip file", b"PK\x03\x04 cut"])
def test_what_is_no_package_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.wacz"
    path.write_bytes(content)
    with pytest.raises(BadSourceError, match="is not a WACZ"):
        WaczSource([path]).shards()


def test_a_missing_package_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadSourceError, match="gone"):
        WaczSource([tmp_path / "gone.wacz"]).shards()


def test_an_archive_above_the_limit_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corpus_builder.sources.wacz.ARCHIVE_LIMIT", 100)
    path = package(
        tmp_path / "x.wacz", {"archive/a.warc": good("a"), "indexes/i": b"", "pages/p": b""}
    )
    captures, losses = read_all(WaczSource([path]))
    assert captures == []
    assert [(loss.origin, loss.reason) for loss in losses] == [
        ("x.wacz/archive/a.warc", "too large")
    ]


def test_default_time_reaches_the_records(tmp_path: Path) -> None:
    record = good("a").replace(b"2026-01-15T08:00:00Z", b"some-other-day-then-")
    path = package(tmp_path / "x.wacz", {"archive/a.warc": record})
    (capture,), _ = read_all(WaczSource([path], default_time=99))
    assert capture.time == 99
