from __future__ import annotations

from collections.abc import Mapping

import pytest
import sqlalchemy as sa
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from world_core.errors import BadInputError, PageStoreError
from world_core.page_tables import (
    body_columns,
    checked_number,
    checked_text,
    meta_columns,
    packer,
    page_tables,
    stored_version,
    version_row,
)
from world_core.types import Link, StoredVersion, VersionRecord

RECORD = VersionRecord(
    "Titel", "A sentence, ü and 北京. " * 4, "de", 5, 9, 1, None, (Link("https://l/", "l"),)
)


def read_back(row: Mapping[str, object]) -> StoredVersion:
    """Return the version of a row as the page store's query would."""
    tables = page_tables()
    page = {"page_id": "aa", "url": "https://a.example/"}
    columns = (*meta_columns(tables), *body_columns(tables))
    return stored_version([{**row, **page}[column.name] for column in columns])


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@given(TEXT, st.lists(st.builds(Link, TEXT, TEXT), max_size=3).map(tuple))
def test_text_and_links_survive(text: str, links: tuple[Link, ...]) -> None:
    record = VersionRecord("t", text, "en", 0, links=links)
    stored = read_back(version_row(3, 2, record, packer()))
    assert (stored.text, stored.links) == (text, links)
    assert (stored.meta.version, stored.meta.page, stored.meta.characters) == (3, 2, len(text))


def test_rows_repeat() -> None:
    assert version_row(0, 0, RECORD, packer()) == version_row(0, 0, RECORD, packer())


@pytest.mark.parametrize("column", ["text", "links", "text_digest"])
def test_no_flipped_bit_gives_another_text(column: str) -> None:
    row = version_row(0, 0, RECORD, packer())
    good = row[column]
    assert isinstance(good, bytes)
    refused = 0
    for place in range(8 * len(good)):
        byte, bit = divmod(place, 8)
        torn = good[:byte] + bytes([good[byte] ^ 1 << bit]) + good[byte + 1 :]
        try:
            stored = read_back({**row, column: torn})
        except PageStoreError:
            refused += 1
        else:  # a bit of the frame that means nothing
            assert (stored.text, stored.links) == (RECORD.text, RECORD.links), place
    assert refused >= 8 * len(good) - 8


@pytest.mark.parametrize("column", ["text", "links"])
def test_cut_frames_are_found(column: str) -> None:
    row = version_row(0, 0, RECORD, packer())
    good = row[column]
    assert isinstance(good, bytes)
    for torn in (*(good[:size] for size in range(len(good))), good + b"\0", good + good):
        with pytest.raises(PageStoreError, match="is damaged"):
            read_back({**row, column: torn})


def test_frames_that_claim_too_much_are_not_unpacked() -> None:
    row = version_row(0, 0, RECORD, packer())
    bomb = zstandard.ZstdCompressor().compress(b"\0" * 50_000_000)
    with pytest.raises(PageStoreError, match="claims 50000000 bytes"):
        read_back({**row, "text": bomb})


@pytest.mark.parametrize("links", [b"{", b"7", b"[1]", b'[["a"]]', b"\xff", b"null"])
def test_links_of_another_shape_are_damage(links: bytes) -> None:
    row = version_row(0, 0, RECORD, packer())
    with pytest.raises(PageStoreError, match="is damaged"):
        read_back({**row, "links": packer().compress(links)})


def test_texts_no_database_can_hold() -> None:
    assert checked_text("text", "ok \U0001f600 \x01") == "ok \U0001f600 \x01"
    with pytest.raises(BadInputError, match=r"The title 'a\\x00' holds NUL at character 1"):
        checked_text("title", "a\0")
    with pytest.raises(BadInputError, match="half a surrogate pair at character 2"):
        checked_text("title", "ab\ud83d")


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1])
def test_numbers_no_database_can_hold(number: int) -> None:
    with pytest.raises(BadInputError, match=str(number)):
        checked_number("capture time", number)


@pytest.mark.parametrize("number", [None, 0, 2**63 - 1, -(2**63)])
def test_numbers_a_database_can_hold(number: int | None) -> None:
    assert checked_number("capture time", number) == number


def test_tables_are_the_same_but_for_the_schema() -> None:
    plain, named = page_tables(), page_tables("world_1")
    assert [table.name for table in plain.all] == [table.name for table in named.all]
    assert {table.schema for table in named.all} == {"world_1"}
    for one, other in zip(plain.all, named.all, strict=True):
        assert one.columns.keys() == other.columns.keys()


def test_bulk_stands_last() -> None:
    kinds = [column.type for column in page_tables().versions.columns]
    bulk = [isinstance(kind, sa.LargeBinary) for kind in kinds]
    assert bulk == sorted(bulk)
