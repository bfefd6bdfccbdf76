from __future__ import annotations

import pytest

from world_core.errors import BadInputError, RerankerError
from world_core.manifest_options import RerankerSettings
from world_core.rerankers.loading import KINDS, chosen, load_reranker
from world_core.rerankers.tiny import TinyReranker

OWN = RerankerSettings(
    reranker_id="flag-reranker:x", kind="flag", arguments={"model": "BAAI/m"}, top=30
)


def test_a_kind_is_made_from_its_arguments() -> None:
    assert sorted(KINDS) == ["flag", "tiny"]
    assert load_reranker("tiny", {}).id == TinyReranker().id
    assert load_reranker("tiny", {}, expected_id=TinyReranker().id).files() == {}


def test_another_model_than_the_worlds_is_refused() -> None:
    with pytest.raises(RerankerError, match="the world names another") as caught:
        load_reranker("tiny", {}, expected_id="another")

    assert "--reranker none" in caught.value.hint
    assert caught.value.status == 503


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(BadInputError, match="'colbert'"):
        load_reranker("colbert", {})


def test_the_world_decides_unless_the_operator_does() -> None:
    assert chosen(None) is None
    assert chosen(None, top=50) is None
    assert chosen(OWN) == OWN
    assert chosen(OWN, top=50) == OWN.model_copy(update={"top": 50})
    assert chosen(OWN, "none") is None
    assert chosen(None, "none") is None


def test_the_operators_choice_names_kind_and_model() -> None:
    plain = chosen(OWN, "tiny")
    assert plain is not None
    assert (plain.kind, plain.arguments, plain.reranker_id, plain.top) == ("tiny", {}, "", 30)
    named = chosen(None, "flag:/models/r", 5)
    assert named is not None
    assert (named.kind, named.arguments, named.top) == ("flag", {"model": "/models/r"}, 5)
    usual = chosen(None, "tiny")
    assert usual is not None
    assert usual.top == 20


@pytest.mark.parametrize("top", [-1, 201])
def test_a_number_of_pages_out_of_range_is_refused(top: int) -> None:
    with pytest.raises(BadInputError, match=f"{top} pages"):
        chosen(None, "tiny", top)
