"""From drafts in any number of sorted files to pages with versions, in canonical order.

Drafts are merged by (page id, time, place in the input), so memory holds one address at a time and
a few hundred bytes for every address.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from corpus_builder import dedup
from corpus_builder.capture import Draft, Loss
from corpus_builder.errors import StageFailedError
from corpus_builder.rows import draft_from, page_from, read_rows, write_rows
from world_core import urls
from world_core.types import FOREVER, DeadLink, Instant, PageRecord, VersionRecord

BLOCK_PAGES = 1000
BLOCK_CHARACTERS = 16_000_000
"""A block of pages, the unit of the stages after this one, is full at either number."""

LISTED_LOSSES = 1000
"""How many losses are listed one by one; all are counted."""

MERGE_WIDTH = 200
"""Sorted files merged at once, to stay far below the limit on open files."""

VERSION = "version of a page"
EQUAL = "equal capture, folded into its version"
SAME_TIME = "other content at the same time"
DUPLICATE_URL = "duplicate url"
ERROR_KEPT = "dead link"
ERROR_FOLDED = "HTTP error of an address known otherwise"
REDIRECT_FOLDED = "another redirect of the same address"
REDIRECT_TO_SELF = "redirect to another spelling of itself"


@dataclass(frozen=True, slots=True)
class Placed:
    """A draft with its place: page id, and shard and item number of the input."""

    page_id: str
    shard: int
    item: int
    draft: Draft

    @property
    def order(self) -> tuple[str, Instant, int, int]:
        """The place of a draft in the one order in which a snapshot reads drafts."""
        return self.page_id, self.draft.time, self.shard, self.item

    def row(self) -> list[object]:
        """Return the draft as a row of a file."""
        return [*self.order, self.draft]


@dataclass(slots=True)
class Snapshot:
    """What a snapshot came to; the pages and dead links lie in files.

    ``counts`` says what became of every draft and adds up to ``drafts``; ``losses`` are those that
    cost a page. ``newest_date`` is the last day of publication or change that a version names.
    """

    drafts: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    losses: list[Loss] = field(default_factory=list)
    pages: int = 0
    links: int = 0
    dead_links: int = 0
    block_versions: list[int] = field(default_factory=list)
    languages: set[str] = field(default_factory=set)
    capture_from: Instant | None = None
    capture_to: Instant | None = None
    newest_date: Instant | None = None

    @property
    def versions(self) -> int:
        """Versions of all pages."""
        return sum(self.block_versions)

    @property
    def present(self) -> Instant:
        """The last capture; where captures have no time the newest date, 0 if there is none."""
        return self.capture_to or max(0, self.newest_date or 0)

    def as_facts(self) -> dict[str, object]:
        """Return the snapshot as plain values for a stage's marker."""
        listed = [asdict(loss) for loss in self.losses[:LISTED_LOSSES]]
        languages = sorted(self.languages)
        plain = {name: getattr(self, name) for name in self.__slots__}
        return {**plain, "losses": listed, "languages": languages, "counts": dict(self.counts)}

    @classmethod
    def from_facts(cls, facts: Mapping[str, object]) -> Snapshot:
        """Return the snapshot that gave these values."""
        snapshot = cls(**facts)  # type: ignore[arg-type]  # written by as_facts
        snapshot.counts = Counter(snapshot.counts)
        snapshot.losses = [Loss(**loss) for loss in facts["losses"]]  # type: ignore[attr-defined]  # ditto
        snapshot.languages = set(snapshot.languages)
        return snapshot

    def saw(self, time: Instant) -> None:
        """Widen the capture range to a time."""
        self.capture_from = time if self.capture_from is None else min(self.capture_from, time)
        self.capture_to = time if self.capture_to is None else max(self.capture_to, time)


@dataclass(slots=True)
class _Address:
    """Everything captured at one address."""

    page: PageRecord | None
    candidate: dedup.Candidate | None
    redirect: dedup.Redirect | None
    dead: DeadLink | None


