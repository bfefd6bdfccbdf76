"""Which addresses lead to the same page: redirects, canonical links, exact duplicates.

Pure functions over what is known of every address. An alias never shadows an address that has a
page of its own, and near-duplicates never become aliases.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from world_core.types import DeadLink, Instant, VersionRecord

MAX_HOPS = 10

AS_DUPLICATE = "exact duplicate, now an alias"
AS_REDIRECT = "redirect, now an alias"
AS_DEAD = "redirect to a dead link, now a dead link"
LOOP = "redirect loop"
NOWHERE = "redirect to an address outside the world"
SHADOWED = "redirect of an address that has a page"


@dataclass(frozen=True, slots=True)
class Moment:
    """When a version of a history began, and the dates it names."""

    valid_from: Instant
    published: Instant | None = None
    modified: Instant | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """What deciding about an address with content takes.

    ``signature`` stands for the version history (titles and texts), ``canonical`` is the key the
    latest version names as its address, "" if none or itself. ``declared`` marks rows of a dump.
    ``texts`` is false when no version holds any text. ``moments`` holds one entry a version.
    """

    key: str
    url: str
    signature: bytes
    canonical: str
    declared: bool
    texts: bool
    moments: tuple[Moment, ...] = ()


@dataclass(frozen=True, slots=True)
class Redirect:
    """The last redirect that was captured at an address with no content of its own."""

    key: str
    url: str
    target: str


@dataclass(frozen=True, slots=True)
class Resolution:
    """What the addresses came to.

    ``alias_of`` maps every alias to the key of its page. ``dead`` are dead links in key order,
    ``counts`` says by reason what became of redirects and merged pages. ``moments`` holds those of
    every page that others were merged into: a text exists since its first capture at any of them.
    """

    alias_of: Mapping[str, str]
    dead: tuple[DeadLink, ...]
    counts: Mapping[str, int]
    moments: Mapping[str, tuple[Moment, ...]]

    def aliases(self) -> dict[str, tuple[str, ...]]:
        """Return the sorted aliases of every page that has any."""
        by_page: defaultdict[str, list[str]] = defaultdict(list)
        for alias in sorted(self.alias_of):
            by_page[self.alias_of[alias]].append(alias)
        return {key: tuple(found) for key, found in by_page.items()}


def signature(versions: Sequence[VersionRecord]) -> bytes:
    """Return a digest of a version history's titles and texts, 16 bytes."""
    running = hashlib.sha256()
    for version in versions:
        for part in (version.title, version.text):
            data = part.encode("utf-8")
            running.update(b"%d:" % len(data))
            running.update(data)
    return running.digest()[:16]


def resolve(
    candidates: Iterable[Candidate],
    redirects: Iterable[Redirect],
    dead: Iterable[DeadLink],
    *,
    exact_duplicates: str,
) -> Resolution:
    """Decide which addresses are pages, aliases and dead links; independent of the input's order.

    Args:
        candidates: one for every address with content.
        redirects: one for every address that only ever redirected.
        dead: one for every address that only ever failed.
        exact_duplicates: ``auto``, ``alias`` or ``keep``, see ``recipe.SnapshotRecipe``.
    """
    pages = {candidate.key: candidate for candidate in candidates}
    hops = {redirect.key: redirect for redirect in redirects}
    broken = {link.key: link for link in dead}
    counts: Counter[str] = Counter()
    alias_of = _merge_equals(pages, exact_duplicates)
    counts[AS_DUPLICATE] += len(alias_of)
    merged = dict(alias_of)
    claims = _canonical_claims(pages, merged, pages.keys() | hops.keys() | broken.keys())
    alias_of |= claims
    for key in sorted(hops):
        end = _follow(key, hops)
        if end is None:
            counts[LOOP] += 1
        elif end in pages:
            alias_of[key] = merged.get(end, end)
            counts[AS_REDIRECT] += 1
        elif end in claims:
            alias_of[key] = claims[end]
            counts[AS_REDIRECT] += 1
        elif end in broken:
            broken[key] = DeadLink(key, hops[key].url, broken[end].status, broken[end].time)
            counts[AS_DEAD] += 1
        else:
            counts[NOWHERE] += 1
    links = tuple(broken[key] for key in sorted(broken))
    told = {reason: n for reason, n in counts.items() if n}
    return Resolution(alias_of, links, told, _merged_moments(pages, merged))


