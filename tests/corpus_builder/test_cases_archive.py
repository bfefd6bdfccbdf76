"""The archive rows of the case table: what each damaged file must give."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from corpus_builder.capture import Capture, Draft, Loss
from corpus_builder.errors import BadSourceError
from corpus_builder.extract import extract
from corpus_builder.sources.jsonl import JsonlSource
from corpus_builder.sources.wacz import WaczSource
from corpus_builder.sources.warc import WarcSource
from tests.corpus_builder.archives import read_all

pytestmark = pytest.mark.shared

THREE = ["ferry", "lighthouse", "library"]


@pytest.fixture
def inputs(case_inputs: Path) -> Path:
    return case_inputs


def read(path: Path) -> tuple[list[Capture], list[Loss]]:
    return read_all(WarcSource([path]))


def pages(captures: list[Capture]) -> list[str]:
    """Return the last part of the address of every capture that gives a whole page."""
    drafts = [extract(capture) for capture in captures]
    return [
        draft.url.rpartition("/")[2] for draft in drafts if isinstance(draft, Draft) and draft.text
    ]


def lost(losses: list[Loss]) -> list[tuple[int, str]]:
    return [(loss.offset, loss.reason) for loss in losses if not loss.note]


@pytest.mark.parametrize(
    ("name", "kept", "losses", "notes"),
    [
        ("good-3.warc.gz", THREE, [], []),
        ("truncated-tail.warc.gz", THREE[:2], [(761, "cut short")], []),
        ("corrupt-middle.warc.gz", ["ferry", "library"], [(380, "damaged")], []),
        ("no-target-uri.warc", ["ferry", "library"], [(817, "no URI")], []),
        ("no-blank-line-between.warc", THREE, [], []),
        ("content-length-huge.warc", ["ferry", "library"], [(817, "cut short")], []),
        ("empty.warc", [], [], ["empty file"]),
        ("whole-file-gzip.warc.gz", THREE, [], ["several records in one gzip member"]),
        ("revisit-chain-28.warc.gz", ["rota"], [], ["unchanged"] * 28),
        ("www-www2.warc", ["", ""], [], []),
        ("percent2f.warc", ["10.5555%2Fabc-123", "abc-123"], [], []),
    ],
)
def test_archives(
    inputs: Path, name: str, kept: list[str], losses: list[tuple[int, str]], notes: list[str]
) -> None:
    captures, found = read(inputs / name)
    assert pages(captures) == kept
    assert lost(found) == losses
    assert [loss.reason for loss in found if loss.note] == notes
    assert {loss.origin for loss in found} <= {name}


def test_every_page_of_the_cases_is_whole(inputs: Path) -> None:
    whole = {capture.url: capture.body for capture in read(inputs / "good-3.warc.gz")[0]}
    for name in ("truncated-tail", "corrupt-middle", "no-target-uri", "no-blank-line-between"):
        (path,) = inputs.glob(f"{name}.warc*")
        for capture in read(path)[0]:
            assert capture.body == whole[capture.url]


def test_what_is_no_archive_is_refused(inputs: Path) -> None:
    with pytest.raises(BadSourceError, match=r"not-a-warc\.warc is not a WARC"):
        WarcSource([inputs / "not-a-warc.warc"]).shards()


def test_an_absurd_length_allocates_nothing(inputs: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    read(inputs / "content-length-huge.warc")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 1024


def test_the_unchanged_page_has_its_first_body(inputs: Path) -> None:
    (capture,), _ = read(inputs / "revisit-chain-28.warc.gz")
    assert capture.time == 1768464000  # 15 January 2026, 08:00
    assert capture.body


def test_keys_stay_apart(inputs: Path) -> None:
    for name in ("percent2f.warc", "www-www2.warc"):
        drafts = [extract(capture) for capture in read(inputs / name)[0]]
        assert len({draft.key for draft in drafts if isinstance(draft, Draft)}) == 2
        assert len({draft.text for draft in drafts if isinstance(draft, Draft)}) == 2


def test_a_redirect_loop_is_two_redirects(inputs: Path) -> None:
    captures, losses = read(inputs / "redirect-loop-slash.warc")
    drafts = [extract(capture) for capture in captures]
    assert [draft.redirect for draft in drafts if isinstance(draft, Draft) and draft.redirect] == [
        "https://pages.example/hall",
        "https://pages.example/hall/",
    ]
    assert pages(captures) == ["ferry", "library"]
    assert losses == []


def test_a_package_without_index_gives_its_pages(inputs: Path) -> None:
    captures, losses = read_all(WaczSource([inputs / "wacz-no-index-no-pages.wacz"]))
    assert pages(captures) == THREE
    assert [loss.note for loss in losses] == [True, True]


def test_a_package_with_a_wrong_digest_needs_a_flag(inputs: Path) -> None:
    path = inputs / "wacz-hash-mismatch.wacz"
    with pytest.raises(BadSourceError, match="does not match its digest"):
        WaczSource([path]).shards()
    assert pages(read_all(WaczSource([path], unverified=True))[0]) == THREE


@pytest.mark.parametrize("name", ["wacz-zip-slip.wacz", "wacz-symlink.wacz"])
def test_a_package_that_leads_out_is_refused(inputs: Path, name: str) -> None:
    with pytest.raises(BadSourceError, match="leads out of it"):
        WaczSource([inputs / name], unverified=True).shards()


def test_the_dirty_dump(inputs: Path) -> None:
    captures, losses = read_all(JsonlSource([inputs / "corpus-dirty.jsonl"], default_time=7))
    assert [(capture.offset, capture.url[-1]) for capture in captures] == [
        (1, "a"),
        (5, "d"),
        (6, "e"),
        (7, "f"),
        (8, "a"),
        (11, "g"),
        (12, "z"),
    ]
    assert [(loss.offset, loss.reason) for loss in losses] == [
        (2, "invalid JSON"),
        (3, "no text"),
        (4, "no URL"),
        (9, "not UTF-8"),
        (10, "not an object"),
    ]
    drafts = {capture.offset: extract(capture) for capture in captures}
    assert all(isinstance(draft, Draft) for draft in drafts.values())
    texts = {line: draft.text for line, draft in drafts.items() if isinstance(draft, Draft)}
    assert texts[5].startswith("zerobyte ")
    assert texts[6].startswith("half \ufffd pair ")
    titles = {line: draft.title for line, draft in drafts.items() if isinstance(draft, Draft)}
    assert titles[7] == ""
