from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from world_core.lexical_settings import LexicalSettings
from world_core.manifest import Counts, Manifest, read, render, write
from world_core.manifest_options import RerankerSettings, SparseSettings, left_out

SPARSE = SparseSettings(
    encoder_id="tiny-sparse:x",
    kind="tiny",
    arguments={"vocabulary": 64},
    bits=8,
    top=0,
    passages=3,
    postings=9,
    weights_digest="0" * 64,
    weight=0.2,
)
RERANKER = RerankerSettings(reranker_id="tiny-reranker:x", kind="tiny", top=20)
PLAIN = Manifest(
    name="small",
    world_id="0" * 64,
    files={},
    encoder_id="",
    encoder=None,
    analyzer_id="a",
    languages=("en",),
    lexical=LexicalSettings(
        engine="tantivy", engine_version="", unit="version", k1=0.9, b=0.4, field_weights={}
    ),
    dense=None,
    counts=Counts(pages=1, versions=1, passages=3),
    capture_from=None,
    capture_to=None,
    clock=0,
)


def test_a_world_without_them_is_spelled_as_if_they_did_not_exist(tmp_path: Path) -> None:
    fields = json.loads(render(PLAIN))

    assert not {"sparse", "reranker"} & fields.keys()
    assert fields["dense"] is None
    write(tmp_path, PLAIN)
    assert read(tmp_path) == PLAIN


def test_they_come_back_as_they_were_written(tmp_path: Path) -> None:
    whole = PLAIN.model_copy(update={"sparse": SPARSE, "reranker": RERANKER})

    write(tmp_path, whole)

    assert read(tmp_path) == whole
    assert json.loads(render(whole))["sparse"]["arguments"] == {"vocabulary": 64}


def test_only_the_optional_parts_are_left_out() -> None:
    fields: dict[str, object] = {"dense": None, "sparse": None, "reranker": None, "clock": 0}

    assert left_out(fields) == {"dense": None, "clock": 0}
    assert left_out({"sparse": {}, "reranker": {}}) == {"sparse": {}, "reranker": {}}


@pytest.mark.parametrize(
    ("name", "value"),
    [("bits", 1), ("bits", 9), ("top", -1), ("weight", 1.5), ("postings", -1), ("more", 1)],
)
def test_sparse_settings_out_of_range_are_refused(name: str, value: float) -> None:
    with pytest.raises(ValidationError, match=name):
        SparseSettings.model_validate({**SPARSE.model_dump(), name: value})


@pytest.mark.parametrize("top", [0, 201])
def test_a_reranker_orders_between_1_and_200_pages(top: int) -> None:
    with pytest.raises(ValidationError, match="top"):
        RerankerSettings.model_validate({**RERANKER.model_dump(), "top": top})
