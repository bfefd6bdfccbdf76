from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus_builder import dedup
from corpus_builder import snapshot as snapshots
from corpus_builder.capture import Draft, Loss
from corpus_builder.parts import PartWriter
from corpus_builder.snapshot import Snapshot, blocks_of, make_snapshot, read_dead_links, read_pages
from world_core import urls
from world_core.types import FOREVER, DeadLink, Link, PageRecord


def draft(name: str, time: int = 0, text: str = "", **more: object) -> Draft:
    url = f"https://s.example/{name}"
    plain = Draft(urls.canonical(url), url, time, "file", time, text=text or f"text of {name}")
    return replace(plain, **more)  # type: ignore[arg-type]


def run(
    folder: Path, drafts: Sequence[Draft], *, parts: int = 1, policy: str = "auto"
) -> tuple[Snapshot, list[PageRecord], list[DeadLink]]:
    source, target = folder / "drafts", folder / "snapshot"
    source.mkdir()
    target.mkdir()
    paths = []
    step = -(-len(drafts) // parts) if drafts else 1
    for first in range(0, len(drafts), step):
        writer = PartWriter(source, 0, first, "d")
        for item in drafts[first : first + step]:
            writer.add(item)
        writer.commit(last=False)
        paths.append(source / f"{writer.facts.name}.jsonl.zst")
    made = make_snapshot(paths, target, exact_duplicates=policy)
    return made, list(read_pages(blocks_of(target))), list(read_dead_links(target))


def test_equal_captures_fold_and_others_begin_versions(tmp_path: Path) -> None:
    drafts = [
        draft("a", 30, "two"),
        draft("a", 10, "one"),
        draft("a", 20, "one", url="http://s.example/a"),
        draft("a", 40, "one"),
    ]
    made, (page,), _ = run(tmp_path, drafts)
    assert [(v.text, v.valid_from, v.valid_to) for v in page.versions] == [
        ("one", 10, 30),
        ("two", 30, 40),
        ("one", 40, FOREVER),
    ]
    assert page.url == "https://s.example/a"
    assert page.page_id == urls.page_id(page.key)
    assert made.counts == {snapshots.VERSION: 3, snapshots.EQUAL: 1}
    assert (made.capture_from, made.capture_to) == (10, 40)
    assert (made.pages, made.versions, made.drafts) == (1, 3, 4)


def test_the_first_spelling_in_time_is_shown(tmp_path: Path) -> None:
    drafts = [draft("a", 2, "x", url="https://S.example/a"), draft("a", 1, "x", url="s.example/a")]
    _, (page,), _ = run(tmp_path, drafts)
    assert page.url == "s.example/a"


def test_a_change_of_title_is_a_version(tmp_path: Path) -> None:
    _, (page,), _ = run(tmp_path, [draft("a", 1, title="A"), draft("a", 2, title="B")])
    assert [version.title for version in page.versions] == ["A", "B"]


def test_everything_of_a_version_arrives(tmp_path: Path) -> None:
    links = (Link("https://s.example/b", "b"),)
    full = draft(
        "a", 5, title="T", language="de", published=3, modified=4, links=links, mime="text/plain"
    )
    made, (page,), _ = run(tmp_path, [full])
    (version,) = page.versions
    assert (version.title, version.language, version.mime) == ("T", "de", "text/plain")
    assert (version.published, version.modified, version.links) == (3, 4, links)
    assert made.links == 1
    assert made.languages == {"de"}


def test_an_error_after_content_does_not_end_the_page(tmp_path: Path) -> None:
    made, (page,), dead = run(tmp_path, [draft("a", 1), draft("a", 2, status=404)])
    assert page.versions[0].valid_to == FOREVER
    assert dead == []
    assert made.counts[snapshots.ERROR_FOLDED] == 1


def test_only_errors_make_a_dead_link(tmp_path: Path) -> None:
    drafts = [draft("a", 1, status=404), draft("a", 2, status=410), draft("b", 1)]
    made, pages, dead = run(tmp_path, drafts)
    assert len(pages) == 1
    assert dead == [DeadLink("https://s.example/a", "https://s.example/a", 410, 2)]
    assert made.dead_links == 1


def test_the_last_redirect_of_an_address_counts(tmp_path: Path) -> None:
    to_b, to_c = "https://s.example/b", "https://s.example/c"
    drafts = [
        draft("a", 2, redirect=to_c, status=301),
        draft("a", 1, redirect=to_b, status=301),
        draft("b", 1),
        draft("c", 1),
    ]
    made, pages, _ = run(tmp_path, drafts)
    aliases = {page.key: page.aliases for page in pages}
    assert aliases == {to_b: (), to_c: ("https://s.example/a",)}
    assert made.counts[snapshots.REDIRECT_FOLDED] == 1
    assert made.counts[dedup.AS_REDIRECT] == 1


def test_a_redirect_never_shadows_a_page(tmp_path: Path) -> None:
    drafts = [draft("a", 1), draft("a", 2, redirect="https://s.example/b"), draft("b", 1)]
    made, pages, _ = run(tmp_path, drafts)
    assert all(page.aliases == () for page in pages)
    assert made.counts[dedup.SHADOWED] == 1


def test_a_redirect_to_another_spelling_of_itself_is_nothing(tmp_path: Path) -> None:
    drafts = [draft("a", 1, redirect="http://s.example/a#x", status=301), draft("a", 1)]
    made, (page,), _ = run(tmp_path, drafts)
    assert page.aliases == ()
    assert made.counts[snapshots.REDIRECT_TO_SELF] == 1


def test_rows_of_one_address_and_time_are_a_loss(tmp_path: Path) -> None:
    drafts = [
        draft("a", text="one", declared=True, offset=1),
        draft("a", text="two", declared=True, offset=8),
        draft("a", text="one", declared=True, offset=9),
    ]
    made, (page,), _ = run(tmp_path, drafts)
    assert page.versions[0].text == "one"
    assert made.losses == [Loss("file", 8, "duplicate url", "https://s.example/a")]
    assert made.counts == {
        snapshots.VERSION: 1,
        snapshots.DUPLICATE_URL: 1,
        snapshots.EQUAL: 1,
    }


def test_of_crawled_captures_of_one_second_the_first_stays(tmp_path: Path) -> None:
    made, (page,), _ = run(tmp_path, [draft("a", 1, "one"), draft("a", 1, "two")])
    assert [version.text for version in page.versions] == ["one"]
    assert made.losses == []
    assert made.counts[snapshots.SAME_TIME] == 1


def test_equal_histories_are_one_page(tmp_path: Path) -> None:
    drafts = [draft("bb", t, x) for t, x in ((1, "x"), (2, "y"))]
    drafts += [draft("a", t, x) for t, x in ((5, "x"), (9, "y"))]
    drafts += [draft("c", 1, "x")]
    made, pages, _ = run(tmp_path, drafts)
    assert {page.key: page.aliases for page in pages} == {
        "https://s.example/a": ("https://s.example/bb",),
        "https://s.example/c": (),
    }
    assert made.counts[dedup.AS_DUPLICATE] == 2
    assert made.versions == 3


@pytest.mark.parametrize("parts", [1, 3])
def test_a_merged_page_begins_with_the_first_capture_of_any(tmp_path: Path, parts: int) -> None:
    drafts = [
        draft("bb", 2, "x", published=1),
        draft("bb", 8, "y", modified=7),
        draft("a", 5, "x", language="de"),
        draft("a", 6, "y", published=6),
    ]
    made, (page,), _ = run(tmp_path, drafts, parts=parts)
    assert (page.key, page.aliases) == ("https://s.example/a", ("https://s.example/bb",))
    seen = [(v.text, v.valid_from, v.valid_to, v.published, v.modified) for v in page.versions]
    assert seen == [("x", 2, 6, 1, None), ("y", 6, FOREVER, 6, 7)]
    assert page.versions[0].language == "de"
    assert (made.capture_from, made.capture_to) == (2, 8)


@pytest.mark.parametrize(
    ("times", "dates", "expected"),
    [
        ((3, 5), {"published": 9}, 5),
        ((0, 0), {"published": 7, "modified": 9}, 9),
        ((0, 0), {"published": 9, "modified": 7}, 9),
        ((0, 0), {"published": -9}, 0),
        ((0, 0), {}, 0),
    ],
)
def test_the_present_is_the_last_capture_or_else_the_newest_date(
    tmp_path: Path, times: tuple[int, int], dates: dict[str, object], expected: int
) -> None:
    made, _, _ = run(tmp_path, [draft("a", times[0], "", **dates), draft("b", times[1])])
    assert made.present == expected
    assert Snapshot.from_facts(made.as_facts()) == made


def test_no_drafts_make_an_empty_snapshot(tmp_path: Path) -> None:
    made, pages, dead = run(tmp_path, [])
    assert (made.drafts, pages, dead) == (0, [], [])
    assert made.capture_to is None


def test_facts_come_back(tmp_path: Path) -> None:
    made, *_ = run(tmp_path, [draft("a", 1), draft("a", 1, "two", declared=True), draft("b", 3)])
    assert Snapshot.from_facts(made.as_facts()) == made


def test_blocks_are_bounded_and_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "BLOCK_PAGES", 3)
    drafts = [draft(f"p{n}", v, f"{n} {v}") for n in range(8) for v in range(2)]
    made, pages, _ = run(tmp_path, drafts)
    assert made.block_versions == [6, 6, 4]
    assert len(blocks_of(tmp_path / "snapshot")) == 3
    assert [page.page_id for page in pages] == sorted(page.page_id for page in pages)
    assert len(pages) == 8


