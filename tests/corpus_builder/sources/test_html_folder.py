from __future__ import annotations

import os
from pathlib import Path

import pytest

from corpus_builder.capture import Capture, Loss
from corpus_builder.errors import BadRecipeError, BadSourceError
from corpus_builder.sources.html_folder import HtmlFolderSource
from tests.corpus_builder.archives import page, read_all

BASE = "https://pages.example/docs"


def folder(root: Path, *names: str) -> Path:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(page(name))
    return root


def test_pages_stand_below_the_base_address(tmp_path: Path) -> None:
    root = folder(tmp_path, "first.html", "a b/c.htm")
    captures, losses = read_all(HtmlFolderSource(root, BASE, time=9))
    assert captures == [
        Capture(
            "https://pages.example/docs/a%20b/c.htm", 9, "a b/c.htm", 0, body=page("a b/c.htm")
        ),
        Capture(
            "https://pages.example/docs/first.html", 9, "first.html", 0, body=page("first.html")
        ),
    ]
    assert losses == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.html", "a"),
        ("a.HTM", "a"),
        ("a.xhtml", "a"),
        ("x.y.html", "x.y"),
        ("html.html", "html"),
    ],
)
def test_endings_can_be_left_out(tmp_path: Path, name: str, expected: str) -> None:
    source = HtmlFolderSource(folder(tmp_path, name), BASE + "/", strip_ending=True)
    (capture,), _ = read_all(source)
    assert capture.url == f"{BASE}/{expected}"


@pytest.mark.parametrize(
    ("name", "index", "address"),
    [
        ("index.html", "index.html", ""),
        ("a b/Index.HTM", "a%20b/Index.HTM", "a%20b/"),
        ("a/b/index.xhtml", "a/b/index.xhtml", "a/b/"),
    ],
)
def test_the_address_of_a_folder_leads_to_its_index(
    tmp_path: Path, name: str, index: str, address: str
) -> None:
    captures, losses = read_all(HtmlFolderSource(folder(tmp_path, name), BASE, time=9))
    assert [(one.url, one.status, one.location) for one in captures] == [
        (f"{BASE}/{index}", 200, ""),
        (f"{BASE}/{address}", 308, f"{BASE}/{index}"),
    ]
    assert losses == []


def test_only_a_page_of_that_name_is_an_index(tmp_path: Path) -> None:
    captures, _ = read_all(HtmlFolderSource(folder(tmp_path, "myindex.html", "a/x.html"), BASE))
    assert [one.status for one in captures] == [200, 200]


def test_files_of_other_kinds_are_noted(tmp_path: Path) -> None:
    root = folder(tmp_path, "page.html", "style.css", "a/b.pdf", "README")
    captures, losses = read_all(HtmlFolderSource(root, BASE))
    assert len(captures) == 1
    assert losses == [
        Loss(name, 0, "not HTML", note=True) for name in ("README", "a/b.pdf", "style.css")
    ]


def test_packed_files_have_the_address_of_the_page(tmp_path: Path) -> None:
    import gzip

    (tmp_path / "a.html.gz").write_bytes(gzip.compress(page("a")))
    (tmp_path / "b.html.gz").write_bytes(b"broken")
    captures, losses = read_all(HtmlFolderSource(tmp_path, BASE))
    assert [(capture.url, capture.body) for capture in captures] == [(f"{BASE}/a.html", page("a"))]
    assert losses == [Loss("b.html.gz", 0, "damaged", f"{BASE}/b.html")]


def test_a_link_inside_is_a_redirect_and_one_outside_is_told(tmp_path: Path) -> None:
    outside = folder(tmp_path / "outside", "secret.html")
    root = folder(tmp_path / "root", "page.html")
    (root / "alias.html").symlink_to("page.html")
    (root / "out.html").symlink_to(outside / "secret.html")
    captures, losses = read_all(HtmlFolderSource(root, BASE))
    assert [(item.url, item.status, item.location) for item in captures] == [
        (f"{BASE}/alias.html", 308, f"{BASE}/page.html"),
        (f"{BASE}/page.html", 200, ""),
    ]
    assert losses == [Loss("out.html", 0, "link out of the folder", f"{BASE}/out.html", note=True)]


def test_large_folders_are_cut_into_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corpus_builder.sources.html_folder.SHARD_SIZE", 3)
    names = [f"{number}.html" for number in range(8)]
    source = HtmlFolderSource(folder(tmp_path, *names), BASE)
    shards = source.shards()
    assert [len(list(source.read(shard))) for shard in shards] == [3, 3, 2]
    captures, _ = read_all(source)
    assert [capture.origin for capture in captures] == names


@pytest.mark.parametrize("base", ["", "ftp://x.example/", "not an address at all", "file:///x"])
def test_a_base_address_that_is_not_of_the_web(tmp_path: Path, base: str) -> None:
    with pytest.raises(BadRecipeError, match="base address") as caught:
        HtmlFolderSource(folder(tmp_path, "a.html"), base).shards()
    assert repr(base) in str(caught.value)


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(BadSourceError, match="is not a folder"):
        HtmlFolderSource(tmp_path / "gone", BASE).shards()


def test_a_folder_without_pages(tmp_path: Path) -> None:
    (tmp_path / "style.css").write_text("p {}")
    with pytest.raises(BadSourceError, match="holds no HTML file"):
        HtmlFolderSource(tmp_path, BASE).shards()


def test_names_that_are_not_utf8_are_read_and_told(tmp_path: Path) -> None:
    for name in (b"caf\xe9.html", b"caf\xe9.html.gz"):
        (tmp_path / os.fsdecode(name)).write_bytes(page("a"))
    captures, losses = read_all(HtmlFolderSource(tmp_path, BASE))
    url = f"{BASE}/caf%E9.html"
    assert captures == [Capture(url, 0, "caf\\xe9.html", 0, body=page("a"))]
    assert losses == [Loss("caf\\xe9.html.gz", 0, "damaged", url)]
