"""The lexical index in tantivy, for worlds that are served without Java.

BM25 with tantivy's fixed k1 = 1.2 and b = 0.75. Scores are float32, and tantivy 0.27 adds the
clauses of a disjunction in the order given, whatever filter restricts it and however many hits are
asked for; so a unit's score depends on query and unit alone, and equal units tie exactly.
"""

from __future__ import annotations

import importlib.metadata
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import numpy as np
import tantivy

from world_core.errors import DamagedFileError, IndexFailedError
from world_core.indexes import clauses as common
from world_core.indexes.asking import AskedIndex
from world_core.indexes.clauses import Plan
from world_core.indexes.filters import FilterMemory
from world_core.indexes.lexical import CONSTANTS
from world_core.indexes.linked_folder import linked
from world_core.types import Bitmap, Candidates, Numbers

K1, B = CONSTANTS["tantivy"]

BUFFER_MB = 1024
"""Memory the one segment may grow to while it is written, about a tenth of the text it indexes."""

# Measured costs in microseconds, which only choose among ways that all give the same answer: a unit
# in a disjunction; a unit of the world and one of the filter in a set; a hit read.
IN_DISJUNCTION, IN_WORLD, IN_SET, IN_RANKING = 5.0, 0.12, 0.6, 1.0

CHUNK = 65_536
"""Unit numbers read back at a time when a new index is verified."""

PANIC = "PanicException"
"""Name of the class that Rust's panics have in Python; no module exports it."""


class _Queries:
    """Builds tantivy queries out of clauses and unit numbers."""

    def __init__(self, schema: tantivy.Schema, fields: frozenset[str], count: int) -> None:
        self._schema = schema
        self._fields = fields
        self._count = count
        self.filters: FilterMemory[tantivy.Query] = FilterMemory(self._remember)

    def planned(self, plan: common.Plan) -> tantivy.Query:
        """Return the query whose score is the sum over the plan's scored clauses."""
        scored = self._any(plan.scored)
        if not plan.required and not plan.forbidden:
            return scored
        parts = [(tantivy.Occur.Must, scored)]
        parts += [(tantivy.Occur.Must, self._unscored(group)) for group in plan.required]
        parts += [(tantivy.Occur.MustNot, self._unscored(plan.forbidden))]
        return tantivy.Query.boolean_query(parts)

    def within(self, query: tantivy.Query, units: Numbers) -> tantivy.Query:
        """Return the query restricted to these units."""
        return self._both(query, self._restriction(units))

    def filtered(self, query: tantivy.Query, allowed: Bitmap) -> tantivy.Query:
        """Return the query restricted to the bitmap's units, by a remembered query."""
        return self._both(query, self.filters.get(allowed))

    def cost(self, units: int) -> float:
        """Return what a restriction to so many units costs, in microseconds."""
        return min(self._cost_of_disjunction(units), self._cost_of_set(units))

    def _cost_of_disjunction(self, units: int) -> float:
        return IN_DISJUNCTION * units

    def _cost_of_set(self, units: int) -> float:
        return IN_WORLD * self._count + IN_SET * units

    def _restriction(self, units: Numbers) -> tantivy.Query:
        numbers = units.tolist()
        if self._cost_of_disjunction(units.size) <= self._cost_of_set(units.size):
            return tantivy.Query.boolean_query(
                [(tantivy.Occur.Should, self._term(common.RESERVED, unit)) for unit in numbers]
            )
        return tantivy.Query.term_set_query(self._schema, common.RESERVED, numbers)

    def _any(self, clauses: Sequence[common.Clause]) -> tantivy.Query:
        """Return the disjunction of the clauses of known fields."""
        return tantivy.Query.boolean_query(
            [
                (tantivy.Occur.Should, self._clause(clause))
                for clause in clauses
                if clause.field in self._fields
            ]
        )

    def _unscored(self, clauses: Sequence[common.Clause]) -> tantivy.Query:
        return tantivy.Query.const_score_query(self._any(clauses), 0.0)

    def _clause(self, clause: common.Clause) -> tantivy.Query:
        if len(clause.terms) == 1:
            query = self._term(clause.field, clause.terms[0])
        else:
            words: list[str | tuple[int, str]] = list(clause.terms)
            query = tantivy.Query.phrase_query(self._schema, clause.field, words)
        return tantivy.Query.boost_query(query, clause.weight)

    def _term(self, field: str, value: str | int) -> tantivy.Query:
        return tantivy.Query.term_query(self._schema, field, value, "freq")

    def _both(self, query: tantivy.Query, other: tantivy.Query) -> tantivy.Query:
        unscored = tantivy.Query.const_score_query(other, 0.0)
        return tantivy.Query.boolean_query(
            [(tantivy.Occur.Must, query), (tantivy.Occur.Must, unscored)]
        )

    def _remember(self, allowed: Bitmap) -> tuple[tantivy.Query, int]:
        units = np.flatnonzero(allowed)
        return self._restriction(units), units.size


