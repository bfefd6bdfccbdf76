from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus_builder.capture import Draft
from corpus_builder.rows import draft_from, page_from, read_rows, write_rows
from world_core.types import Link, PageRecord, VersionRecord

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
WHOLE = st.integers(-(2**62), 2**62)
LINKS = st.lists(st.builds(Link, TEXT, TEXT), max_size=2).map(tuple)
DRAFTS = st.builds(
    Draft,
    key=TEXT,
    url=TEXT,
    time=WHOLE,
    origin=TEXT,
    offset=WHOLE,
    status=st.integers(100, 599),
    redirect=TEXT,
    canonical=TEXT,
    title=TEXT,
    text=TEXT,
    language=TEXT,
    published=st.none() | WHOLE,
    modified=st.none() | WHOLE,
    links=LINKS,
    mime=TEXT,
    declared=st.booleans(),
)
VERSIONS = st.builds(
    VersionRecord,
    title=TEXT,
    text=TEXT,
    language=TEXT,
    valid_from=WHOLE,
    valid_to=WHOLE,
    published=st.none() | WHOLE,
    modified=st.none() | WHOLE,
    links=LINKS,
    mime=TEXT,
)
PAGES = st.builds(
    PageRecord,
    page_id=TEXT,
    key=TEXT,
    url=TEXT,
    versions=st.lists(VERSIONS, max_size=3).map(tuple),
    aliases=st.lists(TEXT, max_size=3).map(tuple),
)


@given(st.lists(DRAFTS, max_size=3))
def test_drafts_survive(tmp_path_factory: pytest.TempPathFactory, drafts: list[Draft]) -> None:
    path = tmp_path_factory.mktemp("rows") / "f.zst"
    assert write_rows(path, drafts) == len(drafts)
    assert [draft_from(row) for row in read_rows(path) if isinstance(row, dict)] == drafts


@given(st.lists(PAGES, max_size=3))
def test_pages_survive(tmp_path_factory: pytest.TempPathFactory, pages: list[PageRecord]) -> None:
    path = tmp_path_factory.mktemp("rows") / "f.zst"
    write_rows(path, pages)
    assert [page_from(row) for row in read_rows(path) if isinstance(row, dict)] == pages


def test_equal_rows_give_equal_bytes(tmp_path: Path) -> None:
    rows = [["a", 1], {"b": None}]
    write_rows(tmp_path / "one", rows)
    write_rows(tmp_path / "two", iter(rows))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert list(read_rows(tmp_path / "one")) == rows


def test_an_error_while_writing_leaves_no_file_of_the_name(tmp_path: Path) -> None:
    def rows() -> object:
        yield [1]
        raise KeyError

    with pytest.raises(KeyError):
        write_rows(tmp_path / "f", rows())  # type: ignore[arg-type]
    assert not (tmp_path / "f").exists()


@pytest.mark.parametrize("row", [{"versions": 1, "aliases": []}, {"versions": [], "aliases": None}])
def test_a_row_of_another_kind_is_no_page(row: dict[str, object]) -> None:
    with pytest.raises(TypeError):
        page_from(row)


def test_a_row_without_links_is_no_draft() -> None:
    with pytest.raises(TypeError):
        draft_from({"links": None})