def test_characters_bound_a_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "BLOCK_CHARACTERS", 100)
    made, *_ = run(tmp_path, [draft(f"p{n}", text=f"{n}" * 60) for n in range(4)])
    assert made.block_versions == [2, 2]


def test_more_files_than_can_be_open_are_merged_in_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "MERGE_WIDTH", 3)
    drafts = [draft(f"p{n % 7}", n, f"{n}") for n in range(40)]
    (tmp_path / "one").mkdir()
    (tmp_path / "many").mkdir()
    one = run(tmp_path / "one", drafts)
    many = run(tmp_path / "many", drafts, parts=20)
    assert one == many
    left = sorted(path.name for path in (tmp_path / "many" / "snapshot").iterdir())
    assert left == ["dead.jsonl.zst", "pages-00000.jsonl.zst"]


def of_kind(name: str, time: int, text: str, kind: str, target: str) -> Draft:
    more: dict[str, dict[str, object]] = {
        "page": {},
        "row": {"declared": True},
        "redirect": {"redirect": f"https://s.example/{target}", "status": 302},
        "dead": {"status": 404},
        "canonical": {"canonical": f"https://s.example/{target}"},
    }
    return draft(name, time, text, **more[kind])


DRAFTS = st.builds(
    of_kind,
    st.sampled_from("abcd"),
    st.integers(0, 3),
    st.sampled_from(["x", "y"]),
    st.sampled_from(["page", "page", "row", "redirect", "dead", "canonical"]),
    st.sampled_from("abcde"),
)


