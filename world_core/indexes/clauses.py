"""What both lexical engines make of a query, a bitmap and a list of units before they work."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from itertools import repeat
from pathlib import Path
from typing import NamedTuple

import numpy as np

from world_core.errors import BadInputError, IndexFailedError
from world_core.types import (
    Bitmap,
    Candidates,
    LexicalField,
    LexicalQuery,
    Numbers,
    Occur,
    Scores,
)

TERM_LIMIT = 64
"""Characters of the longest term; the analyser cuts there, and both engines keep it whole."""

WEIGHT_LIMIT = 1e6
"""Largest weight of a field; far below where float32 scores overflow."""

RESERVED = "pid"
"""The numeric field that holds the unit number, so no field of terms may have this name."""


class Clause(NamedTuple):
    """One term, or several in a row, of one field with a weight."""

    field: str
    terms: tuple[str, ...]
    weight: float


class Plan(NamedTuple):
    """What an engine is to do: the score is the sum over ``scored``, whatever else is asked.

    Of each group in ``required`` one clause must stand in a unit, of ``forbidden`` none.
    """

    scored: list[Clause]
    required: list[list[Clause]]
    forbidden: list[Clause]


def plan(query: LexicalQuery) -> Plan:
    """Return the query's clauses, each scored (field, terms) once, in order of first appearance.

    A term that appears twice counts twice; weights of 0 do not score. Phrases score after terms.

    Raises:
        BadInputError: a weight is negative, not finite or too large, or a term is malformed.
    """
    weights: dict[tuple[str, tuple[str, ...]], float] = {}
    for part in query.fields:
        _check(part)
        for term, factor in zip(part.terms, part.factors or repeat(1.0)):  # noqa: B905 - checked
            key = (part.name, (term,))
            weights[key] = weights.get(key, 0.0) + part.weight * factor
    required: list[list[Clause]] = []
    forbidden: list[Clause] = []
    for phrase in query.phrases:
        for part in phrase.fields:
            _check(part)
        group = [Clause(part.name, part.terms, part.weight) for part in phrase.fields if part.terms]
        if phrase.occur is Occur.MUST_NOT:
            forbidden += group
            continue
        if phrase.occur is Occur.MUST:
            required.append(group)
        for field, terms, weight in group:
            weights[field, terms] = weights.get((field, terms), 0.0) + weight
    scored = [Clause(*key, weight) for key, weight in weights.items() if weight > 0.0]
    return Plan(scored, required, forbidden)


def by_term(scored: Sequence[Clause], fields: Container[str]) -> list[list[Clause]]:
    """Return the clauses with those of one term in these fields together, in order of first."""
    groups: dict[object, list[Clause]] = {}
    for clause in scored:
        single = len(clause.terms) == 1 and clause.field in fields
        groups.setdefault(clause.terms[0] if single else clause, []).append(clause)
    return list(groups.values())


def _check(part: LexicalField) -> None:
    if not 0.0 <= part.weight <= WEIGHT_LIMIT:
        raise BadInputError(
            f"The weight {part.weight!r} of field {part.name!r} is not between 0 and "
            f"{WEIGHT_LIMIT:g}."
        )
    if part.factors and not (
        len(part.factors) == len(part.terms)
        and all(0.0 <= factor <= WEIGHT_LIMIT for factor in part.factors)
    ):
        raise BadInputError(
            f"The factors {part.factors[:9]!r} of field {part.name!r} are not one number between 0 "
            f"and {WEIGHT_LIMIT:g} for each of its {len(part.terms)} terms."
        )
    joined(part.name, part.terms)


def joined(field: str, terms: Sequence[str]) -> str:
    """Return the terms joined by one space, so that cutting at white space gives them back.

    Raises:
        BadInputError: a term is empty, too long, holds white space or half a surrogate pair.
    """
    text = " ".join(terms)
    if text.split() != list(terms) or max(map(len, terms), default=0) > TERM_LIMIT:
        bad = next(term for term in terms if term.split() != [term] or len(term) > TERM_LIMIT)
        raise BadInputError(
            f"The term {bad!r} of field {field!r} is empty, holds white space or is longer than "
            f"{TERM_LIMIT} characters."
        )
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadInputError(
            f"A term of field {field!r} holds half a surrogate pair: {text[error.start]!r}.",
            hint="Give the index only terms of the analyser.",
        ) from error
    return text


def texts(fields: Mapping[str, Sequence[str]], known: Sequence[str]) -> dict[str, str]:
    """Return the joined terms of each field that has any.

    Raises:
        BadInputError: a field is not among the known ones, or a term is malformed.
    """
    unknown = [name for name in fields if name not in known]
    if unknown:
        raise BadInputError(
            f"The index has no field {unknown[0]!r}; its fields are {list(known)!r}."
        )
    return {name: joined(name, terms) for name, terms in fields.items() if terms}


def fresh_folder(folder: Path) -> None:
    """Make the folder of a new index.

    Raises:
        IndexFailedError: it is there already with something in it, or cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        first = next(folder.iterdir(), None)
    except OSError as error:
        raise IndexFailedError(f"The folder {folder} cannot be made: {error}.") from error
    if first is not None:
        raise IndexFailedError(
            f"The folder {folder} is not empty: it holds {first.name}.",
            hint="Write an index into a new folder.",
        )


