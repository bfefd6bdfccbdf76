"""Reading recipe files; every unknown key and every bad value is refused by name."""

from __future__ import annotations

import datetime as dt
import hashlib
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from corpus_builder.errors import BadRecipeError
from corpus_builder.recipe import (
    Argument,
    DenseRecipe,
    ExpansionRecipe,
    ExtractRecipe,
    LexicalRecipe,
    NearRecipe,
    PassagesRecipe,
    Recipe,
    RerankerRecipe,
    SnapshotRecipe,
    SourceRecipe,
    SparseRecipe,
)
from world_core import urls
from world_core.indexes.tiers import KINDS
from world_core.manifest import check_name
from world_core.manifest_options import DEFAULT_TOP, MOST_RERANKED
from world_core.types import Instant
from world_core.weighing import LONG_QUERY

LEAST = (0.3, 0.9)
"""Shares that are measured: a sample finds no fewer, a duplicate group needs no more."""

HINT = "See docs/recipes.md, or print a shipped one: corpus-builder recipes NAME"
Table = dict[str, object]
T = TypeVar("T")
N = TypeVar("N", int, float)


def shipped() -> list[str]:
    """Return the names of the recipes that come with the package, sorted."""
    folder = resources.files("corpus_builder") / "recipes"
    names = (entry.name for entry in folder.iterdir())
    return sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml"))


def shipped_text(name: str) -> str:
    """Return the text of a shipped recipe.

    Raises:
        BadRecipeError: there is none of that name.
    """
    if name not in shipped():
        raise BadRecipeError(
            f"There is no recipe file and no shipped recipe named {name!r}.",
            hint=f"Shipped: {', '.join(shipped())}.",
        )
    return (resources.files("corpus_builder") / "recipes" / f"{name}.toml").read_text("utf-8")


def load(name_or_path: str) -> Recipe:
    """Read a recipe from a file, or a shipped one by name.

    Raises:
        BadRecipeError: no such recipe, no TOML, an unknown key or an unusable value.
    """
    path = Path(name_or_path)
    if path.suffix != ".toml":
        return parse(shipped_text(name_or_path), base=Path(), origin=name_or_path)
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadRecipeError(f"The recipe {path} cannot be read: {error}.", hint=HINT) from error
    return parse(text, base=path.parent, origin=str(path))