@settings(max_examples=25)
@given(st.lists(DRAFTS, max_size=12), st.integers(1, 5))
def test_any_drafts_add_up_whatever_the_parts(
    tmp_path_factory: pytest.TempPathFactory, drafts: list[Draft], parts: int
) -> None:
    root = tmp_path_factory.mktemp("s")
    (root / "one").mkdir()
    (root / "many").mkdir()
    made, pages, dead = run(root / "one", drafts)
    assert run(root / "many", drafts, parts=parts) == (made, pages, dead)
    assert made.counts.total() == made.drafts == len(drafts)
    assert made.pages == len(pages)
    assert made.versions == sum(len(page.versions) for page in pages)
    assert made.versions == made.counts[snapshots.VERSION]
    addresses = [key for page in pages for key in (page.key, *page.aliases)]
    addresses += [link.key for link in dead]
    assert len(addresses) == len(set(addresses))
    for page in pages:
        times = [version.valid_from for version in page.versions]
        assert times == sorted(set(times))


def test_order_of_shards_decides_between_captures_of_one_second(tmp_path: Path) -> None:
    drafts = [draft("a", 1, f"{n}") for n in range(6)]
    random.Random(4).shuffle(drafts)
    _, (page,), _ = run(tmp_path, drafts, parts=3)
    assert page.versions[0].text == drafts[0].text
