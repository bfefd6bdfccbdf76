"""The two indexes of a world: lexical from rows of terms, dense from passages and an encoder."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np

from corpus_builder.anchors import RULES, joined, version_anchors
from corpus_builder.errors import BadRecipeError
from corpus_builder.passage_blocks import Blocks, read_terms
from corpus_builder.recipe import DenseRecipe, LexicalRecipe
from corpus_builder.snapshot import read_pages
from corpus_builder.vector_cache import VectorCache, text_digest
from corpus_builder.workspace import kill_point
from world_core.analysis import Analyzer
from world_core.encoders.base import Encoder
from world_core.errors import MissingPartError
from world_core.indexes.dense import DenseSummary, write_dense
from world_core.indexes.lexical import CONSTANTS, LexicalWriter
from world_core.passages import PassageFile
from world_core.types import Vectors, as_numbers

BATCH = 32
"""Passages encoded and kept at once: what a kill can cost."""

Tell = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Row:
    """A passage that gets a vector: its number, and what the encoder reads."""

    passage: int
    text: str


def check_lexical(lexical: LexicalRecipe) -> None:
    """Refuse an engine that could not write an index here or score so, before a build begins.

    Raises:
        BadRecipeError: no such engine, or it cannot score as the recipe says.
        MissingPartError: the engine is not installed.
    """
    if lexical.engine == "lucene":
        from world_core.indexes import jar

        jar.check_bridge()
        jar.java_library()
        jar.find()
    elif lexical.engine != "tantivy":
        raise _unknown_engine(lexical.engine)
    elif importlib.util.find_spec("tantivy") is None:
        raise MissingPartError(
            "The package tantivy is not installed.", hint="Run: pip install 'searchworld[server]'"
        )
    else:
        _check_tantivy(lexical)


def _check_tantivy(lexical: LexicalRecipe) -> None:
    k1, b = CONSTANTS["tantivy"]
    hint = 'Leave it out, or set engine = "lucene".'
    for name, wanted, fixed in (("k1", lexical.k1, k1), ("b", lexical.b, b)):
        if wanted is not None and wanted != fixed:
            raise BadRecipeError(
                f"[lexical] {name} = {wanted} cannot be: tantivy scores with {fixed} only.",
                hint=hint,
            )
    if lexical.scoring != "bm25":
        raise BadRecipeError(
            f"[lexical] scoring = {lexical.scoring!r} cannot be: tantivy scores each field alone.",
            hint=hint,
        )


def constants(lexical: LexicalRecipe) -> tuple[float, float]:
    """Return k1 and b with which the recipe's engine scores."""
    k1, b = CONSTANTS[lexical.engine]
    return k1 if lexical.k1 is None else lexical.k1, b if lexical.b is None else lexical.b


def lexical_files_depend_on(lexical: LexicalRecipe) -> list[object]:
    """Return what decides the files of the index besides the terms of its units."""
    return [lexical.engine, RULES if lexical.anchored else 0]


def unit_terms(
    blocks: Blocks,
    lexical: LexicalRecipe,
    pages: Sequence[Path],
    folder: Path,
    analyzer: Analyzer,
) -> Iterator[Mapping[str, Sequence[str]]]:
    """Yield the terms of each unit by field, in order; with its version's anchors if asked.

    Args:
        blocks: the units without anchors.
        lexical: says what a unit is, and whether anchors are asked.
        pages: the blocks of the snapshot, whose links are the anchors.
        folder: does not exist; links lie there until the last unit.
        analyzer: makes terms of the texts of links.
    """
    units = read_terms(blocks.term_files)
    if not lexical.anchored:
        yield from units
        return
    versions = count() if lexical.unit == "version" else _versions(blocks.passage_files)
    with closing(version_anchors(pages, folder, analyzer)) as anchors:
        yield from joined(units, versions, anchors)


def _versions(files: Iterable[Path]) -> Iterator[int]:
    """Yield the version of each passage."""
    for path in files:
        file = PassageFile.open(path)
        yield from [file.version(number) for number in range(file.count)]
        file.close()


