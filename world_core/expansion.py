"""RM3: a query grown by the terms of the pages it finds first.

After Abdul-Jaleel et al., "UMass at TREC 2004: Novelty and HARD": the relevance model is the mean
of the found units' term distributions, weighted by their scores, and is mixed with the query's
own. Only what the view shows is found, so nothing masked lends a term; what a term is worth stays
the world's, like all collection statistics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from world_core.analysis import Analyzer
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

PASSAGES = 16
"""Passages of a unit that are read, the first ones, so that no page can slow a query down."""

DIGITS = 4
"""Decimals of an added term's factor, so that no machine's rounding can move a tie."""


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
        model, words = self._model(found.units, found.scores / found.scores.sum())
        useful = ((words[term], chance) for term, chance in self._useful(model))
        chosen = list(islice(useful, self.settings.terms))
        if not chosen:
            return query
        total = sum(chance for _, chance in chosen)
        share = own * (1.0 - self.settings.weight) / self.settings.weight
        added = [
            replace(part, factors=(round(share * chance / total, DIGITS),) * len(part.terms))
            for word, chance in chosen
            for part in self.analyzer.query(word).fields
        ]
        return replace(query, fields=(*query.fields, *added))

    def _model(
        self, units: Numbers, shares: NDArray[np.float64]
    ) -> tuple[Mapping[str, float], Mapping[str, str]]:
        """Return the chance of each term, and a word that it was met as."""
        model: dict[str, float] = {}
        words: dict[str, str] = {}
        for unit, share in zip(units.tolist(), shares.tolist(), strict=True):
            first, end = self.first_passage[unit : unit + 2].tolist()
            counts: Counter[str] = Counter()
            for passage in range(first, min(end, first + PASSAGES)):
                text = self.passages.text(passage)
                for term, start, stop in self.analyzer.tokens(text):
                    counts[term] += 1
                    if term not in words:
                        words[term] = text[start:stop]
            length = counts.total()
            for term, count in counts.items():
                model[term] = model.get(term, 0.0) + share * count / length
        return model, words

    def _useful(self, model: Mapping[str, float]) -> Iterator[tuple[str, float]]:
        """Yield the likeliest terms that tell pages apart, with their chances."""
        limit = COMMON * self.index.count
        likely = sorted(model.items(), key=lambda item: (-item[1], item[0]))
        size = 2 * self.settings.terms
        for start in range(0, len(likely), size):
            part = likely[start : start + size]
            holders = self.index.holders(FIELD, [term for term, _ in part])
            for (term, chance), held in zip(part, holders, strict=True):
                short = term.isascii() and len(term) < SHORTEST
                if not short and 0 < held <= limit:
                    yield term, chance


def _mass(part: LexicalField) -> float:
    return sum(part.factors) if part.factors else float(len(part.terms))


def unit_passages(unit: str, first_passage: Numbers, passages: int) -> Numbers:
    """Return where each unit's passages begin, and the end, shape (units + 1,)."""
    return first_passage if unit == "version" else np.arange(passages + 1)
