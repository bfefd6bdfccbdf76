from __future__ import annotations

import pytest

from world_core.encoders.families import FAMILIES, family_of
from world_core.errors import BadInputError


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("bge-m3", "m3"),
        ("BGE-M3-finetuned", "m3"),
        ("bge-small-en-v1.5", "bge-en"),
        ("bge-base-en", "bge-en"),
        ("BGE-Large-EN-v1.5", "bge-en"),
        ("bge-small-zh-v1.5", "bge-zh"),
        ("bge-large-zh", "bge-zh"),
    ],
)
def test_a_bge_name_tells_its_family(name: str, family: str) -> None:
    assert family_of(name) == family


@pytest.mark.parametrize("name", ["", "all-MiniLM-L6-v2", "bge-small-entry", "bge-multilingual"])
def test_another_name_is_not_guessed(name: str) -> None:
    with pytest.raises(BadInputError) as caught:
        family_of(name)

    assert repr(name) in caught.value.sentence
    assert "mean" in caught.value.hint


def test_the_instructions_are_those_of_the_model_cards() -> None:
    asking = {name: family.query_instruction for name, family in FAMILIES.items()}

    assert asking.pop("bge-en") == "Represent this sentence for searching relevant passages: "
    assert asking.pop("bge-zh") == "为这个句子生成表示以用于检索相关文章："
    assert set(asking.values()) == {""}
    assert [name for name, family in FAMILIES.items() if family.is_m3] == ["m3"]
    assert [name for name, family in FAMILIES.items() if family.pooling == "mean"] == ["mean"]
