"""How a manifest spells the lexical index."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from world_core.lexical_settings import ExpansionSettings, LexicalSettings

PLAIN = {
    "engine": "lucene",
    "engine_version": "lucene-9.9.1",
    "unit": "version",
    "k1": 0.9,
    "b": 0.4,
    "field_weights": {"title": 0.8},
}


def test_what_is_not_set_is_not_spelled() -> None:
    assert LexicalSettings.model_validate(PLAIN).model_dump(mode="json") == PLAIN


def test_what_is_set_comes_back() -> None:
    settings = LexicalSettings.model_validate(
        {**PLAIN, "scoring": "bm25f", "long_query": 6, "expansion": {"docs": 5}}
    )
    assert settings.expansion == ExpansionSettings(docs=5)
    spelled = settings.model_dump(mode="json")
    assert (spelled["scoring"], spelled["long_query"]) == ("bm25f", 6)
    assert spelled["expansion"] == {"kind": "rm3", "docs": 5, "terms": 30, "weight": 0.7}
    assert LexicalSettings.model_validate_json(settings.model_dump_json()) == settings


@pytest.mark.parametrize(
    "wrong",
    [
        {"scoring": "tfidf"},
        {"long_query": -1},
        {"expansion": {"docs": 0}},
        {"expansion": {"terms": 1001}},
        {"expansion": {"weight": 0.0}},
        {"expansion": {"kind": "bo1"}},
        {"extra": 1},
    ],
)
def test_unusable_settings_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        LexicalSettings.model_validate({**PLAIN, **wrong})
