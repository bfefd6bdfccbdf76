"""Lucene queries out of plans and unit numbers; only plain Lucene classes."""

from __future__ import annotations

import importlib
import re
import threading
from collections.abc import Container, Iterable, Iterator, Sequence

import numpy as np

from world_core.indexes import clauses as common
from world_core.indexes import jvm
from world_core.indexes.filters import FilterMemory
from world_core.indexes.jvm import Java
from world_core.indexes.last_made import LastMade
from world_core.types import Bitmap, Numbers

SEARCH = "org.apache.lucene.search."
INDEX = "org.apache.lucene.index."
DOCUMENT = "org.apache.lucene.document."
ACROSS = "org.apache.lucene.sandbox.search.CombinedFieldQuery$Builder"
BYTES = "org.apache.lucene.util.BytesRef"
PARSER = "org.apache.lucene.queryparser.classic.QueryParser"
SPACES = "org.apache.lucene.analysis.core.WhitespaceAnalyzer"

PLAIN = re.compile(r"[^\s+\-!(){}\[\]^\"~*?:\\/&|]+")
"""A term without a character that means something to Lucene's parser of queries."""

WORDS = frozenset({"AND", "OR", "NOT"})
"""What means something to it as a whole."""

LEAST_WEIGHT = 1e-4
"""The parser knows no exponents, and smaller numbers are written with one."""

POINTS_UP_TO = 512
"""Units of a filter up to which a search tree of points is faster than a column scan."""

FEW_FORBIDDEN = 10
"""A filter that forbids at most one unit in so many is given to Lucene as the forbidden ones, any
other as the allowed ones: Lucene keeps required sets as bits once they come again, not others."""


class Queries:
    """Builds Lucene queries for an index of ``count`` units.

    Terms that are asked in several of the ``combined`` fields score there by BM25F: as if these
    fields were one, in which a field's terms and length count as often as its weight says.
    """

    def __init__(self, count: int, combined: Container[str] = ()) -> None:
        self._count = count
        self._combined = combined
        occur = jvm.load(SEARCH + "BooleanClause$Occur")
        self._should, self._must = occur.SHOULD, occur.MUST
        self._filter, self._must_not = occur.FILTER, occur.MUST_NOT
        self._builder = jvm.load(SEARCH + "BooleanQuery$Builder")
        self._boost = jvm.load(SEARCH + "BoostQuery")
        self._term_query = jvm.load(SEARCH + "TermQuery")
        self._term = jvm.load(INDEX + "Term")
        self._phrase = jvm.load(SEARCH + "PhraseQuery")
        self._across_query = jvm.load(ACROSS)
        self._bytes = jvm.load(BYTES)
        self._points = jvm.load(DOCUMENT + "LongPoint").newSetQuery
        self._column = jvm.load(DOCUMENT + "NumericDocValuesField").newSlowSetQuery
        jpype = importlib.import_module("jpype")
        self._longs = jpype.JArray.of
        self._parser_of = jvm.load(PARSER)
        self._spaces = jvm.load(SPACES)()
        self._parsers = threading.local()
        self.planned = LastMade(self._planned)
        self.filters: FilterMemory[tuple[Java, Java]] = FilterMemory(self._restriction)

    def _planned(self, plan: common.Plan) -> Java:
        """Return the query whose score is the sum over the plan's scored clauses."""
        scored = self._parsed(plan.scored)
        if scored is None:
            scored = self._any(self._groups(plan.scored))
        if not plan.required and not plan.forbidden:
            return scored
        builder = self._builder().add(scored, self._must)
        for group in plan.required:
            builder.add(self._any(map(self._clause, group)), self._filter)
        for clause in plan.forbidden:
            builder.add(self._clause(clause), self._must_not)
        return builder.build()

    def within(self, query: Java, units: Numbers) -> Java:
        """Return the query restricted to these units."""
        return self._both(query, self._set(units), self._filter)

    def filtered(self, query: Java, allowed: Bitmap) -> Java:
        """Return the query restricted to the bitmap's units."""
        return self._both(query, *self.filters.get(allowed))

    def holders(self, reader: Java, field: str, terms: Sequence[str]) -> list[int]:
        """Return the number of units that hold each term in the field."""
        return [int(reader.docFreq(self._term(field, term))) for term in terms]

    def _parsed(self, scored: Sequence[common.Clause]) -> Java:
        """Return the query of plain terms, each in its field alone, and ``None`` for any other.

        It is the one that ``_any`` would put together, but for a single clause, which comes bare.
        Java reads the text of all clauses at once, where crossing into it for each takes twice as
        long.
        """
        if self._combined or not all(map(_is_plain, scored)):
            return None
        parser = getattr(self._parsers, "own", None)  # it serves one thread at a time
        if parser is None:
            parser = self._parsers.own = self._parser_of(common.RESERVED, self._spaces)
        return parser.parse(" ".join([f"{c.field}:{c.terms[0]}^{float(c.weight)}" for c in scored]))

    def _groups(self, scored: Sequence[common.Clause]) -> Iterator[Java]:
        for group in common.by_term(scored, self._combined):
            alone = len(group) == 1
            yield self._clause(group[0]) if alone else self._across(group)

    def _any(self, queries: Iterable[Java]) -> Java:
        builder = self._builder()
        for query in queries:
            builder.add(query, self._should)
        return builder.build()

    def _clause(self, clause: common.Clause) -> Java:
        if len(clause.terms) == 1:
            query = self._term_query(self._term(clause.field, clause.terms[0]))
        else:
            query = self._phrase(clause.field, *clause.terms)
        return self._boost(query, clause.weight)

    def _across(self, group: Sequence[common.Clause]) -> Java:
        """Return BM25F of one term in several fields, times the smallest of their weights.

        Lucene takes weights of at least 1, so the smallest is taken out of the brackets.
        """
        least = min(clause.weight for clause in group)
        builder = self._across_query().addTerm(self._bytes(group[0].terms[0]))
        for clause in group:
            builder.addField(clause.field, clause.weight / least)
        return self._boost(builder.build(), least)

    def _both(self, query: Java, other: Java, occur: Java) -> Java:
        return self._builder().add(query, self._must).add(other, occur).build()

    def _restriction(self, allowed: Bitmap) -> tuple[tuple[Java, Java], int]:
        forbidden = np.flatnonzero(~allowed)
        if FEW_FORBIDDEN * forbidden.size <= self._count:
            return (self._set(forbidden), self._must_not), forbidden.size
        units = np.flatnonzero(allowed)
        return (self._set(units), self._filter), units.size

    def _set(self, units: Numbers) -> Java:
        make = self._points if units.size <= POINTS_UP_TO else self._column
        return make(common.RESERVED, self._longs(np.ascontiguousarray(units, dtype=np.int64)))


def _is_plain(clause: common.Clause) -> bool:
    field, terms, weight = clause
    return (
        len(terms) == 1
        and weight >= LEAST_WEIGHT
        and terms[0] not in WORDS
        and PLAIN.fullmatch(terms[0]) is not None
        and PLAIN.fullmatch(field) is not None
    )
