from __future__ import annotations

import gzip
import shutil
import subprocess
from pathlib import Path

import pytest

from corpus_builder.errors import BadRecipeError, BadSourceError
from corpus_builder.sources.debian_docs import DebianDocsSource, address, choose, packages
from tests.corpus_builder.archives import page, read_all
from world_core.urls import canonical

BUILT = pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="needs dpkg-deb, of Debian")
DATE = 1600872260  # Wed, 23 Sep 2020 16:44:20 +0200
CHANGELOG = """anarchism (15.3-3) unstable; urgency=low

  * A change.

 -- Some Body <some.body@pages.example>  Wed, 23 Sep 2020 16:44:20 +0200

anarchism (15.3-2) unstable; urgency=low

 -- Some Body <some.body@pages.example>  Tue, 22 Sep 2020 16:44:20 +0200
"""


def content(root: Path, *, changelog: str = CHANGELOG) -> Path:
    """Write what the package anarchism would unpack to."""
    html = root / "usr/share/doc/anarchism/html"
    (html / "sub").mkdir(parents=True)
    (html / "secA1.html").write_bytes(page("A1"))
    (html / "sub" / "a b.html").write_bytes(page("sub"))
    (html / "index.html").symlink_to("secA1.html")
    (html / "out.html").symlink_to("/etc/hostname")
    (html / "style.css").write_text("p {}")
    if changelog:
        data = gzip.compress(changelog.encode(), mtime=0)
        (root / "usr/share/doc/anarchism/changelog.Debian.gz").write_bytes(data)
    return root


def test_the_list_of_packages() -> None:
    known = packages()
    assert [package.name for package in known] == sorted(package.name for package in known)
    assert len(known) == 58
    assert {package.set for package in known} == {"light", "standard", "full"}
    for package in known:
        assert package.root.startswith("usr/share/")
        assert package.url_template.startswith("https://")
        assert package.licence
        assert package.languages[0]


def test_sets_hold_the_smaller_ones() -> None:
    light, standard, full = (
        {package.name for package in choose(name)} for name in ("light", "standard", "full")
    )
    assert len(light) == 44
    assert light < standard < full
    assert len(full) == 58
    assert "rust-doc" in full - standard


def test_packages_by_name() -> None:
    assert [package.name for package in choose("light", ["rust-doc", "anarchism"])] == [
        "anarchism",
        "rust-doc",
    ]


def test_an_unknown_package() -> None:
    with pytest.raises(BadRecipeError, match="'nonesuch' is not in the list") as caught:
        choose("light", ["anarchism", "nonesuch"])
    assert "anarchism" in caught.value.hint


def test_an_unknown_set() -> None:
    with pytest.raises(BadRecipeError, match="no set 'huge'"):
        choose("huge")


RULES = {package.name: package for package in packages()}


@pytest.mark.parametrize(
    ("package", "path", "expected"),
    [
        ("anarchism", "secA1.html", "https://www.anarchistfaq.org/afaq/secA1.html"),
        ("apache2-doc", "pt-br/mod/core.html", "https://httpd.apache.org/docs/2.4/pt-br/mod/core.html"),
        ("cppreference-doc-en-html", "cpp/string/byte.html", "https://en.cppreference.com/w/cpp/string/byte"),
        ("cppreference-doc-en-html", "c/operator!.html", "https://en.cppreference.com/w/c/operator!"),
        ("qtbase5-doc-html", "qtcore/qobject.html", "https://doc.qt.io/qt-5/qobject.html"),
        ("python-django-doc", "index.html", "https://docs.djangoproject.com/en/3.2/"),
        ("python-django-doc", "intro/index.html", "https://docs.djangoproject.com/en/3.2/intro/"),
        ("python-django-doc", "intro/tutorial01.html", "https://docs.djangoproject.com/en/3.2/intro/tutorial01/"),
        ("python-django-doc", "ref/my-index.html", "https://docs.djangoproject.com/en/3.2/ref/my-index/"),
        ("debian-faq-de", "de/kernel.de.html", "https://www.debian.org/doc/manuals/debian-faq/kernel.de.html"),
        ("debian-faq", "kernel.en.html", "https://www.debian.org/doc/manuals/debian-faq/kernel.en.html"),
        ("developers-reference", "tools.html", "https://www.debian.org/doc/manuals/developers-reference/tools.en.html"),
        ("developers-reference-ja", "ja/tools.html", "https://www.debian.org/doc/manuals/developers-reference/tools.ja.html"),
        ("debian-handbook", "pt-BR/sect.tails.html", "https://debian-handbook.info/browse/pt-BR/stable/sect.tails.html"),
        ("installation-guide-amd64", "zh_CN/ch01s01.html", "https://www.debian.org/releases/bookworm/amd64/ch01s01.zh_CN.html"),
        ("libreoffice-help-de", "de/text/a b.html", "https://help.libreoffice.org/7.4/de/text/a%20b.html"),
        ("linux-doc-6.1", "admin-guide/index.html", "https://www.kernel.org/doc/html/v6.1/admin-guide/index.html"),
    ],
)  # fmt: skip
def test_address_rules(package: str, path: str, expected: str) -> None:
    rule = RULES[package]
    assert address(rule.url_template, path, rule.languages) == expected


