"""The lexical index in Lucene, through JPype; only plain Lucene classes, no analysis of text.

Lucene adds a document's clause scores as float64 and rounds the sum to float32 once. The float64
sum of float32 numbers is exact unless they lie more than 2**29 / clauses apart, so a score does
not depend on the order in which pruned, filtered or restricted scoring adds.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from world_core.errors import BadInputError, DamagedFileError, IndexFailedError
from world_core.indexes import clauses as common
from world_core.indexes import jvm
from world_core.indexes.asking import AskedIndex
from world_core.indexes.clauses import Plan
from world_core.indexes.jvm import Java
from world_core.indexes.lexical import CONSTANTS
from world_core.indexes.lucene_hits import HitReader
from world_core.indexes.lucene_queries import DOCUMENT, INDEX, SEARCH, Queries
from world_core.types import Bitmap, Candidates, Numbers

K1, B = CONSTANTS["lucene"]

BUFFER_MB = 128.0
"""Memory in which a segment is written before it goes to disk."""


class LuceneIndex(AskedIndex[Java]):
    """BM25 over units in Lucene; safe to call from several threads at once.

    Lucene keeps a field's length in one byte, so scores differ from the formula on exact lengths
    by up to 1.3 %. Threads that call may come and go: each is detached from Java when it ends.
    """

    def __init__(
        self, folder: Path, directory: Java, reader: Java, similarity: Java, queries: Queries
    ) -> None:
        """Take over an open reader; use ``open``."""
        super().__init__(int(reader.maxDoc()))
        self._folder = folder
        self._directory = directory
        self._reader = reader
        self._searcher = jvm.load(SEARCH + "IndexSearcher")(reader)
        self._searcher.setSimilarity(similarity)
        self._queries = queries
        self._read = HitReader()
        self._engine = _engine()
        self._closed = False

    @classmethod
    def open(
        cls,
        folder: Path | str,
        k1: float = K1,
        b: float = B,
        *,
        combined: Container[str] = (),
        heap_mb: int | None = None,
    ) -> Self:
        """Open an index of ``LuceneWriter``, booting Java if need be; nothing is written there.

        Args:
            folder: the index's folder.
            k1: BM25's bound on what a repeated term adds.
            b: BM25's share of the length normalisation.
            combined: fields that score as one, by BM25F; each alone if empty.
            heap_mb: Java's heap if this call boots it; ``jvm.heap_for`` the folder if ``None``.

        Raises:
            MissingPartError: Java, JPype or the jar is not installed.
            BadInputError: k1 or b is out of range.
            DamagedFileError: the folder holds no such index.
            IndexFailedError: Java cannot be used in this process.
        """
        if not (0.0 <= k1 < math.inf and 0.0 <= b <= 1.0):
            raise BadInputError(f"BM25 needs k1 >= 0 and b between 0 and 1, not {k1!r} and {b!r}.")
        folder = Path(folder)
        if not folder.is_dir():
            raise _damaged(folder, "there is no such folder")
        jvm.boot(jvm.heap_for(folder) if heap_mb is None else heap_mb)
        try:
            with jvm.calls(f"opening {folder}"):
                jvm.load(SEARCH + "IndexSearcher").setMaxClauseCount(2**31 - 1)
                directory = _directory(folder)
                reader = jvm.load(INDEX + "DirectoryReader").open(directory)
                fault = _fault(reader)
                if fault:
                    reader.close()
                    raise _damaged(folder, fault)
                similarity = jvm.load(SEARCH + "similarities.BM25Similarity")(k1, b)
                queries = Queries(int(reader.maxDoc()), combined)
                return cls(folder, directory, reader, similarity, queries)
        except IndexFailedError as error:
            # A failure of Java itself is not the folder's fault and has no Java exception below.
            if error.__cause__ is None:
                raise
            raise _damaged(folder, str(error.__cause__)) from error

    @property
    def engine(self) -> str:
        """Name and version of the engine, such as ``lucene-9.9.1``."""
        return self._engine

    def holders(self, field: str, terms: Sequence[str]) -> list[int]:
        """Return the number of units that hold each term in the field, 0 in an unknown field.

        Raises:
            IndexFailedError: Lucene failed, or the index is closed.
        """
        with self._lease("counting") as searcher:
            return self._queries.holders(searcher.getIndexReader(), field, terms)

    def close(self) -> None:
        """Release files and memory, once the calls under way have ended."""
        if self._closed:
            return
        self._closed = True
        with jvm.calls("closing the index"):
            self._queries.filters.clear()
            # Counts down the readers' leases: a call under way keeps its mapped files.
            self._reader.close()
            self._directory.close()

    def _best(self, searcher: Java, plan: Plan, k: int, allowed: Bitmap | None) -> Candidates:
        query = self._queries.planned(plan)
        if allowed is not None:
            query = self._queries.filtered(query, allowed)
        return self._top(searcher, query, k)

    def _scored(self, searcher: Java, plan: Plan, units: Numbers) -> Candidates:
        query = self._queries.within(self._queries.planned(plan), units)
        return self._top(searcher, query, units.size)

    def _top(self, searcher: Java, query: Java, k: int) -> Candidates:
        return self._read(searcher.search(query, min(k, self._count)).scoreDocs, k)

    @contextmanager
    def _lease(self, task: str) -> Iterator[Java]:
        """Keep the files mapped for one call: to lose them under a search would kill Java."""
        if self._closed:
            raise self._gone()
        with jvm.calls(f"{task} in {self._folder}"):
            if not self._reader.tryIncRef():
                raise self._gone()
            try:
                yield self._searcher
            finally:
                self._reader.decRef()

    def _gone(self) -> IndexFailedError:
        return IndexFailedError(f"The lexical index {self._folder} is closed.")


class LuceneWriter:
    """Writes an index in one go with one thread, units in ascending order, into one segment.

    The folder must be empty or absent, and is removed again when anything fails.
    """

    def __init__(
        self, folder: Path | str, fields: Sequence[str], *, heap_mb: int = jvm.HEAP_MB
    ) -> None:
        """Prepare to write an index with these fields of terms.

        Raises:
            BadInputError: the field names are unusable.
        """
        self._folder = Path(folder)
        self._fields = common.check_fields(fields)
        self._heap_mb = heap_mb
        self._count = 0
        self._writer: Java = None

    @property
    def engine(self) -> str:
        """Name and version of the engine; known once writing has started."""
        jvm.boot(self._heap_mb)
        return _engine()

    def __enter__(self) -> Self:
        """Start writing.

        Raises:
            MissingPartError: Java, JPype or the jar is not installed.
            IndexFailedError: the folder is not empty, or Lucene failed.
        """
        common.fresh_folder(self._folder)
        jvm.boot(self._heap_mb)
        with jvm.calls(f"starting {self._folder}"):
            self._writer = _index_writer(_directory(self._folder))
            self._document = jvm.load(DOCUMENT + "Document")()
            self._column = jvm.load(DOCUMENT + "NumericDocValuesField")(common.RESERVED, 0)
            self._point = jvm.load(DOCUMENT + "LongPoint")(common.RESERVED, [0])
            field = jvm.load(DOCUMENT + "Field")
            kind = jvm.load(DOCUMENT + "TextField").TYPE_NOT_STORED
            self._texts = {name: field(name, "", kind) for name in self._fields}
        return self

    def __exit__(self, *exc: object) -> None:
        """Finish and close, or drop everything when an error is passed.

        Raises:
            IndexFailedError: Lucene failed, or the segment is not in unit order.
        """
        writer, self._writer = self._writer, None
        finished = False
        try:
            with jvm.calls(f"finishing {self._folder}"):
                if exc and exc[0]:
                    writer.rollback()
                else:
                    writer.getConfig().setMergePolicy(jvm.load(INDEX + "TieredMergePolicy")())
                    writer.forceMerge(1)
                    writer.close()
                    self._verify()
                    finished = True
        finally:
            if not finished:
                shutil.rmtree(self._folder)

    def add(self, fields: Mapping[str, Sequence[str]]) -> None:
        """Add the next unit: the terms of each field, in text order.

        Raises:
            BadInputError: a field is unknown or a term is malformed.
            IndexFailedError: Lucene failed, or the writer is not open.
        """
        if self._writer is None:
            raise IndexFailedError(f"The writer of {self._folder} is not open.")
        texts = common.texts(fields, self._fields)
        with jvm.calls(f"adding unit {self._count} to {self._folder}"):
            self._document.clear()
            self._column.setLongValue(self._count)
            self._point.setLongValue(self._count)
            self._document.add(self._column)
            self._document.add(self._point)
            for name, text in texts.items():
                self._texts[name].setStringValue(text)
                self._document.add(self._texts[name])
            self._writer.addDocument(self._document)
        self._count += 1

    def _verify(self) -> None:
        reader = jvm.load(INDEX + "DirectoryReader").open(_directory(self._folder))
        fault = _fault(reader) or self._order_fault(reader)
        reader.close()
        if fault:
            raise IndexFailedError(f"Lucene wrote {self._folder} wrongly: {fault}.")

    def _order_fault(self, reader: Java) -> str:
        if int(reader.maxDoc()) != self._count:
            return f"{int(reader.maxDoc())} documents for {self._count} units"
        for leaf in reader.leaves():
            column = leaf.reader().getNumericDocValues(common.RESERVED)
            for unit in range(self._count):
                if column.nextDoc() != unit or column.longValue() != unit:
                    return f"document {unit} is not unit {unit}"
        return ""


def _engine() -> str:
    return f"lucene-{jvm.load('org.apache.lucene.util.Version').LATEST}"


def _directory(folder: Path) -> Java:
    # No lock file: a world is written beside its place by one builder, and never changes later.
    locks = jvm.load("org.apache.lucene.store.NoLockFactory").INSTANCE
    path = jvm.load("java.nio.file.Paths").get(str(folder.absolute()))
    return jvm.load("org.apache.lucene.store.FSDirectory").open(path, locks)


def _index_writer(directory: Java) -> Java:
    analyzer = jvm.load("org.apache.lucene.analysis.core.WhitespaceAnalyzer")()
    config = jvm.load(INDEX + "IndexWriterConfig")(analyzer)
    sort_field = jvm.load(SEARCH + "SortField")
    by_unit = sort_field(common.RESERVED, jvm.load(SEARCH + "SortField$Type").LONG)
    # Merging reorders segments, so without this sort document numbers are not unit numbers.
    config.setIndexSort(jvm.load(SEARCH + "Sort")([by_unit]))
    config.setMergePolicy(jvm.load(INDEX + "NoMergePolicy").INSTANCE)
    config.setMergeScheduler(jvm.load(INDEX + "SerialMergeScheduler")())
    config.setRAMBufferSizeMB(BUFFER_MB)
    return jvm.load(INDEX + "IndexWriter")(directory, config)


def _fault(reader: Java) -> str:
    """Say why this cannot be an index of ours; empty when it can."""
    leaves = list(reader.leaves())
    if len(leaves) > 1 or reader.numDeletedDocs():
        return f"it has {len(leaves)} segments and {int(reader.numDeletedDocs())} deleted documents"
    for leaf in leaves:
        order = leaf.reader().getMetaData().getSort()
        if order is None or common.RESERVED not in str(order):
            return f"its documents are not sorted by {common.RESERVED}"
    return ""


def _damaged(folder: Path, reason: str) -> DamagedFileError:
    return DamagedFileError(
        f"The folder {folder} holds no readable Lucene index: {reason}.",
        hint="Run: world-server check WORLD",
    )