def make_snapshot(parts: Sequence[Path], folder: Path, *, exact_duplicates: str) -> Snapshot:
    """Write ``pages-NNNNN.jsonl.zst`` and ``dead.jsonl.zst`` into the folder.

    Args:
        parts: files of drafts, each sorted by ``Placed.order``.
        folder: an empty folder; temporary files are removed again.
        exact_duplicates: see ``recipe.SnapshotRecipe``.

    Raises:
        StageFailedError: the counts do not add up.
    """
    snapshot = Snapshot()
    candidates: list[dedup.Candidate] = []
    redirects: list[dedup.Redirect] = []
    dead: list[DeadLink] = []

    def folded() -> Iterator[PageRecord]:
        for address in _addresses(_merged(parts, folder), snapshot):
            if address.page is not None and address.candidate is not None:
                candidates.append(address.candidate)
                yield address.page
            elif address.redirect is not None:
                redirects.append(address.redirect)
            elif address.dead is not None:
                dead.append(address.dead)

    unmerged = folder / "unmerged.jsonl.zst"
    write_rows(unmerged, folded())
    resolution = dedup.resolve(candidates, redirects, dead, exact_duplicates=exact_duplicates)
    snapshot.counts.update({**resolution.counts, dedup.AS_DUPLICATE: 0})
    pages = _final_pages(unmerged, resolution, snapshot)
    for number, block in enumerate(_blocks(pages)):
        write_rows(folder / f"pages-{number:05d}.jsonl.zst", block)
        snapshot.block_versions.append(sum(len(page.versions) for page in block))
    write_rows(folder / "dead.jsonl.zst", resolution.dead)
    snapshot.dead_links = len(resolution.dead)
    unmerged.unlink()
    snapshot.counts = +snapshot.counts
    if snapshot.counts.total() != snapshot.drafts:
        raise StageFailedError(
            f"The snapshot accounts for {snapshot.counts.total()} of {snapshot.drafts} drafts.",
            hint="Report this with the build's input.",
        )
    return snapshot


def blocks_of(folder: Path) -> list[Path]:
    """Return the files of a snapshot's pages in order."""
    return sorted(folder.glob("pages-*.jsonl.zst"))


def read_pages(blocks: Iterable[Path]) -> Iterator[PageRecord]:
    """Yield the pages of the blocks, in ascending page id."""
    for block in blocks:
        for row in read_rows(block):
            if isinstance(row, dict):
                yield page_from(row)


def read_texts(block: Path) -> Iterator[list[str]]:
    """Yield the texts of the versions of each page of a block, in the order of ``read_pages``."""
    for row in read_rows(block):
        if isinstance(row, dict) and isinstance(versions := row["versions"], list):
            yield [version["text"] for version in versions]


def read_dead_links(folder: Path) -> Iterator[DeadLink]:
    """Yield the dead links of a snapshot in ascending key."""
    for row in read_rows(folder / "dead.jsonl.zst"):
        if isinstance(row, dict):
            yield DeadLink(**row)  # type: ignore[arg-type]  # written by us


def _blocks(pages: Iterable[PageRecord]) -> Iterator[list[PageRecord]]:
    block: list[PageRecord] = []
    characters = 0
    for page in pages:
        block.append(page)
        characters += sum(len(version.text) for version in page.versions)
        if len(block) >= BLOCK_PAGES or characters >= BLOCK_CHARACTERS:
            yield block
            block, characters = [], 0
    if block:
        yield block


def _merged(parts: Sequence[Path], folder: Path) -> Iterator[list[object]]:
    """Yield the rows of all files in one order, by way of wider files when there are many."""
    files = list(parts)
    made: list[Path] = []
    while len(files) > MERGE_WIDTH:
        batch, files = files[:MERGE_WIDTH], files[MERGE_WIDTH:]
        wider = folder / f"merge-{len(made):05d}.jsonl.zst"
        write_rows(wider, _merge(batch))
        made.append(wider)
        files.append(wider)
    yield from _merge(files)
    for path in made:
        path.unlink()


def _merge(files: Sequence[Path]) -> Iterator[list[object]]:
    return heapq.merge(*map(_rows, files), key=itemgetter(0, 1, 2, 3))


def _rows(path: Path) -> Iterator[list[object]]:
    for row in read_rows(path):
        if isinstance(row, list):
            yield row


def _addresses(rows: Iterable[list[object]], snapshot: Snapshot) -> Iterator[_Address]:
    for page_id, group in groupby(rows, key=itemgetter(0)):
        drafts = [draft_from(row[4]) for row in group if isinstance(row[4], dict)]
        snapshot.drafts += len(drafts)
        yield fold(str(page_id), drafts, snapshot)