@pytest.mark.parametrize("name", sorted(RULES))
def test_every_rule_gives_an_address_of_the_web(name: str) -> None:
    rule = RULES[name]
    for path in ("index.html", "en/a [b]!.html", "x/y/z.html"):
        assert canonical(address(rule.url_template, path, rule.languages))


def test_files_of_an_unpacked_package(tmp_path: Path) -> None:
    content(tmp_path / "anarchism")
    source = DebianDocsSource(tmp_path, names=["anarchism"])
    (shard,) = source.shards()
    assert (shard.kind, shard.path) == ("debian_docs", tmp_path / "anarchism")
    captures, losses = read_all(source)
    base = "https://www.anarchistfaq.org/afaq/"
    assert [(c.url, c.origin, c.status, c.location, c.time, c.modified) for c in captures] == [
        (f"{base}index.html", "anarchism/index.html", 308, f"{base}secA1.html", DATE, None),
        (f"{base}secA1.html", "anarchism/secA1.html", 200, "", DATE, DATE),
        (f"{base}sub/a%20b.html", "anarchism/sub/a b.html", 200, "", DATE, DATE),
    ]
    assert captures[1].body == page("A1")
    assert [(loss.origin, loss.reason, loss.note) for loss in losses] == [
        ("anarchism/out.html", "link out of the folder", True)
    ]


@pytest.mark.parametrize("changelog", ["", "no entry at all"])
def test_without_changelog_the_newest_file_dates_the_package(
    tmp_path: Path, changelog: str
) -> None:
    import os

    root = content(tmp_path / "anarchism", changelog=changelog)
    for path in root.rglob("*.html"):
        os.utime(path, (1000, 1000), follow_symlinks=False)
    captures, _ = read_all(DebianDocsSource(tmp_path, names=["anarchism"]))
    assert {capture.time for capture in captures} == {1000}


def test_a_native_packages_changelog(tmp_path: Path) -> None:
    root = content(tmp_path / "anarchism", changelog="")
    data = gzip.compress(CHANGELOG.encode(), mtime=0)
    (root / "usr/share/doc/anarchism/changelog.Debian.gz").write_bytes(b"broken")
    (root / "usr/share/doc/anarchism/changelog.gz").write_bytes(data)
    captures, _ = read_all(DebianDocsSource(tmp_path, names=["anarchism"]))
    assert {capture.time for capture in captures} == {DATE}


def test_a_package_without_pages_is_told(tmp_path: Path) -> None:
    (tmp_path / "anarchism").mkdir()
    captures, losses = read_all(DebianDocsSource(tmp_path, names=["anarchism"]))
    assert captures == []
    assert [loss.reason for loss in losses] == ["no HTML file"]


def test_a_file_that_cannot_be_used_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corpus_builder.sources.files.BODY_LIMIT", 10)
    content(tmp_path / "anarchism")
    _, losses = read_all(DebianDocsSource(tmp_path, names=["anarchism"]))
    assert [loss.reason for loss in losses if not loss.note] == ["too large", "too large"]


def build(folder: Path, root: Path) -> Path:
    """Build the package anarchism with Debian's own tool."""
    control = root / "DEBIAN"
    control.mkdir()
    (control / "control").write_text(
        "Package: anarchism\nVersion: 1\nArchitecture: all\n"
        "Maintainer: Some Body <some.body@pages.example>\nDescription: test\n"
    )
    target = folder / "anarchism_1_all.deb"
    command = ["dpkg-deb", "--root-owner-group", "--build", str(root), str(target)]
    subprocess.run(command, check=True, capture_output=True)
    return target


@BUILT
def test_a_fetched_package_is_unpacked_once(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    archive = build(cache, content(tmp_path / "build"))
    source = DebianDocsSource(cache, names=["anarchism"])
    captures, _ = read_all(source)
    assert len(captures) == 3
    assert sorted(path.name for path in cache.iterdir()) == ["anarchism", archive.name]
    archive.unlink()
    assert len(read_all(source)[0]) == 3


@BUILT
def test_a_damaged_package_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "anarchism_1_all.deb").write_bytes(b"no package")
    with pytest.raises(BadSourceError, match="dpkg-deb failed"):
        DebianDocsSource(tmp_path, names=["anarchism"]).shards()
    assert [path.name for path in tmp_path.iterdir()] == ["anarchism_1_all.deb"]


def test_a_machine_without_the_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(BadSourceError, match="apt-get is not installed"):
        DebianDocsSource(tmp_path, names=["anarchism"]).shards()


def test_a_fetch_that_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: "/bin/true")
    with pytest.raises(BadSourceError, match="left no package 'anarchism'"):
        DebianDocsSource(tmp_path, names=["anarchism"]).shards()


def test_a_fetch_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: "/bin/false")
    with pytest.raises(
        BadSourceError, match="apt-get failed for debian_docs: no message"
    ) as caught:
        DebianDocsSource(tmp_path, names=["anarchism"]).shards()
    assert "apt-get update" in caught.value.hint