def _merge_equals(pages: Mapping[str, Candidate], policy: str) -> dict[str, str]:
    """Return aliases among pages with equal histories.

    A crawled page joins the equal page it names as its address under every policy; all crawled
    equals are joined under ``auto``, all equals under ``alias``.
    """
    groups: defaultdict[bytes, list[Candidate]] = defaultdict(list)
    for page in pages.values():
        if page.texts:
            groups[page.signature].append(page)
    alias_of: dict[str, str] = {}
    for group in groups.values():
        if len(group) > 1:
            for part in _parts(group, policy):
                winner = _winner(part)
                alias_of |= {page.key: winner for page in part if page.key != winner}
    return alias_of


def _merged_moments(
    pages: Mapping[str, Candidate], merged: Mapping[str, str]
) -> dict[str, tuple[Moment, ...]]:
    """Return the moments of every page with merged ones, version by version.

    Beginnings ascend in every history, so their minima ascend too.
    """
    histories: defaultdict[str, list[Candidate]] = defaultdict(list)
    for key, winner in merged.items():
        histories[winner].append(pages[key])
    return {
        winner: tuple(
            _earliest(moments)
            for moments in zip(
                *(page.moments for page in sorted([pages[winner], *others], key=_preference)),
                strict=True,
            )
        )
        for winner, others in histories.items()
    }


def _earliest(moments: Sequence[Moment]) -> Moment:
    """Return the first beginning and the first dates known; of equal ones the first in order."""
    ordered = sorted(moments, key=lambda moment: moment.valid_from)
    return Moment(
        ordered[0].valid_from,
        next((at.published for at in ordered if at.published is not None), None),
        next((at.modified for at in ordered if at.modified is not None), None),
    )


def _parts(group: Sequence[Candidate], policy: str) -> Iterable[list[Candidate]]:
    """Split a group of equals into the parts that become one page each."""
    members = {page.key: page for page in sorted(group, key=_preference)}
    root = {key: key for key in members}

    def find(key: str) -> str:
        while root[key] != key:
            key = root[key]
        return key

    joined = [page for page in members.values() if policy == "alias" or not page.declared]
    for page in joined:
        if page.canonical in members and not page.declared:
            root[find(page.key)] = find(page.canonical)
        if policy != "keep":
            root[find(page.key)] = find(joined[0].key)
    parts: defaultdict[str, list[Candidate]] = defaultdict(list)
    for key, page in members.items():
        parts[find(key)].append(page)
    return parts.values()


def _winner(part: Sequence[Candidate]) -> str:
    """Return the key that stays: one that others name as their address, then the shortest URL."""
    keys = {page.key for page in part}
    named = {page.canonical for page in part if page.canonical != page.key} & keys
    return min((page for page in part if not named or page.key in named), key=_preference).key


def _preference(page: Candidate) -> tuple[int, str, str]:
    return len(page.url), page.url, page.key


def _follow(key: str, hops: Mapping[str, Redirect]) -> str | None:
    """Return where a chain of redirects ends, None after more than ``MAX_HOPS``."""
    for _ in range(MAX_HOPS + 1):
        if key not in hops:
            return key
        key = hops[key].target
    return None


def _canonical_claims(
    pages: Mapping[str, Candidate], merged: Mapping[str, str], known: Iterable[str]
) -> dict[str, str]:
    """Return aliases for named addresses that were never captured.

    Pages with different texts that name one address do not know what is there (a site that names
    its start page everywhere), so such an address stays unknown.
    """
    claims: defaultdict[str, set[str]] = defaultdict(set)
    taken = set(known)
    for page in pages.values():
        if page.canonical and page.canonical not in taken and not page.declared:
            claims[page.canonical].add(merged.get(page.key, page.key))
    return {key: next(iter(claimers)) for key, claimers in claims.items() if len(claimers) == 1}
