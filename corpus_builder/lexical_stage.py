"""The lexical index of a world, from rows of terms and the links between pages."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import count
from pathlib import Path

from corpus_builder.anchors import RULES, joined, version_anchors
from corpus_builder.errors import BadRecipeError
from corpus_builder.passage_blocks import Blocks, read_terms
from corpus_builder.recipe import LexicalRecipe
from world_core.analysis import Analyzer
from world_core.errors import MissingPartError
from world_core.indexes.lexical import CONSTANTS, LexicalWriter
from world_core.passages import PassageFile

Tell = Callable[[int], None]


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
