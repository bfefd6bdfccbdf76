"""RM3: a query grown by the terms of the pages it finds first.

After Abdul-Jaleel et al., "UMass at TREC 2004: Novelty and HARD": the relevance model is the mean
of the found units' term distributions, weighted by their scores, and is mixed with the query's
own. Only what the view shows is found, so nothing masked lends a term; what a term is worth stays
the world's, like all collection statistics.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from world_core.analysis import Analyzer, term_hash
from world_core.indexes.lexical import LexicalIndex
from world_core.lexical_settings import ExpansionSettings
from world_core.passages import PassageFile
from world_core.types import Bitmap, LexicalField, LexicalQuery, Numbers

FIELD = "body"
"""The field whose terms are counted, in the query and in the index."""

COMMON = 0.1
"""A term in more than this share of the units says nothing about the pages found."""

SHORTEST = 2
"""Characters of the shortest ASCII term that may be added."""

PASSAGES = 64
"""Passages of a unit that are read, the first ones, so that no page can slow a query down."""

DIGITS = 4
"""Decimals of an added term's factor, so that no machine's rounding can move a tie."""


class _Place(NamedTuple):
    """Where a term was met first."""

    passage: int
    token: int


@dataclass(frozen=True, slots=True)
class Expansion:
    """Grows queries over one index; pure, so safe under threads.

    ``first_passage`` (units + 1,): unit u owns the passages from ``first_passage[u]`` up to
    ``first_passage[u + 1]``.
    """

    index: LexicalIndex
    passages: PassageFile
    first_passage: Numbers
    analyzer: Analyzer
    settings: ExpansionSettings

    def grown(self, query: LexicalQuery, allowed: Bitmap | None) -> LexicalQuery:
        """Return the query with the terms of its own best units inside ``allowed`` added.

        The query's own terms together keep ``weight`` of the whole.

        Raises:
            BadInputError: the query is unusable.
            IndexFailedError: the index failed.
            DamagedFileError: a passage is damaged.
        """
        found = self.index.search(query, self.settings.docs, allowed)
        own = sum(_mass(part) for part in query.fields if part.name == FIELD)
        if not found.units.size or not own:
            return query
        model, places = self._model(found.units, found.scores / found.scores.sum())
        chosen = dict(islice(self._useful(model, places), self.settings.terms))
        total = sum(chosen.values())
        share = own * (1.0 - self.settings.weight) / self.settings.weight
        added = [
            replace(part, factors=(round(share * chance / total, DIGITS),) * len(part.terms))
            for word, chance in chosen.items()
            for part in self.analyzer.query(word).fields
        ]
        return replace(query, fields=(*query.fields, *added))

    def _model(
        self, units: Numbers, shares: NDArray[np.float64]
    ) -> tuple[dict[int, float], Mapping[int, _Place]]:
        """Return the chance of each term by its hash, and where it was met first."""
        model: dict[int, float] = {}
        places: dict[int, _Place] = {}
        for unit, share in zip(units.tolist(), shares.tolist(), strict=True):
            first, end = self.first_passage[unit : unit + 2].tolist()
            held: list[NDArray[np.uint32]] = []
            for passage in range(first, min(end, first + PASSAGES)):
                hashes, _ = self.passages.terms(passage)
                held.append(hashes)
                distinct, tokens = np.unique(hashes, return_index=True)
                for number, token in zip(distinct.tolist(), tokens.tolist(), strict=True):
                    places.setdefault(number, _Place(passage, token))
            if held:
                every = np.concatenate(held)
                distinct, counts = np.unique(every, return_counts=True)
                chances = share * counts / every.size
                for number, chance in zip(distinct.tolist(), chances.tolist(), strict=True):
                    model[number] = model.get(number, 0.0) + chance
        return model, places

    def _useful(
        self, model: Mapping[int, float], places: Mapping[int, _Place]
    ) -> Iterator[tuple[str, float]]:
        """Yield the words of the likeliest terms that tell pages apart, with their chances."""
        limit = COMMON * self.index.count
        text = lru_cache(self.passages.text)
        tokens = lru_cache(lambda passage: self.analyzer.tokens(text(passage)))
        likely = sorted(model.items(), key=lambda item: (-item[1], item[0]))
        size = 2 * self.settings.terms
        for start in range(0, len(likely), size):
            part = likely[start : start + size]
            met = [tokens(places[number].passage)[places[number].token] for number, _ in part]
            holders = self.index.holders(FIELD, [token.term for token in met])
            for (number, chance), token, held in zip(part, met, holders, strict=True):
                short = token.term.isascii() and len(token.term) < SHORTEST
                if term_hash(token.term) == number and not short and 0 < held <= limit:
                    yield text(places[number].passage)[token.start : token.end], chance


def _mass(part: LexicalField) -> float:
    return sum(part.factors) if part.factors else float(len(part.terms))


def unit_passages(unit: str, first_passage: Numbers, passages: int) -> Numbers:
    """Return where each unit's passages begin, and the end, shape (units + 1,)."""
    return first_passage if unit == "version" else np.arange(passages + 1)
