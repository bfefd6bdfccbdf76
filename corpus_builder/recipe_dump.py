"""Writing a recipe as TOML, as it lies in the world that it determined."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

from corpus_builder.recipe import DenseRecipe, LexicalRecipe, Recipe


def dump(recipe: Recipe) -> str:
    """Return the recipe as TOML, with file names in place of absolute paths.

    The text names everything that determines the world; inputs and the list of included addresses
    are named, not contained.
    """
    lines = [f"name = {_toml(recipe.name)}"]
    if recipe.clock is not None:
        lines.append(f"clock = {_toml(dt.datetime.fromtimestamp(recipe.clock, dt.UTC))}")
    if recipe.canaries:
        lines.append(f"canaries = [{', '.join(map(_toml, recipe.canaries))}]")
    for source in recipe.sources:
        shown = source.shown or source.path
        path = Path(shown).name if Path(shown).is_absolute() else shown
        place = {"path": path} if path else {}
        lines += ["", "[[sources]]", *_entries({"kind": source.kind, **place, **source.arguments})]
    part = recipe.content_part()
    lines += ["", "[extract]", *_entries(asdict(recipe.extract))]
    lines += ["", "[snapshot]", *_entries(part["snapshot"])]
    lines += ["", "[near]", *_entries(asdict(recipe.near))]
    lines += ["", "[passages]", *_entries(part["passages"])]
    lines += ["", "[lexical]", *_entries(_lexical_entries(recipe.lexical))]
    if weights := recipe.lexical.field_weights:
        lines += ["", "[lexical.field_weights]", *_entries(dict(sorted(weights.items())))]
    for name, entries, arguments in _models(recipe):
        lines += ["", f"[{name}]", *_entries(entries)]
        if arguments:
            lines += ["", f"[{name}.arguments]", *_entries(arguments)]
    lines += ["", "[fusion]", *_entries({"weight": recipe.fusion_weight})]
    return "\n".join(lines) + "\n"


def _lexical_entries(lexical: LexicalRecipe) -> dict[str, object]:
    entries: dict[str, object] = {"engine": lexical.engine, "unit": lexical.unit}
    constants = {"k1": lexical.k1, "b": lexical.b}
    entries |= {name: value for name, value in constants.items() if value is not None}
    entries |= {"scoring": lexical.scoring, "long_query": lexical.long_query}
    if lexical.expansion is not None:
        entries["expansion"] = "rm3"
        entries |= {f"fb_{name}": value for name, value in asdict(lexical.expansion).items()}
    return entries


def _models(recipe: Recipe) -> Iterator[tuple[str, Mapping[str, object], Mapping[str, object]]]:
    """Yield the tables that name a model: name, settings, and arguments of the model."""
    if (dense := recipe.dense) is not None:
        yield "dense", _dense_entries(dense), dense.arguments
    if (sparse := recipe.sparse) is not None:
        kept = {"bits": sparse.bits, "top": sparse.top, "weight": sparse.weight}
        yield "sparse", {"encoder": sparse.encoder, **kept}, sparse.arguments
    if (reranker := recipe.reranker) is not None:
        yield "reranker", {"kind": reranker.kind, "top": reranker.top}, reranker.arguments


def _dense_entries(dense: DenseRecipe) -> dict[str, object]:
    entries: dict[str, object] = {
        "encoder": dense.encoder,
        "rows": dense.rows,
        "titles": dense.titles,
        "tier": dense.tier,
        "pages": dense.pages,
    }
    if dense.include:
        entries["include"] = Path(dense.include).name
        entries["include_digest"] = dense.include_digest
    return entries


def _entries(table: object) -> list[str]:
    if not isinstance(table, Mapping):
        return []
    return [f"{_key(str(key))} = {_toml(value)}" for key, value in table.items()]


def _key(key: str) -> str:
    return key if key.isascii() and key.replace("_", "").replace("-", "").isalnum() else _toml(key)


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dt.datetime):
        return value.isoformat()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)
