from __future__ import annotations

from pathlib import Path

import pytest

from corpus_builder.capture import Capture, Loss
from corpus_builder.errors import BadRecipeError, BadSourceError
from corpus_builder.inputs import HtmlFileSource, kind_of, open_source, recognise
from corpus_builder.recipe import Argument, SourceRecipe
from corpus_builder.sources.atlas import AtlasSource
from corpus_builder.sources.debian_docs import DebianDocsSource
from corpus_builder.sources.html_folder import HtmlFolderSource
from corpus_builder.sources.jsonl import JsonlSource
from corpus_builder.sources.wacz import WaczSource
from corpus_builder.sources.warc import WarcSource


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.warc", "warc"),
        ("a.WARC.GZ", "warc"),
        ("a.warc.lz4", "warc"),
        ("a.arc.gz", "warc"),
        ("a.b.wet.gz", "warc"),
        ("a.wacz", "wacz"),
        ("a.jsonl", "jsonl"),
        ("a.jsonl.zst", "jsonl"),
        ("a.ndjson.gz", "jsonl"),
        ("a.html", "html"),
        ("a.htm", "html"),
    ],
)
def test_kinds_by_ending(name: str, kind: str) -> None:
    assert kind_of(Path(name)) == kind


@pytest.mark.parametrize("name", ["a.pdf", "a", "warc", "a.gz", "a.warc.txt", ".jsonl2"])
def test_unknown_endings_are_refused(name: str) -> None:
    with pytest.raises(BadSourceError, match="no known kind") as caught:
        kind_of(Path(name))
    assert ".jsonl" in caught.value.hint


def touch(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")


def test_files_and_folders_become_sources_in_order(tmp_path: Path) -> None:
    touch(tmp_path, "z.jsonl", "f/b.warc.gz", "f/a/c.wacz", "f/notes.txt", "f/page.html")
    found = recognise(
        [str(tmp_path / "z.jsonl"), str(tmp_path / "f")], url_template="https://x/{id}"
    )
    assert [(entry.kind, entry.shown) for entry in found] == [
        ("jsonl", "z.jsonl"),
        ("wacz", "c.wacz"),
        ("warc", "b.warc.gz"),
    ]
    assert dict(found[0].arguments) == {"url_template": "https://x/{id}"}
    assert dict(found[1].arguments) == {"skip_bad": True}
    (only,) = recognise([str(tmp_path / "f" / "a" / "c.wacz")], unverified=True)
    assert dict(only.arguments) == {"unverified": True}


def test_html_needs_a_base_address(tmp_path: Path) -> None:
    touch(tmp_path, "f/a.html", "f/b.html", "g/c.htm")
    with pytest.raises(BadRecipeError, match=r"a\.html") as caught:
        recognise([str(tmp_path / "f" / "a.html")])
    assert "--base-url" in caught.value.hint
    with pytest.raises(BadSourceError, match="no archive") as refused:
        recognise([str(tmp_path / "f")])
    assert "--base-url" in refused.value.hint
    (folder,) = recognise([str(tmp_path / "f")], base_url="https://s.example/")
    assert folder.kind == "html"
    assert "files" not in folder.arguments
    files = recognise(
        [str(tmp_path / name) for name in ("f/b.html", "g/c.htm", "f/a.html")],
        base_url="https://s.example/",
        strip_ending=True,
    )
    assert [entry.arguments["files"] for entry in files] == ["a.html/b.html", "c.htm"]
    assert all(entry.arguments["strip_ending"] is True for entry in files)


def test_missing_inputs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadSourceError, match="does not exist"):
        recognise([str(tmp_path / "none.warc")])


def opened(kind: str, path: str = "p", **arguments: Argument) -> object:
    return open_source(SourceRecipe(kind, path, path, arguments), 7)


def test_every_kind_opens_with_its_settings() -> None:
    assert opened("warc") == WarcSource([Path("p")], 7)
    assert opened("wacz", unverified=True) == WaczSource([Path("p")], 7, unverified=True)
    assert opened("jsonl", url_template="t") == JsonlSource([Path("p")], 7, "t")
    folder = HtmlFolderSource(Path("p"), "https://s.example/", 7, strip_ending=True)
    assert opened("html", base_url="https://s.example/", strip_ending=True) == folder
    debian = DebianDocsSource(Path("p"), "full", ("a", "b"))
    assert opened("debian_docs", set="full", packages="a b") == debian
    assert isinstance(opened("debian_docs", ""), DebianDocsSource)
    atlas = opened("atlas", "", size=5, seed=0, preset="atlas-toy")
    assert isinstance(atlas, AtlasSource)
    assert (atlas.size, atlas.seed, atlas.preset) == (5, 0, "atlas-toy")
    plain = opened("atlas", "")
    assert isinstance(plain, AtlasSource)
    assert (plain.seed, plain.preset) == (1, "atlas")


@pytest.mark.parametrize(
    ("kind", "arguments", "found"),
    [
        ("pdf", {}, "'pdf'"),
        ("warc", {"depth": 3}, "'depth'"),
        ("jsonl", {"url_template": 3}, "3"),
        ("wacz", {"unverified": "yes"}, "'yes'"),
        ("atlas", {"size": "big"}, "'big'"),
        ("atlas", {"seed": True}, "True"),
    ],
)
def test_unusable_settings_are_refused(
    kind: str, arguments: dict[str, Argument], found: str
) -> None:
    with pytest.raises(BadRecipeError) as caught:
        open_source(SourceRecipe(kind, "p", "p", arguments), 7)
    assert found in caught.value.sentence


def test_a_kind_that_needs_a_path_says_so() -> None:
    with pytest.raises(BadRecipeError, match="no path"):
        opened("warc", "")


def test_single_files_are_the_pages_they_would_be_in_their_folder(tmp_path: Path) -> None:
    for name in ("a.html", "b.html", "c.html"):
        (tmp_path / name).write_text("<p>text</p>")
    source = open_source(
        SourceRecipe(
            "html",
            str(tmp_path),
            "",
            {"base_url": "https://s.example/", "strip_ending": True, "files": "a.html/c.html"},
        ),
        7,
    )
    assert isinstance(source, HtmlFileSource)
    found = [item for shard in source.shards() for item in source.read(shard)]
    assert [item.url for item in found if isinstance(item, Capture)] == [
        "https://s.example/a",
        "https://s.example/c",
    ]


def test_a_bad_file_of_a_folder_is_one_loss(tmp_path: Path) -> None:
    touch(tmp_path, "bad.warc", "bad.wacz")
    (tmp_path / "good.jsonl").write_text('{"url": "https://a.example/", "text": "words"}\n')
    found = []
    for entry in recognise([str(tmp_path)]):
        source = open_source(entry, 0)
        found += [item for shard in source.shards() for item in source.read(shard)]
    lost = [item for item in found if isinstance(item, Loss)]
    assert [(loss.origin, loss.offset, loss.note) for loss in lost] == [
        ("bad.wacz", 0, False),
        ("bad.warc", 0, False),
    ]
    assert lost[1].reason == "refused: is not a WARC"
    assert len(found) == 3
    with pytest.raises(BadSourceError):
        open_source(recognise([str(tmp_path / "bad.warc")])[0], 0).shards()
