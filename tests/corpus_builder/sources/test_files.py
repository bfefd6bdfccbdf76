from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from corpus_builder.coding import BODY_LIMIT
from corpus_builder.sources.files import HtmlFile, html_files, quoted, read_body


def tree(root: Path, *names: str) -> Path:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"<p>{name}")
    return root


def test_html_files_in_order_of_their_paths(tmp_path: Path) -> None:
    names = ["b.html", "a/z.htm", "a/b.xhtml", "a.html", "C.HTML", "d.html.gz", "ä.html"]
    root = tree(tmp_path, *names, "style.css", "html", "x.html.src", "y.gz")
    assert html_files(root) == [HtmlFile(name) for name in sorted(names, key=str.encode)]


def test_links_inside_the_tree_name_their_target(tmp_path: Path) -> None:
    root = tree(tmp_path / "root", "a/page.html")
    (root / "alias.html").symlink_to("a/page.html")
    (root / "second.html").symlink_to("alias.html")
    assert html_files(root) == [
        HtmlFile("a/page.html"),
        HtmlFile("alias.html", "a/page.html"),
        HtmlFile("second.html", "a/page.html"),
    ]


def test_links_out_of_the_tree_are_never_followed(tmp_path: Path) -> None:
    outside = tree(tmp_path / "outside", "secret.html")
    root = tree(tmp_path / "root", "page.html")
    (root / "out.html").symlink_to(outside / "secret.html")
    (root / "broken.html").symlink_to("gone.html")
    (root / "loop.html").symlink_to("loop.html")
    (root / "folder").symlink_to(outside)
    assert html_files(root) == [
        HtmlFile("broken.html", None),
        HtmlFile("loop.html", None),
        HtmlFile("out.html", None),
        HtmlFile("page.html"),
    ]


def test_a_missing_folder_holds_nothing(tmp_path: Path) -> None:
    assert html_files(tmp_path / "gone") == []


def test_bodies(tmp_path: Path) -> None:
    plain, packed = tmp_path / "a.html", tmp_path / "b.html.gz"
    plain.write_bytes(b"<p>a")
    packed.write_bytes(gzip.compress(b"<p>b"))
    assert read_body(plain) == (b"<p>a", "")
    assert read_body(packed) == (b"<p>b", "")


@pytest.mark.parametrize(
    ("name", "content", "flaw"),
    [
        ("a.html", bytes(BODY_LIMIT + 1), "too large"),
        ("a.html.gz", gzip.compress(bytes(BODY_LIMIT + 1)), "too large"),
        ("a.html.gz", gzip.compress(b"text" * 100)[:-4], "cut short"),
        ("a.html.gz", b"no gzip", "damaged"),
    ],
)
def test_bodies_that_cannot_be_used(tmp_path: Path, name: str, content: bytes, flaw: str) -> None:
    (tmp_path / name).write_bytes(content)
    assert read_body(tmp_path / name) == (b"", flaw)


def test_a_body_of_exactly_the_limit(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_bytes(b"a" * BODY_LIMIT)
    assert read_body(tmp_path / "a.html") == (b"a" * BODY_LIMIT, "")


def test_an_unreadable_file(tmp_path: Path) -> None:
    body, flaw = read_body(tmp_path / "gone.html")
    assert (body, flaw) == (b"", "unreadable: No such file or directory")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a/b.html", "a/b.html"),
        ("a b.html", "a%20b.html"),
        ("operator!=.html", "operator!=.html"),
        ("operator[].html", "operator%5B%5D.html"),
        ("100%.html", "100%25.html"),
        ("what?.html", "what%3F.html"),
        ("a#b.html", "a%23b.html"),
        ("Żółw.html", "%C5%BB%C3%B3%C5%82w.html"),
        ("a~b(c)*.html", "a~b(c)*.html"),
    ],
)
def test_quoted(path: str, expected: str) -> None:
    assert quoted(path) == expected
