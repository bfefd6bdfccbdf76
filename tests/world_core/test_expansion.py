"""Queries grown by RM3, over both engines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest

from tests.world_core.indexes import lexical_cases as cases
from world_core import expansion as module
from world_core.analysis import Analyzer
from world_core.expansion import Expansion, unit_passages
from world_core.lexical_settings import ExpansionSettings
from world_core.passages import PassageFile, PassageWriter, cut
from world_core.types import LexicalPhrase, LexicalQuery, Occur

FILLER = "Nobody wrote anything about sand, wind, rain or clouds here."
TEXTS = [
    "The lighthouse of Skarholm is kept by Ida Brandt. Brandt keeps the lamps; Brandt paints.",
    "A lighthouse needs lamps. The lamps of Norrvik are old, and Brandt polishes lamps.",
    "Lighthouse keepers meet in the café; 灯台 is their word. Lamps.",
    *[f"{FILLER} Page {number} of the lot." for number in range(37)],
    "Ida Brandt was born on Lune and paints boats.",
]
ANALYZER = Analyzer(["en"], weights={"title": 0.5, "body": 1.0, "anchor": 0.0, "stem": 2.0})


@dataclass(frozen=True)
class World:
    """An index and a passage file of the same texts."""

    expansion: Expansion
    query: LexicalQuery

    def grown(self, allowed: list[int] | None = None, **settings: float) -> LexicalQuery:
        chosen = self.expansion.settings.model_copy(update=settings)
        bitmap = None
        if allowed is not None:
            bitmap = np.zeros(len(TEXTS), dtype=np.bool_)
            bitmap[allowed] = True
        return replace(self.expansion, settings=chosen).grown(self.query, bitmap)

    def added(self, allowed: list[int] | None = None, **settings: float) -> dict[str, float]:
        """Return the added terms of the body with their factors."""
        grown = self.grown(allowed, **settings).fields[len(self.query.fields) :]
        return {
            part.terms[0]: part.factors[0] for part in grown if part.name == "body" and part.terms
        }


@pytest.fixture(scope="module", params=cases.PARAMETERS)
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    engine = cases.engine(request.param)
    folder = tmp_path_factory.mktemp("expansion")
    units = [ANALYZER.document("", text, "en") for text in TEXTS]
    index = engine.index(folder / "lexical", units, ANALYZER.fields)
    first = [0]
    with PassageWriter(folder / "passages.bin", ANALYZER) as writer:
        for number, text in enumerate(TEXTS):
            spans = cut(text, target=50, limit=60)
            for span in spans:
                writer.add(number, text, span)
            first.append(first[-1] + len(spans))
    passages = PassageFile.open(folder / "passages.bin")
    expansion = Expansion(index, passages, np.asarray(first), ANALYZER, ExpansionSettings())
    yield World(expansion, ANALYZER.query("lighthouse"))
    index.close()
    passages.close()


def test_the_terms_are_those_of_the_relevance_model(world: World) -> None:
    found = world.expansion.index.search(world.query, 10)
    assert sorted(found.units.tolist()) == [0, 1, 2]
    shares = found.scores / found.scores.sum()
    model: Counter[str] = Counter()
    for unit, share in zip(found.units.tolist(), shares.tolist(), strict=True):
        terms = [token.term for token in ANALYZER.tokens(TEXTS[unit])]
        for term, count in Counter(terms).items():
            model[term] += share * count / len(terms)
    common = {term for term in model if sum(term in words(text) for text in TEXTS) > 4}
    assert {"of", "the"} <= common
    kept = [(term, chance) for term, chance in model.most_common() if term not in common]
    kept = [pair for pair in kept if len(pair[0]) > 1][:3]
    total = sum(chance for _, chance in kept)
    added = world.added(terms=3, weight=0.5)  # half of the mass each: a share of one
    assert added == {term: round(chance / total, 4) for term, chance in kept}
    assert set(added) >= {"lamps", "lighthouse"}


def words(text: str) -> set[str]:
    return {token.term for token in ANALYZER.tokens(text)}


def test_a_related_page_without_the_word_is_found(world: World) -> None:
    index = world.expansion.index
    assert 40 not in index.search(world.query, 50).units
    assert 40 in index.search(world.grown(), 50).units


def test_what_is_not_seen_lends_no_term(world: World) -> None:
    everything = world.added(terms=50)
    assert {"skarholm", "norrvik"} <= set(everything)
    without = world.added([number for number in range(len(TEXTS)) if number != 0], terms=50)
    assert "skarholm" not in without
    assert "norrvik" in without
    assert world.grown([3, 4, 5]) == world.query


def test_the_weight_is_the_share_of_the_querys_own_terms(world: World) -> None:
    for weight in (0.25, 0.5, 0.8):
        assert sum(world.added(weight=weight).values()) == pytest.approx(
            (1 - weight) / weight, abs=1e-3
        )
    assert set(world.added(weight=1.0).values()) == {0.0}


def test_added_words_are_asked_of_every_field_with_its_weight(world: World) -> None:
    grown = world.grown(terms=4)
    assert grown.fields[: len(world.query.fields)] == world.query.fields
    assert {(part.name, part.weight) for part in grown.fields} == {
        ("title", 0.5),
        ("body", 1.0),
        ("stem_en", 2.0),
    }
    stems = [part.terms for part in grown.fields if part.name == "stem_en"]
    assert ("lamp",) in stems
    assert len(stems) == 1 + 4


def test_the_numbers_of_documents_and_terms_are_kept(world: World) -> None:
    assert len(world.added(terms=2)) == 2
    first = world.expansion.index.search(world.query, 1).units.tolist()
    only = world.added(docs=1, terms=50)
    assert set(only) <= words(TEXTS[first[0]])


def test_growing_is_the_same_each_time(world: World) -> None:
    assert world.grown(terms=30) == world.grown(terms=30)


def test_factors_have_few_digits(world: World) -> None:
    assert all(round(value, 4) == value for value in world.added(terms=40).values())


def test_phrases_stay_and_restrict_what_is_learned_from(world: World) -> None:
    phrase = LexicalPhrase(
        Occur.MUST_NOT, (replace(world.query.fields[0], name="body", terms=("ida", "brandt")),)
    )
    query = replace(world.query, phrases=(phrase,))
    grown = world.expansion.grown(query, None)
    assert grown.phrases == (phrase,)
    assert "skarholm" not in {term for part in grown.fields for term in part.terms}


@pytest.mark.parametrize("text", ["", "!?", "nowhere"])
def test_a_query_that_finds_nothing_is_left_alone(world: World, text: str) -> None:
    query = ANALYZER.query(text)
    assert world.expansion.grown(query, None) == query


def test_only_the_first_passages_are_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PASSAGES", 1)
    assert "paints" not in world.added(terms=50)
    monkeypatch.undo()
    assert "paints" in world.added(terms=50)


def test_units_that_are_passages_own_themselves() -> None:
    first = np.asarray([0, 3, 3, 5])
    assert unit_passages("version", first, 5) is first
    assert unit_passages("passage", first, 5).tolist() == [0, 1, 2, 3, 4, 5]