class TantivyIndex(AskedIndex[tantivy.Searcher]):
    """BM25 over units in tantivy; safe to call from several threads at once."""

    def __init__(
        self,
        folder: Path,
        searcher: tantivy.Searcher,
        schema: tantivy.Schema,
        names: frozenset[str],
    ) -> None:
        """Take over an open searcher; use ``open``."""
        super().__init__(searcher.num_docs)
        self._folder = folder
        self._fields = names
        self._searcher: tantivy.Searcher | None = searcher
        self._queries = _Queries(schema, names, self._count)
        self._engine = _engine()

    @classmethod
    def open(cls, folder: Path | str) -> Self:
        """Open an index of ``TantivyWriter``; nothing is written in its folder.

        Raises:
            DamagedFileError: the folder holds no such index.
            IndexFailedError: there is no temporary folder to open it from.
        """
        folder = Path(folder)
        names = _fields(folder)
        with linked(folder) as place:
            try:
                index = tantivy.Index.open(str(place))
                # The default policy watches the folder for commits, which never come.
                index.config_reader("manual")
                searcher = index.searcher()
            except ValueError as error:
                raise _damaged(folder, str(error)) from error
        if searcher.num_segments > 1:
            raise _damaged(folder, f"it has {searcher.num_segments} segments")
        return cls(folder, searcher, index.schema, names)

    @property
    def engine(self) -> str:
        """Name and version of the engine, such as ``tantivy-0.27.0``."""
        return self._engine

    def holders(self, field: str, terms: Sequence[str]) -> list[int]:
        """Return the number of units that hold each term in the field, 0 in an unknown field.

        Raises:
            IndexFailedError: tantivy failed, or the index is closed.
        """
        with self._lease("counting") as searcher:
            if field not in self._fields:
                return [0] * len(terms)
            return [searcher.doc_freq(field, term) for term in terms]

    def close(self) -> None:
        """Release files and memory, once the calls under way have ended."""
        self._searcher = None
        self._queries.filters.clear()

    @contextmanager
    def _lease(self, task: str) -> Iterator[tantivy.Searcher]:
        searcher = self._searcher  # keeps its files open as long as somebody holds it
        if searcher is None:
            raise IndexFailedError(f"The lexical index {self._folder} is closed.")
        try:
            yield searcher
        except ValueError as error:
            raise self._failed(task, error) from error
        except BaseException as error:
            # What damaged files make of Rust code is an exception beside ``Exception``.
            if type(error).__name__ != PANIC:
                raise
            raise self._failed(task, error) from error

    def _failed(self, task: str, error: BaseException) -> IndexFailedError:
        return IndexFailedError(f"tantivy failed while {task} in {self._folder}: {error}.")

    def _best(
        self, searcher: tantivy.Searcher, plan: Plan, k: int, allowed: Bitmap | None
    ) -> Candidates:
        query = self._queries.planned(plan)
        if allowed is None:
            return self._top(searcher, query, k)
        units = int(np.count_nonzero(allowed))
        size = 32 + k * self._count * 5 // (units * 4)
        if self._queries.cost(units) <= IN_RANKING * size:
            return self._top(searcher, self._queries.filtered(query, allowed), k)
        return self._sifted(searcher, query, k, allowed, size)

    def _scored(self, searcher: tantivy.Searcher, plan: Plan, units: Numbers) -> Candidates:
        query = self._queries.within(self._queries.planned(plan), units)
        return self._top(searcher, query, units.size)

    def _top(self, searcher: tantivy.Searcher, query: tantivy.Query, k: int) -> Candidates:
        # To count all matches is not asked for, and would cost a second pass.
        hits = searcher.search(query, min(k, self._count), count=False).hits
        return common.candidates([at.doc for _, at in hits], [score for score, _ in hits], k)

    def _sifted(
        self,
        searcher: tantivy.Searcher,
        query: tantivy.Query,
        k: int,
        allowed: Bitmap,
        size: int,
    ) -> Candidates:
        """Return the best k allowed ones of ever longer rankings; exact, since order is total."""
        while True:
            found = self._top(searcher, query, size)
            keep = np.flatnonzero(allowed[found.units])
            if keep.size >= k or found.units.size < size:
                return Candidates(found.units[keep[:k]], found.scores[keep[:k]])
            size *= 4


