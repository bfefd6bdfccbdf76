"""Which versions contain the text of a version of another page: candidates, then exact measures.

Each version lends a sample of its shingles, those with the lowest hashes, to one index, and every
version looks all of its own shingles up there. So a short text is found in a long one as well as
the other way around, which signatures of equal length do not do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corpus_builder.shingle_blocks import ShingleSets
from world_core.types import Numbers

SAMPLE = 48
"""Shingles that a version lends to the index; all of them where it has no more."""

MOST_HOLDERS = 500
"""A shingle of more pages proposes no candidates: it is a part of many, not of one."""

MISSED = 1e-6
"""Likelihood below which a version of just enough common shingles may be missed by its sample."""

ALIKE = 0.9
"""Resemblance from which two versions belong to one duplicate group."""

_FLAGS_A_KEY = 8  # flags of the filter before the index, so that most shingles end there
_TOLD = 100

Tell = Callable[[int], None]


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """What was found: version ``held[i]`` has ``common[i]`` of its shingles in ``holder[i]``.

    All (n,) int64, in ascending order of held and holder. ``sizes`` (V,) counts the shingles of
    every version. ``skipped`` shingles of the samples were too frequent to propose anything.
    """

    held: Numbers
    holder: Numbers
    common: Numbers
    sizes: Numbers
    skipped: int

    def shares(self) -> NDArray[np.float64]:
        """Return how much of each held version its holder contains."""
        return self.common / self.sizes[self.held]

    def groups(self) -> NDArray[np.int32]:
        """Return the duplicate group of every version, -1 for none; shape (V,).

        It is the lowest number among the version and those that resemble it: at least ``ALIKE`` of
        the shingles that either has are common.
        """
        either = self.sizes[self.held] + self.sizes[self.holder] - self.common
        alike = self.common / either >= ALIKE
        lowest = np.full(self.sizes.size, np.iinfo(np.int32).max, np.int64)
        np.minimum.at(lowest, self.held[alike], self.holder[alike])
        groups = np.minimum(lowest, np.arange(self.sizes.size))
        groups[lowest == np.iinfo(np.int32).max] = -1
        return groups.astype(np.int32)


def find_pairs(sets: ShingleSets, least: float, tell: Tell) -> Pairs:
    """Return all pairs of versions of two pages of which one contains the other.

    Args:
        sets: the shingles of all versions.
        least: share of a version's shingles that its holder has at least.
        tell: gets the number of versions done; each is done twice.
    """
    index, frequent, skipped = _trimmed(_Index.of(sets), sets, tell)
    needed = np.where(sets.sizes <= SAMPLE, np.floor(least * sets.sizes), fewest(least))
    # What is too frequent to be looked up may be common too.
    needed = np.maximum(1, needed.astype(np.int64) - frequent)
    found: list[Numbers] = [np.zeros((0, 3), np.int64)]
    for holder, shingles in enumerate(_told(sets, tell)):
        proposed, hits = index.owners_of(shingles)
        held = proposed[
            (hits >= needed[proposed])
            & (sets.pages[proposed] != sets.pages[holder])
            & (sets.sizes[proposed] * least <= shingles.size)
        ]
        if held.size:
            common = _measured(sets, _Members(shingles), held)
            rows = np.stack((held, np.full(held.size, holder), common), axis=1)
            found.append(rows[common / sets.sizes[held] >= least])
    pairs = np.concatenate(found)
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    return Pairs(pairs[:, 0], pairs[:, 1], pairs[:, 2], sets.sizes, skipped)


def fewest(least: float) -> int:
    """Return how many of ``SAMPLE`` shingles are common where a share of ``least`` of all is.

    Fewer have a likelihood below ``MISSED``: the lower tail of a binomial distribution, which is
    wider than that of a sample without repetition.
    """
    tail = 0.0
    for hits in range(SAMPLE):
        tail += math.comb(SAMPLE, hits) * least**hits * (1.0 - least) ** (SAMPLE - hits)
        if tail > MISSED:
            return hits
    return SAMPLE


class _Index:
    """The samples of all versions by shingle.

    ``keys`` (K,) uint64 ascending; ``owners[starts[k]:starts[k + 1]]`` lent ``keys[k]``.
    """

    def __init__(
        self, keys: NDArray[np.uint64], starts: Numbers, owners: NDArray[np.int32]
    ) -> None:
        self.keys, self.starts, self.owners = keys, starts, owners
        flags = 1 << max(10, (_FLAGS_A_KEY * keys.size).bit_length())
        self._mask = np.uint64(flags - 1)
        self._flags = np.zeros(flags, np.bool_)
        self._flags[keys & self._mask] = True

    @classmethod
    def of(cls, sets: ShingleSets) -> _Index:
        """Return the index over the samples of all versions."""
        counts = np.minimum(sets.sizes, SAMPLE)
        lent = np.zeros(int(counts.sum()), np.uint64)
        end = 0
        for shingles in sets.every():
            start, end = end, end + min(SAMPLE, shingles.size)
            lent[start:end] = shingles[:SAMPLE]
        owners = np.repeat(np.arange(sets.count, dtype=np.int32), counts)
        order = np.argsort(lent, kind="stable")
        keys, starts = np.unique(lent[order], return_index=True)
        return cls(keys, np.append(starts, lent.size), owners[order])

    def owners_of(self, shingles: NDArray[np.uint64]) -> tuple[Numbers, Numbers]:
        """Return the versions that lent any of the shingles, ascending, and how many each lent."""
        places = self.places(shingles)
        starts, counts = self.starts[places], self.starts[places + 1] - self.starts[places]
        steps = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        owners = self.owners[np.repeat(starts, counts) + steps]
        found, hits = np.unique(owners, return_counts=True)
        return found.astype(np.int64), hits.astype(np.int64)

    def places(self, shingles: NDArray[np.uint64]) -> Numbers:
        """Return the places of those of the shingles that the index has."""
        likely = shingles[self._flags[shingles & self._mask]]
        places = np.searchsorted(self.keys, likely)
        places[places == self.keys.size] = 0
        found: Numbers = places[self.keys[places] == likely] if self.keys.size else places[:0]
        return found


def _trimmed(index: _Index, sets: ShingleSets, tell: Tell) -> tuple[_Index, Numbers, int]:
    """Leave out the shingles that only one page or too many have.

    Returns:
        The index, how many shingles of each version's sample too many have, and how many these are.
    """
    holders = np.zeros(index.keys.size, np.int32)
    last = np.full(index.keys.size, -1, np.int32)  # the page that was counted last
    for page, shingles in zip(sets.pages.tolist(), _told(sets, tell), strict=True):
        places = index.places(shingles)
        fresh = places[last[places] != page]
        holders[fresh] += 1
        last[fresh] = page
    lent = np.diff(index.starts)
    many = holders > MOST_HOLDERS
    kept = (holders > 1) & ~many
    frequent = np.bincount(index.owners[np.repeat(many, lent)], minlength=sets.count)
    starts = np.concatenate(([0], np.cumsum(lent[kept])))
    owners = index.owners[np.repeat(kept, lent)]
    return _Index(index.keys[kept], starts, owners), frequent, int(np.count_nonzero(many))


def _measured(sets: ShingleSets, members: _Members, held: Numbers) -> Numbers:
    """Return how many shingles each of some versions has in common with the members; (n,)."""
    every = np.concatenate([sets.of(version) for version in held.tolist()])
    sizes = sets.sizes[held]
    found = members.has(every).view(np.uint8)
    return np.add.reduceat(found, np.cumsum(sizes) - sizes, dtype=np.int64)


class _Members:
    """The shingles of one version, asked for those of many others.

    Most lie in a table at the place their last bits name, which is ten times as fast as a search;
    ``_rest`` are those whose place another has. A free place holds the first of them all.
    """

    def __init__(self, shingles: NDArray[np.uint64]) -> None:
        size = 1 << (_FLAGS_A_KEY * shingles.size).bit_length()
        self._mask = np.uint64(size - 1)
        self._table = np.full(size, shingles[0])
        places = shingles & self._mask
        self._table[places] = shingles
        self._rest = shingles[self._table[places] != shingles]

    def has(self, shingles: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Tell which of the shingles are among the members."""
        found: NDArray[np.bool_] = self._table[shingles & self._mask] == shingles
        if self._rest.size:
            open_ = np.flatnonzero(~found)
            asked = shingles[open_]
            places = np.searchsorted(self._rest, asked)
            places[places == self._rest.size] = 0
            found[open_] = self._rest[places] == asked
        return found


def _told(sets: ShingleSets, tell: Tell) -> Iterator[NDArray[np.uint64]]:
    """Yield the shingles of all versions, telling how far it is from time to time."""
    done = 0
    for done, shingles in enumerate(sets.every(), start=1):
        yield shingles
        if done % _TOLD == 0:
            tell(_TOLD)
    tell(done % _TOLD)
