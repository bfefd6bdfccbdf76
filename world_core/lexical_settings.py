"""What a manifest says of the lexical index."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from world_core.manifest_options import Part

_Positive = Annotated[int, Field(ge=1, le=1000)]

ABSENT = {"scoring": "bm25", "long_query": 0, "expansion": None}
"""What a manifest means that does not name these settings, which is how they are spelled there."""


class ExpansionSettings(Part):
    """RM3: the units and terms of feedback, and the share of the query's own terms."""

    kind: Literal["rm3"] = "rm3"
    docs: _Positive = 10
    terms: _Positive = 30
    weight: Annotated[float, Field(gt=0.0, le=1.0)] = 0.7


class LexicalSettings(Part):
    """The lexical index: its engine, its unit, how it scores and what is asked of it.

    ``k1`` and ``b`` are those the engine scores with. Queries of at least ``long_query`` distinct
    terms are weighed (``world_core.weighing``), none if 0.
    """

    engine: str
    engine_version: str
    unit: Literal["version", "passage"]
    k1: float
    b: float
    field_weights: dict[str, float]
    scoring: Literal["bm25", "bm25f"] = "bm25"
    long_query: Annotated[int, Field(ge=0)] = 0
    expansion: ExpansionSettings | None = None

    @model_serializer(mode="wrap")
    def _spelled(self, usual: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = usual(self)
        return {name: value for name, value in fields.items() if value != ABSENT.get(name, ...)}