def fold(page_id: str, drafts: Sequence[Draft], snapshot: Snapshot) -> _Address:
    """Turn all drafts of one address, in order, into what is known of it, and count them."""
    versions: list[VersionRecord] = []
    shown: Draft | None = None
    latest: Draft | None = None
    redirect: Draft | None = None
    error: Draft | None = None
    for draft in drafts:
        if draft.redirect:
            if urls.canonical(draft.redirect) == draft.key:
                snapshot.counts[REDIRECT_TO_SELF] += 1
                continue
            snapshot.counts[REDIRECT_FOLDED] += redirect is not None
            redirect = draft
        elif draft.status != 200:
            snapshot.counts[ERROR_FOLDED] += error is not None
            error = draft
        elif (reason := _follows(latest, draft)) is None:
            snapshot.saw(draft.time)
            snapshot.counts[VERSION] += 1
            shown = shown or draft
            versions.append(_version(draft))
            latest = draft
        else:
            snapshot.saw(draft.time)
            snapshot.counts[reason] += 1
            if reason == DUPLICATE_URL:
                snapshot.losses.append(Loss(draft.origin, draft.offset, reason, draft.url))
    if shown is None or latest is None:
        return _without_content(redirect, error, snapshot)
    snapshot.counts[dedup.SHADOWED] += redirect is not None
    snapshot.counts[ERROR_FOLDED] += error is not None
    page = PageRecord(page_id, shown.key, shown.url, _in_time(versions))
    candidate = dedup.Candidate(
        key=page.key,
        url=page.url,
        signature=dedup.signature(page.versions),
        canonical="" if latest.canonical == page.key else latest.canonical,
        declared=latest.declared,
        texts=any(version.text for version in versions),
        moments=tuple(
            dedup.Moment(version.valid_from, version.published, version.modified)
            for version in versions
        ),
    )
    return _Address(page, candidate, None, None)


def _follows(latest: Draft | None, draft: Draft) -> str | None:
    """Return None if the draft begins a version, else why it does not."""
    if latest is None:
        return None
    equal = (latest.title, latest.text) == (draft.title, draft.text)
    if latest.time == draft.time:
        if equal:
            return EQUAL
        return DUPLICATE_URL if latest.declared and draft.declared else SAME_TIME
    return EQUAL if equal else None


def _without_content(redirect: Draft | None, error: Draft | None, snapshot: Snapshot) -> _Address:
    if redirect is not None:
        snapshot.counts[ERROR_FOLDED] += error is not None
        target = urls.canonical(redirect.redirect)
        return _Address(None, None, dedup.Redirect(redirect.key, redirect.url, target), None)
    if error is not None:
        snapshot.counts[ERROR_KEPT] += 1
        link = DeadLink(error.key, error.url, error.status, error.time)
        return _Address(None, None, None, link)
    return _Address(None, None, None, None)


def _version(draft: Draft) -> VersionRecord:
    return VersionRecord(
        title=draft.title,
        text=draft.text,
        language=draft.language,
        valid_from=draft.time,
        published=draft.published,
        modified=draft.modified,
        links=draft.links,
        mime=draft.mime,
    )


def _in_time(versions: Sequence[VersionRecord]) -> tuple[VersionRecord, ...]:
    """Let each version end where the next begins."""
    ends = [*(version.valid_from for version in versions[1:]), FOREVER]
    return tuple(
        replace(version, valid_to=end) for version, end in zip(versions, ends, strict=True)
    )


def _since(
    versions: Sequence[VersionRecord], moments: Sequence[dedup.Moment]
) -> tuple[VersionRecord, ...]:
    """Let versions begin, and name their dates, as the moments of merged histories say."""
    return _in_time(
        [
            replace(
                version,
                valid_from=moment.valid_from,
                published=moment.published,
                modified=moment.modified,
            )
            for version, moment in zip(versions, moments, strict=True)
        ]
    )


def _final_pages(
    unmerged: Path, resolution: dedup.Resolution, snapshot: Snapshot
) -> Iterator[PageRecord]:
    """Yield the pages that stayed, with their aliases, and move the versions of the others."""
    aliases = resolution.aliases()
    for row in read_rows(unmerged):
        if not isinstance(row, dict):
            continue
        if row["key"] in resolution.alias_of:
            count = len(row["versions"]) if isinstance(row["versions"], list) else 0
            snapshot.counts[VERSION] -= count
            snapshot.counts[dedup.AS_DUPLICATE] += count
            continue
        page = page_from(row)
        if moments := resolution.moments.get(page.key):
            page = replace(page, versions=_since(page.versions, moments))
        page = replace(page, aliases=aliases.get(page.key, ()))
        snapshot.pages += 1
        snapshot.links += sum(len(version.links) for version in page.versions)
        snapshot.languages.update(version.language for version in page.versions)
        snapshot.newest_date = max(_dates(page, snapshot.newest_date), default=None)
        yield page


def _dates(page: PageRecord, known: Instant | None) -> Iterator[Instant]:
    named = (date for version in page.versions for date in (version.published, version.modified))
    return (date for date in (known, *named) if date is not None)