class TantivyWriter:
    """Writes an index in one go with one thread, units in ascending order, into one segment.

    The folder must be empty or absent, and is removed again when anything fails.
    """

    def __init__(
        self, folder: Path | str, fields: Sequence[str], *, buffer_mb: int = BUFFER_MB
    ) -> None:
        """Prepare to write an index with these fields of terms.

        Raises:
            BadInputError: the field names are unusable.
        """
        self._folder = Path(folder)
        self._fields = common.check_fields(fields)
        self._buffer_mb = buffer_mb
        self._count = 0
        self._writer: tantivy.IndexWriter | None = None

    @property
    def engine(self) -> str:
        """Name and version of the engine."""
        return _engine()

    def __enter__(self) -> Self:
        """Start writing.

        Raises:
            IndexFailedError: the folder is not empty, or tantivy failed.
        """
        common.fresh_folder(self._folder)
        builder = tantivy.SchemaBuilder()
        for name in self._fields:
            builder.add_text_field(name, tokenizer_name="whitespace", index_option="position")
        builder.add_unsigned_field(common.RESERVED, indexed=True, fast=True)
        with self._failures():
            index = tantivy.Index(builder.build(), path=str(self._folder))
            self._writer = index.writer(self._buffer_mb * 1_000_000, num_threads=1)
        return self

    def __exit__(self, *exc: object) -> None:
        """Finish and close, or drop everything when an error is passed.

        Raises:
            IndexFailedError: tantivy failed, or the units do not lie in one segment in order.
        """
        writer, self._writer = self._writer, None
        finished = False
        try:
            if writer is not None and not (exc and exc[0]):
                with self._failures():
                    writer.commit()
                    writer.wait_merging_threads()
                    self._verify()
                # Locks and the list for garbage collection are of no use to a reader.
                for name in self._folder.glob(".*"):
                    name.unlink()
                # Made for the builder's eyes only, but served by another user.
                (self._folder / "meta.json").chmod(0o644)
                finished = True
        finally:
            if not finished:
                del writer
                shutil.rmtree(self._folder)

    def add(self, fields: Mapping[str, Sequence[str]]) -> None:
        """Add the next unit: the terms of each field, in text order.

        Raises:
            BadInputError: a field is unknown or a term is malformed.
            IndexFailedError: tantivy failed, or the writer is not open.
        """
        if self._writer is None:
            raise IndexFailedError(f"The writer of {self._folder} is not open.")
        document = tantivy.Document()
        for name, text in common.texts(fields, self._fields).items():
            document.add_text(name, text)
        document.add_unsigned(common.RESERVED, self._count)
        with self._failures():
            self._writer.add_document(document)
        self._count += 1

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except (ValueError, OSError) as error:
            raise IndexFailedError(f"tantivy failed to write {self._folder}: {error}.") from error

    def _verify(self) -> None:
        searcher = tantivy.Index.open(str(self._folder)).searcher()
        if searcher.num_segments > 1:
            raise IndexFailedError(
                f"tantivy wrote {searcher.num_segments} segments into {self._folder}, since "
                f"{self._buffer_mb} MB were too few for one.",
                hint="Raise buffer_mb (up to 4,000), or build this world with Lucene.",
            )
        for start in range(0, self._count, CHUNK):
            units = list(range(start, min(start + CHUNK, self._count)))
            places = [tantivy.DocAddress(0, unit) for unit in units]
            if searcher.fast_field_values(common.RESERVED, places) != units:
                raise IndexFailedError(f"tantivy wrote {self._folder} out of unit order.")
        if searcher.num_docs != self._count:
            raise IndexFailedError(
                f"tantivy wrote {searcher.num_docs} of {self._count} units into {self._folder}."
            )


def _engine() -> str:
    return f"tantivy-{importlib.metadata.version('tantivy')}"


def _fields(folder: Path) -> frozenset[str]:
    """Return the names of an index's text fields, from its own description."""
    try:
        schema = json.loads((folder / "meta.json").read_bytes())["schema"]
        kinds = {field["name"]: field["type"] for field in schema}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _damaged(folder, f"meta.json cannot be read ({error!r})") from error
    if kinds.pop(common.RESERVED, None) != "u64":
        raise _damaged(folder, f"it has no field {common.RESERVED} of unit numbers")
    return frozenset(name for name, kind in kinds.items() if kind == "text")


def _damaged(folder: Path, reason: str) -> DamagedFileError:
    return DamagedFileError(
        f"The folder {folder} holds no readable tantivy index: {reason}.",
        hint="Run: world-server check WORLD",
    )