def write_lexical(
    folder: Path,
    lexical: LexicalRecipe,
    fields: Sequence[str],
    units: Iterable[Mapping[str, Sequence[str]]],
    tell: Tell,
) -> int:
    """Write the lexical index in one go, units in order; return their number.

    Raises:
        BadRecipeError: no such engine.
        MissingPartError: the engine is not installed.
        IndexFailedError: the engine failed.
    """
    written = 0
    with _lexical_writer(lexical.engine, folder, fields) as writer:
        for terms in units:
            writer.add(terms)
            written += 1
            tell(1)
    return written


def write_vectors(
    folder: Path,
    pages: Sequence[Path],
    passages: PassageFile,
    *,
    dense: DenseRecipe,
    encoder: Encoder,
    cache: VectorCache,
    tell: Tell,
) -> DenseSummary:
    """Encode what the cache lacks and write the dense index.

    Vectors are independent of what they are encoded with (``world_core.encoders``), so batches are
    made of texts of like length.

    Raises:
        EncoderError: the model failed.
        StageFailedError: the cache is damaged.
        MissingPartError: FAISS is not installed.
    """
    numbers: list[int] = []
    vectors: list[Vectors] = []
    for block in dense_rows(pages, passages, dense):
        found = _vectors_of([row.text for row in block], encoder, cache, tell)
        numbers += [row.passage for row in block]
        vectors.append(found)
    table = np.concatenate([np.empty((0, encoder.dim), np.float32), *vectors])
    return write_dense(folder, table, as_numbers(numbers), tier=dense.tier)


def dense_rows(
    pages: Sequence[Path], passages: PassageFile, dense: DenseRecipe
) -> Iterator[list[Row]]:
    """Yield the rows of each block of pages, in the order of the passages."""
    chosen = _chosen(pages, dense)
    version = 0
    passage = 0
    for block in pages:
        rows: list[Row] = []
        for page in read_pages([block]):
            wanted = chosen is None or page.page_id in chosen
            for record in page.versions:
                first = passage
                while passage < passages.count and passages.version(passage) == version:
                    passage += 1
                last = min(passage, first + 1) if dense.rows == "lead" else passage
                if wanted:
                    title = f"{record.title}\n" if dense.titles and record.title else ""
                    for number in range(first, last):
                        span = passages.span(number)
                        rows.append(Row(number, title + record.text[span.start : span.end]))
                version += 1
        yield rows


def _chosen(pages: Sequence[Path], dense: DenseRecipe) -> frozenset[str] | None:
    """Return the ids of the pages that get rows, None for all."""
    if not dense.include_digest and not dense.pages:
        return None
    listed: list[str] = []
    others: list[str] = []
    for page in read_pages(pages):
        known = not dense.include_keys.isdisjoint((page.key, *page.aliases))
        (listed if known else others).append(page.page_id)
    if not dense.pages:
        return frozenset(listed)
    return frozenset([*listed, *others][: max(dense.pages, len(listed))])


def _vectors_of(texts: Sequence[str], encoder: Encoder, cache: VectorCache, tell: Tell) -> Vectors:
    """Return the vectors of the texts, shape (n, dim), from the cache and the encoder."""
    digests = [text_digest(text) for text in texts]
    known = cache.find(digests)
    missing = {
        digest: text for digest, text in zip(digests, texts, strict=True) if digest not in known
    }
    tell(len(texts) - len(missing))
    ordered = sorted(missing.items(), key=lambda item: (len(item[1]), item[0]))
    for first in range(0, len(ordered), BATCH):
        batch = ordered[first : first + BATCH]
        vectors = encoder.encode_passages([text for _, text in batch])
        cache.store([digest for digest, _ in batch], vectors)
        known |= dict(zip((digest for digest, _ in batch), vectors, strict=True))
        tell(len(batch))
        kill_point("vectors")
    empty = np.empty((0, encoder.dim), np.float32)
    return np.concatenate([empty, *(known[digest][None] for digest in digests)])


def _lexical_writer(engine: str, folder: Path, fields: Sequence[str]) -> LexicalWriter:
    writer: LexicalWriter
    if engine == "lucene":
        from world_core.indexes.lucene import LuceneWriter

        writer = LuceneWriter(folder, fields)
        return writer
    if engine == "tantivy":
        from world_core.indexes.tantivy import TantivyWriter

        writer = TantivyWriter(folder, fields)
        return writer
    raise _unknown_engine(engine)


def _unknown_engine(engine: str) -> BadRecipeError:
    return BadRecipeError(
        f"There is no lexical engine {engine!r}.", hint="Use --lexical lucene or tantivy."
    )
