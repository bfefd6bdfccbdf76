"""Real archives and real pages: every readable page comes in, and its text is the right one."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
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

TIME = 1768464000  # 2026-01-15

# file: (captures, pages among them, losses and notes as (offset, reason, note))
ARCHIVES: dict[str, tuple[int, int, list[tuple[int, str, bool]]]] = {
    "cdxj-indexer/cc.warc.gz": (0, 0, [(377, "cut short by the crawler", False)]),
    "cdxj-indexer/missing-http.warc.gz": (0, 0, [(0, "no HTTP response", False)]),
    "cdxj-indexer/post-test-more.warc": (3, 3, []),
    "commoncrawl/whirlwind.warc": (1, 1, []),
    "commoncrawl/whirlwind.warc.gz": (1, 1, []),
    "commoncrawl/whirlwind.warc.wat": (0, 0, [(545, "metadata record", True)]),
    "commoncrawl/whirlwind.warc.wat.gz": (0, 0, [(443, "metadata record", True)]),
    "commoncrawl/whirlwind.warc.wet": (1, 1, []),
    "commoncrawl/whirlwind.warc.wet.gz": (1, 1, []),
    "resiliparse/clipped.warc.gz": (0, 0, [(0, "cut short", False)]),
    "resiliparse/clueweb-quirk.warc.gz": (29, 29, []),
    "resiliparse/warcfile.warc.gz": (16, 16, []),
    "resiliparse/warcfile.warc.lz4": (16, 16, []),
    "wacz/example-collection-with-lists.warc": (18, 6, []),
    "wacz/example-warcinfo-metadata.warc": (1, 1, []),
    "warcio/bad.arc": (
        1,
        0,
        [
            (0, "wrong length", True),
            (134, "wrong length", False),
            (262, "wrong length", False),
        ],
    ),
    "warcio/example-bad-non-chunked.warc.gz": (
        1,
        1,
        [(0, "unchanged", True), (0, "several records in one gzip member", True)],
    ),
    "warcio/example-digest.warc": (0, 0, []),
    "warcio/example-iana.org-chunked.warc": (1, 1, []),
    "warcio/example-resource.warc.gz": (1, 1, []),
    "warcio/example-space-in-target-uri.warc.gz": (0, 0, []),
    "warcio/example-space-in-url.arc": (1, 1, [(151, "wrong length, mended", True)]),
    "warcio/example-trunc.warc": (1, 1, [(1197, "wrong length, mended", True)]),
    "warcio/example-wget-bad-target-uri.warc.gz": (1, 1, []),
    "warcio/example-wrong-chunks.warc.gz": (1, 1, []),
    "warcio/example.arc": (1, 1, []),
    "warcio/example.arc.gz": (1, 1, []),
    "warcio/example.warc": (1, 1, [(3370, "unchanged", True)]),
    "warcio/example.warc.gz": (1, 1, [(2621, "unchanged", True)]),
    "warcio/post-test.warc.gz": (3, 3, []),
    "webarchive-commons/IAH-urls-wget.warc.gz": (16, 4, []),
    "webarchive-commons/link-extraction-test.warc": (6, 5, [(10562, "no URI", False)]),
    "webarchive-commons/mutliple-headers.warc": (1, 0, []),
}


@pytest.mark.parametrize("name", sorted(ARCHIVES))
def test_archives(shared_dir: Path, name: str) -> None:
    captures, losses = read_all(WarcSource([shared_dir / "data/webarchive" / name]))
    expected, pages, lost = ARCHIVES[name]
    assert len(captures) == expected
    assert [(loss.offset, loss.reason, loss.note) for loss in losses] == lost
    drafts = [extract(capture) for capture in captures]
    assert sum(isinstance(draft, Draft) and bool(draft.text) for draft in drafts) == pages


def test_every_archive_is_in_the_table(shared_dir: Path) -> None:
    folder = shared_dir / "data/webarchive"
    found = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if re.search(r"\.w?arc(?:\.|$)", path.name)
    }
    assert found == set(ARCHIVES)


def test_the_same_page_has_the_same_body_in_every_packing(shared_dir: Path) -> None:
    folder = shared_dir / "data/webarchive"
    names = ("warcfile.warc.gz", "warcfile.warc.lz4")
    bodies = [
        [(c.url, c.time, c.body) for c in read_all(WarcSource([folder / "resiliparse" / name]))[0]]
        for name in names
    ]
    assert bodies[0] == bodies[1]


def test_wrong_framing_gives_the_whole_page(shared_dir: Path) -> None:
    folder = shared_dir / "data/webarchive/warcio"
    texts = set()
    for name in (
        "example.warc.gz",
        "example-trunc.warc",
        "example-bad-non-chunked.warc.gz",
        "example-wrong-chunks.warc.gz",
        "example-space-in-url.arc",
        "example.arc.gz",
    ):
        (capture,), _ = read_all(WarcSource([folder / name]))
        draft = extract(capture)
        assert isinstance(draft, Draft)
        texts.add((draft.title, draft.text, draft.links))
    assert len(texts) == 1


def test_the_page_of_japanese_shop_pages_is_in_their_charset(shared_dir: Path) -> None:
    path = shared_dir / "data/webarchive/resiliparse/clueweb-quirk.warc.gz"
    captures, _ = read_all(WarcSource([path]))
    drafts = [extract(capture) for capture in captures]
    assert Counter(draft.language for draft in drafts if isinstance(draft, Draft)) == {"ja": 29}
    assert not any("\ufffd" in draft.text for draft in drafts if isinstance(draft, Draft))


@pytest.mark.parametrize(
    ("name", "captures", "pages"),
    [
        ("valid_example_1.wacz", 1, 1),
        ("valid_example_2.wacz", 1, 1),
        ("valid_signed_example_1.wacz", 2, 1),
        ("invalid_signed_example_1.wacz", 2, 1),  # its signature is wrong, its digests are right
    ],
)
def test_packages(shared_dir: Path, name: str, captures: int, pages: int) -> None:
    found, losses = read_all(WaczSource([shared_dir / "data/webarchive/wacz" / name]))
    assert len(found) == captures
    assert losses == []
    drafts = [extract(capture) for capture in found]
    assert sum(isinstance(draft, Draft) and bool(draft.text) for draft in drafts) == pages


def test_a_package_without_archive(shared_dir: Path) -> None:
    path = shared_dir / "data/webarchive/wacz/invalid_example_1.wacz"
    with pytest.raises(BadSourceError, match="holds no WARC"):
        WaczSource([path]).shards()


@pytest.mark.parametrize(
    ("folder", "count", "language"),
    [
        ("cacm", 3204, "en"),
        ("xquad/de", 240, "de"),
        ("xquad/zh", 240, "zh"),
        ("cmrc2018", 848, "zh"),
    ],
)
def test_dumps_by_id(shared_dir: Path, folder: str, count: int, language: str) -> None:
    path = shared_dir / "data/ir" / folder / "docs.jsonl"
    source = JsonlSource([path], url_template="https://docs.example/{id}")
    captures, losses = read_all(source)
    assert len({capture.url for capture in captures}) == count
    assert losses == []
    drafts = [extract(capture) for capture in captures[:40]]
    languages = Counter(draft.language for draft in drafts if isinstance(draft, Draft))
    assert languages[language] >= 0.8 * len(drafts)


def grams(text: str) -> Counter[tuple[str, ...]]:
    words = re.findall(r"\w+", text)
    if len(words) < 4:
        return Counter([tuple(words)])
    return Counter(tuple(words[start : start + 4]) for start in range(len(words) - 3))


def draft_of(url: str, body: bytes) -> Draft | Loss:
    return extract(Capture(url, TIME, "page", 0, body=body))


def test_articles(shared_dir: Path) -> None:
    """4-gram F1 over words, mean precision and recall; trafilatura alone has 0.961."""
    folder = shared_dir / "data/html/articles"
    precision: list[float] = []
    recall: list[float] = []
    for line in (folder / "expected.jsonl").read_text("utf-8").splitlines():
        entry = json.loads(line)
        body = gzip.decompress((folder / "pages" / f"{entry['id']}.html.gz").read_bytes())
        draft = draft_of("https://articles.example/", body)
        found = grams(draft.text if isinstance(draft, Draft) else "")
        expected = grams(entry["text"])
        shared = sum((found & expected).values())
        precision.append(shared / max(1, sum(found.values())))
        recall.append(shared / max(1, sum(expected.values())))
    mean_precision, mean_recall = sum(precision) / len(precision), sum(recall) / len(recall)
    assert len(precision) == 60
    assert 2 * mean_precision * mean_recall / (mean_precision + mean_recall) >= 0.955


def test_pages_in_many_languages(shared_dir: Path) -> None:
    """Segments that must and must not be in the text; trafilatura alone has F1 0.937."""
    folder = shared_dir / "data/html/multilingual"
    right = wrong = missed = 0
    for line in (folder / "expected.jsonl").read_text("utf-8").splitlines():
        entry = json.loads(line)
        draft = draft_of("https://pages.example/", (folder / "pages" / entry["file"]).read_bytes())
        assert isinstance(draft, Draft), entry["file"]
        text = plain(draft.text)
        for segment in entry["with"]:
            right += plain(segment) in text
            missed += plain(segment) not in text
        wrong += sum(plain(segment) in text for segment in entry["without"])
    precision, recall = right / (right + wrong), right / (right + missed)
    assert 2 * precision * recall / (precision + recall) >= 0.93
    assert recall >= 0.97


def plain(text: str) -> str:
    return re.sub(r"[\s*`|#>-]+", " ", text)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("base-url-base-element", "http://fakehost/foo/bar/baz.html"),
        ("base-url-base-element-relative", "http://fakehost/test/base/foo/bar/baz.html"),
    ],
)
def test_links_are_resolved_against_the_base_element(
    shared_dir: Path, name: str, expected: str
) -> None:
    body = (shared_dir / "data/html/readability" / name / "source.html").read_bytes()
    draft = draft_of("http://fakehost/test/page.html", body)
    assert isinstance(draft, Draft)
    assert expected in {link.url for link in draft.links}


def test_every_real_page_gives_text(shared_dir: Path) -> None:
    for path in sorted((shared_dir / "data/html/readability").glob("*/source.html")):
        draft = draft_of("https://pages.example/", path.read_bytes())
        assert isinstance(draft, Draft), path.parent.name
        assert len(draft.text) > 200, path.parent.name
        assert draft.title, path.parent.name
