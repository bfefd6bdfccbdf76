"""Evidence: which sentence of each page says most about a query, by the terms that stand in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from world_core.passages import Found, PassageFile
from world_core.snippets import Match, snippet
from world_core.types import Numbers


@dataclass(frozen=True, slots=True)
class Evidence:
    """The best sentence of some passages: its passage and its number there.

    ``begins`` and ``matches`` are those of the whole passage, ``weights`` the worth of each term of
    the query in this page. Without a match the passage is -1.
    """

    passage: int = -1
    sentence: int = 0
    begins: tuple[int, ...] = ()
    matches: tuple[Match, ...] = ()
    weights: tuple[float, ...] = ()


NOTHING = Evidence()


def find_evidence(
    passages: PassageFile, ranges: Sequence[range], weights: Mapping[int, float]
) -> list[Evidence]:
    """Return the evidence of each range of passages, one page each.

    A sentence is worth the weights of its distinct terms. A term is worth the less the more
    sentences of the page hold it: by the square root, for what a page says everywhere tells nothing
    about its parts. Of equal sentences the first is taken.

    Args:
        passages: where the terms stand.
        ranges: the passages of each page, disjoint, in any order.
        weights: weight of each root (``passages.term_root``) of the query; those <= 0 do not count.

    Raises:
        BadInputError: there is no such passage.
    """
    asked = sorted((root, weight) for root, weight in weights.items() if weight > 0)
    if not asked:
        return [NOTHING] * len(ranges)
    roots = np.array([root for root, _ in asked], np.uint32)
    worth = np.array([weight for _, weight in asked], np.float64)
    order = sorted(range(len(ranges)), key=lambda place: ranges[place].start)
    found = passages.find([ranges[place] for place in order], roots)
    filled = [place for place in order if len(ranges[place])]
    # Where each page's sentences and matches begin: both stand in the order of the passages.
    stops = np.array([ranges[place].stop for place in filled], np.int64)
    edges = np.concatenate(([0], np.searchsorted(found.sentence_passage, stops)))
    scores, local = _scored(found, edges, worth)
    result = [NOTHING] * len(ranges)
    for place, (first, end), page in zip(
        filled, pairwise(edges.tolist()), local.tolist(), strict=True
    ):
        best = first + int(scores[first:end].argmax()) if first < end else -1
        if best >= 0 and scores[best] > 0:
            result[place] = _evidence(found, best, tuple(page))
    return result


def show_evidence(passages: PassageFile, evidence: Evidence) -> str:
    """Return the snippet of a sentence and what stands around it; "" without a passage."""
    number = evidence.passage
    if number < 0:
        return ""
    return snippet(
        passages.text(number),
        evidence.begins,
        chosen=evidence.sentence,
        matches=evidence.matches,
        weights=evidence.weights,
        terms=passages.term_count(number),
    )


def _scored(
    found: Found, edges: Numbers, worth: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what each sentence is worth, (sentences,), and each root in each page, (pages, roots).

    ``edges`` (pages + 1,) say where each page's sentences begin.
    """
    pages, roots = edges.size - 1, worth.size
    # Flags instead of sorting: each root counts once a sentence.
    stands = np.zeros(int(edges[-1]) * roots, np.bool_)
    stands[found.sentence * roots + found.root] = True
    sentence, root = np.divmod(np.flatnonzero(stands), roots)
    page = np.repeat(np.arange(pages), np.diff(edges))[sentence]
    holders = np.bincount(page * roots + root, minlength=pages * roots).reshape(pages, roots)
    local = worth * np.sqrt(np.diff(edges)[:, None] / np.maximum(holders, 1))
    scores = np.bincount(sentence, weights=local[page, root], minlength=int(edges[-1]))
    return scores.astype(np.float64, copy=False), local


def _evidence(found: Found, best: int, weights: tuple[float, ...]) -> Evidence:
    passage = int(found.sentence_passage[best])
    first, end = found.sentence_passage.searchsorted([passage, passage + 1]).tolist()
    low, high = found.passage.searchsorted([passage, passage + 1]).tolist()
    starts, roots = found.start[low:high].tolist(), found.root[low:high].tolist()
    return Evidence(
        passage,
        best - first,
        tuple(found.sentence_start[first:end].tolist()),
        tuple(map(Match, starts, roots)),
        weights,
    )
