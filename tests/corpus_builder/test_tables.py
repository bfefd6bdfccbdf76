from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from corpus_builder.snapshot import read_pages
from corpus_builder.tables import write_tables
from tests.corpus_builder.samples import Sample, drafts, sample
from world_core import urls
from world_core.pages import PageStore
from world_core.passages import PassageFile
from world_core.types import FOREVER, DeadLink
from world_core.views import UNKNOWN, Columns


def tables(made: Sample, folder: Path, **more: object) -> str:
    folder.mkdir(exist_ok=True)
    settings: dict[str, object] = {
        "recipe": {"a": 1},
        "encoder_id": "e",
        "groups": np.full(made.snapshot.versions, -1, np.int32),
        **more,
    }
    return write_tables(
        folder,
        made.folder,
        made.blocks,
        languages=made.languages,
        **settings,  # type: ignore[arg-type]
    )


def test_columns_say_what_the_pages_say(tmp_path: Path) -> None:
    items = drafts(7, versions=2)
    items[0] = replace(items[0], published=77)
    made = sample(tmp_path / "s", items)
    tables(made, tmp_path / "t")
    columns = Columns.open(tmp_path / "t")
    pages = list(read_pages(made.pages))
    versions = [(n, page, v) for n, page in enumerate(pages) for v in page.versions]
    assert columns.version_page.tolist() == [n for n, _, _ in versions]
    assert columns.valid_from.tolist() == [v.valid_from for _, _, v in versions]
    assert columns.valid_to.tolist() == [v.valid_to for _, _, v in versions]
    assert FOREVER in columns.valid_to
    published = [UNKNOWN if v.published is None else v.published for _, _, v in versions]
    assert columns.published.tolist() == published
    assert 77 in published
    hosts = [columns.hosts[h] for h in columns.host.tolist()]
    assert hosts == [urls.host_of(page.key) for _, page, _ in versions]
    assert list(columns.hosts) == ["site0.example", "site1.example", "site2.example"]
    languages = [made.languages[n] for n in columns.language.tolist()]
    assert languages == [v.language for _, _, v in versions]
    assert set(columns.group.tolist()) == {-1}


def test_the_groups_are_a_column(tmp_path: Path) -> None:
    made = sample(tmp_path / "s", drafts(4))
    groups = np.array([-1, 1, -1, 1], np.int32)
    plain = tables(made, tmp_path / "plain")
    assert tables(made, tmp_path / "t", groups=groups) == plain
    assert Columns.open(tmp_path / "t").group.tolist() == groups.tolist()


def test_store_and_passages_hold_the_snapshot(tmp_path: Path) -> None:
    items = drafts(5)
    dead = replace(items[0], key="https://gone.example/", url="https://gone.example/", status=404)
    made = sample(tmp_path / "s", [*items, replace(dead, text="", title="")])
    tables(made, tmp_path / "t")
    store = PageStore.open(tmp_path / "t" / "pages.sqlite")
    assert list(store.pages()) == list(read_pages(made.pages))
    assert list(store.dead_links()) == [
        DeadLink("https://gone.example/", "https://gone.example/", 404, 1000)
    ]
    store.close()
    passages = PassageFile.open(tmp_path / "t" / "passages.bin")
    columns = Columns.open(tmp_path / "t")
    found = [passages.version(n) for n in range(passages.count)]
    assert np.array_equal(columns.passage_version, np.array(found))
    assert passages.count == made.blocks.passages
    passages.close()


def test_the_world_id_depends_on_content_alone(tmp_path: Path) -> None:
    one = sample(tmp_path / "one", drafts(6))
    two = sample(tmp_path / "two", drafts(6)[::-1])
    first = tables(one, tmp_path / "t1")
    assert tables(two, tmp_path / "t2") == first
    assert tables(one, tmp_path / "t3", recipe={"a": 2}) != first
    assert tables(one, tmp_path / "t4", encoder_id="f") != first
    other = sample(tmp_path / "three", drafts(7))
    assert tables(other, tmp_path / "t5") != first


def test_an_empty_snapshot_has_tables(tmp_path: Path) -> None:
    made = sample(tmp_path / "s", [])
    assert len(tables(made, tmp_path / "t")) == 64
    columns = Columns.open(tmp_path / "t")
    assert (columns.version_count, columns.passage_count, columns.hosts) == (0, 0, ())