def check_fields(fields: Sequence[str]) -> tuple[str, ...]:
    """Return the field names of a new index, checked.

    Raises:
        BadInputError: there is none, one appears twice, or one is malformed or reserved.
    """
    names = tuple(fields)
    proper = all(name.isidentifier() and name.isascii() and name != RESERVED for name in names)
    if not names or len(set(names)) != len(names) or not proper:
        raise BadInputError(
            f"The fields {list(names)!r} are not distinct names of letters, digits and _, other "
            f"than {RESERVED!r}."
        )
    return names


def restriction(allowed: Bitmap | None, count: int) -> Bitmap | None:
    """Return the bitmap if it restricts anything, ``None`` if it is absent or all true.

    Raises:
        BadInputError: it is not a bitmap of shape (count,).
    """
    if allowed is None:
        return None
    if allowed.dtype != np.bool_ or allowed.shape != (count,):
        raise BadInputError(
            f"A bitmap of {allowed.dtype} and shape {allowed.shape} does not fit an index of "
            f"{count} units."
        )
    return None if allowed.all() else allowed


def check_units(units: Numbers, count: int) -> None:
    """Check that these are unit numbers of an index of ``count`` units.

    Raises:
        BadInputError: they are no one-dimensional integers, or one lies outside 0..count-1.
    """
    if units.ndim != 1 or units.dtype.kind not in "iu":
        raise BadInputError(
            f"Units of {units.dtype} and shape {units.shape} are no list of unit numbers."
        )
    outside = units[(units < 0) | (units >= count)]
    if outside.size:
        raise BadInputError(f"There is no unit {int(outside[0])} in an index of {count} units.")


def check_size(k: int) -> None:
    """Check the number of hits asked for.

    Raises:
        BadInputError: it is negative.
    """
    if k < 0:
        raise BadInputError(f"The number of units to find is {k}; it cannot be negative.")


def candidates(units: Sequence[int], scores: Sequence[float], k: int) -> Candidates:
    """Return the first k hits with a score above 0, in the order given."""
    numbers = np.asarray(units, dtype=np.int64)
    values = np.asarray(scores, dtype=np.float64)
    keep = np.flatnonzero(values > 0.0)[:k]
    return Candidates(numbers[keep], values[keep])


def spread(units: Numbers, found: Candidates) -> Scores:
    """Return the found scores in the order of ``units``, 0.0 for those not found."""
    scores = np.zeros(units.shape, dtype=np.float64)
    if found.units.size:
        order = np.argsort(found.units)
        known = found.units[order]
        place = np.minimum(np.searchsorted(known, units), known.size - 1)
        hit = known[place] == units
        scores[hit] = found.scores[order][place[hit]]
    return scores
