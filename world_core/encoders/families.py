"""Families of embedding models that FlagEmbedding runs: how each pools and asks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from world_core.errors import BadInputError


@dataclass(frozen=True, slots=True)
class Family:
    """What a family's model cards prescribe: pooling and the text put before a query."""

    pooling: str
    query_instruction: str = ""
    is_m3: bool = False


FAMILIES: Mapping[str, Family] = {
    "m3": Family(pooling="cls", is_m3=True),
    "bge-en": Family(
        pooling="cls",
        query_instruction="Represent this sentence for searching relevant passages: ",
    ),
    "bge-zh": Family(
        pooling="cls",
        query_instruction="为这个句子生成表示以用于检索相关文章\N{FULLWIDTH COLON}",
    ),
    "cls": Family(pooling="cls"),
    "mean": Family(pooling="mean"),
}
"""BGE-M3; BGE for English and for Chinese; any other model by its pooling, without instruction."""

_BGE = re.compile(r"bge-(?:small|base|large)-(en|zh)\b")


def family_of(name: str) -> str:
    """Return the family that a model's name tells.

    Raises:
        BadInputError: it is not the name of a BGE model.
    """
    lower = name.lower()
    if "bge-m3" in lower:
        return "m3"
    found = _BGE.search(lower)
    if found is None:
        raise BadInputError(
            f"The name {name!r} does not tell which family of models it is of.",
            hint=f"Set the argument family to one of: {', '.join(FAMILIES)}.",
        )
    return f"bge-{found[1]}"