def parse(text: str, *, base: Path, origin: str, inputs: bool = True) -> Recipe:
    """Turn the text of a recipe file into a recipe; relative paths are taken from ``base``.

    Without ``inputs`` the files that a recipe names need not be there: enough for what a finished
    world's own recipe determines, not for a build. Such a recipe names every setting it has.

    Raises:
        BadRecipeError: no TOML, an unknown key or an unusable value.
        BadInputError: the name cannot be that of a world.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadRecipeError(f"{origin} is not TOML: {error}.", hint=HINT) from error
    reader = _Reader(data, origin)
    vectors, sparse, reranker = (reader.table(key) for key in ("dense", "sparse", "reranker"))
    dense = _dense(vectors, base, inputs=inputs) if vectors.given else None
    recipe = Recipe(
        name=check_name(reader.take("name", str, Path(origin).stem)),
        sources=tuple(_source(entry, base) for entry in reader.tables("sources")),
        extract=_extract(reader.table("extract")),
        snapshot=_snapshot(reader.table("snapshot")),
        near=_near(reader.table("near"), NearRecipe().least if inputs else 0.0),
        passages=_passages(reader.table("passages")),
        lexical=_lexical(reader.table("lexical"), LONG_QUERY if inputs else 0),
        dense=dense,
        sparse=_sparse(sparse, dense) if sparse.given else None,
        reranker=_reranker(reranker) if reranker.given else None,
        fusion_weight=_fusion(reader.table("fusion")),
        clock=_clock(reader),
        canaries=reader.strings("canaries"),
    )
    reader.finish()
    if not recipe.sources:
        raise BadRecipeError(f"{origin} names no [[sources]].", hint=HINT)
    return recipe


def parse_instant(text: str) -> Instant:
    """Turn an ISO date or date and time (UTC unless it says otherwise) into an instant.

    Raises:
        BadRecipeError: the text is neither.
    """
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError as error:
        raise BadRecipeError(
            f"{text!r} is not a date.", hint="Write it as 2026-02-20 or 2026-02-20T08:00:00Z."
        ) from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return int(moment.timestamp())


class _Reader:
    """Takes known keys out of a table and refuses what is left."""

    def __init__(self, data: Table, where: str, *, given: bool = True) -> None:
        self.data = dict(data)
        self.where = where
        self.given = given

    def take(self, key: str, kind: type[T], default: T) -> T:
        value = self.data.pop(key, default)
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.bad(key, value, f"must be a {kind.__name__}")
        return value

    def number(self, key: str, default: N, low: N, high: N) -> N:
        value = self.take(key, type(default), default)
        if not low <= value <= high:
            raise self.bad(key, value, f"must lie between {low} and {high}")
        return value

    def choice(self, key: str, default: str, allowed: tuple[str, ...]) -> str:
        value = self.take(key, str, default)
        if value not in allowed:
            raise self.bad(key, value, f"must be one of {', '.join(allowed)}")
        return value

    def strings(self, key: str) -> tuple[str, ...]:
        value: list[object] = self.take(key, list, [])
        if not all(isinstance(entry, str) for entry in value):
            raise self.bad(key, value, "must be a list of strings")
        return tuple(str(entry) for entry in value)

    def table(self, key: str) -> _Reader:
        given = key in self.data
        return _Reader(self.take(key, dict, {}), f"{self.where} [{key}]", given=given)

    def tables(self, key: str) -> list[_Reader]:
        value: list[object] = self.take(key, list, [])
        readers = []
        for place, entry in enumerate(value, start=1):
            if not isinstance(entry, dict):
                raise self.bad(key, value, "must be tables, written as [[sources]]")
            readers.append(_Reader(entry, f"{self.where} [[{key}]] number {place}"))
        return readers

    def arguments(self) -> dict[str, Argument]:
        rest, self.data = self.data, {}
        for key, value in rest.items():
            if not isinstance(value, str | int | float | bool):
                raise self.bad(key, value, "must be a string, a number or true/false")
        return {key: v for key, v in rest.items() if isinstance(v, str | int | float | bool)}

    def finish(self) -> None:
        if self.data:
            key = min(self.data)
            raise BadRecipeError(f"{self.where} has the unknown key {key!r}.", hint=HINT)

    def bad(self, key: str, value: object, rule: str) -> BadRecipeError:
        return BadRecipeError(f"{self.where}: {key} = {str(value)[:80]!r} {rule}.", hint=HINT)


def _source(reader: _Reader, base: Path) -> SourceRecipe:
    kind = reader.take("kind", str, "")
    if not kind:
        raise BadRecipeError(f"{reader.where} has no kind.", hint=HINT)
    shown = reader.take("path", str, "")
    path = str(base / shown) if shown else ""
    return SourceRecipe(kind, path, shown, MappingProxyType(reader.arguments()))


def _extract(reader: _Reader) -> ExtractRecipe:
    extract = ExtractRecipe(
        cpu_seconds=reader.number("cpu_seconds", 2.0, 0.05, 3600.0),
        least_words=reader.number("least_words", 1, 0, 1_000_000),
    )
    reader.finish()
    return extract


def _snapshot(reader: _Reader) -> SnapshotRecipe:
    snapshot = SnapshotRecipe(reader.choice("exact_duplicates", "auto", ("auto", "alias", "keep")))
    reader.finish()
    return snapshot


def _near(reader: _Reader, least: float) -> NearRecipe:
    near = NearRecipe(reader.number("least", least, 0.0, LEAST[1]))
    if 0.0 < near.least < LEAST[0]:
        raise reader.bad("least", near.least, f"must be 0 or lie between {LEAST[0]} and {LEAST[1]}")
    reader.finish()
    return near


def _passages(reader: _Reader) -> PassagesRecipe:
    target = reader.number("target", 1000, 50, 100_000)
    passages = PassagesRecipe(target, reader.number("limit", max(1500, target), target, 100_000))
    reader.finish()
    return passages


def _lexical(reader: _Reader, long_query: int) -> LexicalRecipe:
    weights_reader = reader.table("field_weights")
    weights = {
        key: weights_reader.number(key, 0.0, 0.0, 100.0) for key in sorted(weights_reader.data)
    }
    lexical = LexicalRecipe(
        engine=reader.choice("engine", "lucene", ("lucene", "tantivy")),
        unit=reader.choice("unit", "version", ("version", "passage")),
        k1=reader.number("k1", 0.0, 0.0, 100.0) if "k1" in reader.data else None,
        b=reader.number("b", 0.0, 0.0, 1.0) if "b" in reader.data else None,
        field_weights=MappingProxyType(weights),
        scoring=reader.choice("scoring", "bm25", ("bm25", "bm25f")),
        long_query=reader.number("long_query", long_query, 0, 1000),
        expansion=_expansion(reader),
    )
    reader.finish()
    return lexical


def _expansion(reader: _Reader) -> ExpansionRecipe | None:
    """Return the expansion; its settings without the expansion are unknown keys."""
    if reader.choice("expansion", "none", ("none", "rm3")) == "none":
        return None
    return ExpansionRecipe(
        docs=reader.number("fb_docs", 10, 1, 1000),
        terms=reader.number("fb_terms", 30, 1, 1000),
        weight=reader.number("fb_weight", 0.7, 0.01, 1.0),
    )


def _dense(reader: _Reader, base: Path, *, inputs: bool) -> DenseRecipe | None:
    encoder = reader.take("encoder", str, "")
    if not encoder:
        raise BadRecipeError(f"{reader.where} names no encoder.", hint=HINT)
    arguments = _model_arguments(reader)
    include = reader.take("include", str, "")
    wanted = reader.take("include_digest", str, "")
    keys, digest = frozenset[str](), wanted
    if include and inputs:
        keys, digest = _include(base / include, reader)
    if wanted and wanted != digest:
        raise reader.bad("include_digest", wanted, f"is not the digest of {include!r}, {digest!r}")
    dense = DenseRecipe(
        encoder=encoder,
        arguments=arguments,
        rows=reader.choice("rows", "all", ("all", "lead", "version", "none")),
        titles=reader.take("titles", bool, default=True),
        tier=reader.choice("tier", "auto", ("auto", *KINDS)),
        pages=reader.number("pages", 0, 0, 10**10),
        include=include,
        include_digest=digest,
        include_keys=keys,
    )
    reader.finish()
    return None if dense.rows == "none" else dense


def _sparse(reader: _Reader, dense: DenseRecipe | None) -> SparseRecipe:
    if dense is None:
        raise BadRecipeError(
            f"{reader.where} stands without vectors: weights are kept for passages that have one.",
            hint="Add a table [dense], or leave out [sparse].",
        )
    encoder = reader.take("encoder", str, "")
    arguments = _model_arguments(reader)
    sparse = SparseRecipe(
        encoder=encoder or dense.encoder,
        arguments=arguments if encoder or arguments else dense.arguments,
        bits=reader.number("bits", 8, 2, 8),
        top=reader.number("top", 0, 0, 10_000),
        weight=reader.number("weight", 0.2, 0.0, 1.0),
    )
    reader.finish()
    return sparse


def _reranker(reader: _Reader) -> RerankerRecipe:
    kind = reader.take("kind", str, "")
    if not kind:
        raise BadRecipeError(f"{reader.where} has no kind.", hint=HINT)
    reranker = RerankerRecipe(
        kind, _model_arguments(reader), reader.number("top", DEFAULT_TOP, 1, MOST_RERANKED)
    )
    reader.finish()
    return reranker


def _model_arguments(reader: _Reader) -> Mapping[str, str | int]:
    """Return the table ``arguments`` of a table that names a model."""
    given = reader.table("arguments").arguments()
    arguments = {key: value for key, value in given.items() if isinstance(value, str | int)}
    if unfit := given.keys() - arguments.keys():
        raise reader.bad("arguments", min(unfit), "must be a string or a whole number")
    return MappingProxyType(arguments)


def _include(path: Path, reader: _Reader) -> tuple[frozenset[str], str]:
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise reader.bad("include", path, f"cannot be read ({error})") from error
    keys = sorted({urls.canonical(line) for line in lines if line.strip()} - {""})
    digest = hashlib.sha256("".join(f"{key}\n" for key in keys).encode()).hexdigest()
    return frozenset(keys), digest


def _fusion(reader: _Reader) -> float:
    weight = reader.number("weight", 0.5, 0.0, 1.0)
    reader.finish()
    return weight


def _clock(reader: _Reader) -> Instant | None:
    value = reader.data.pop("clock", None)
    if value is None:
        return None
    if isinstance(value, dt.date | str):
        return parse_instant(str(value))
    raise reader.bad("clock", value, "must be a date")
