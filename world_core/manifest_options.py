"""The parts of a manifest that a world may lack: learned sparse weights and a reranker."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

MOST_RERANKED = 200
DEFAULT_TOP = 20


class Part(BaseModel):
    """Settings shared by the manifest and its parts: closed, frozen, exact types, finite."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class SparseSettings(Part):
    """The sparse index: its encoder, how weights are kept, and its share in the fused score.

    ``bits`` of a weight, ``top`` weights kept a passage (0: all), ``passages`` with a weight,
    ``postings`` in all. ``weight`` is the sparse score's share beside lexical and dense together.
    """

    encoder_id: str
    kind: str
    arguments: dict[str, str | int] = Field(default_factory=dict)
    bits: Annotated[int, Field(ge=2, le=8)]
    top: Annotated[int, Field(ge=0)]
    passages: Annotated[int, Field(ge=0)]
    postings: Annotated[int, Field(ge=0)]
    weights_digest: str
    weight: Annotated[float, Field(ge=0.0, le=1.0)]


class RerankerSettings(Part):
    """The reranker of hybrid searches: how to load it, and how many pages it orders anew.

    ``reranker_id`` is "" where any model of the kind will do.
    """

    reranker_id: str
    kind: str
    arguments: dict[str, str | int] = Field(default_factory=dict)
    top: Annotated[int, Field(ge=1, le=MOST_RERANKED)]


def left_out(fields: dict[str, object]) -> dict[str, object]:
    """Return the fields of a manifest without the optional parts it lacks.

    So a world without them is spelled as if they did not exist.
    """
    return {
        name: value
        for name, value in fields.items()
        if value is not None or name not in ("sparse", "reranker")
    }
