"""Hits of a real world: snippets, sitelinks, explanations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.support import build
from world_core.engine import Engine
from world_core.fusion import fuse
from world_core.generation import Generation
from world_core.ranking import PassageScores
from world_core.scaling import Scaling
from world_core.types import FetchCall, Hit, Mode, SearchCall, Sitelink
from world_core.views import View

FILLER = "Nothing of note was said about the weather on that long and rather quiet day. "
NAMES = [f"room{number}" for number in range(9)]


def write_site(folder: Path) -> None:
    """Write the home page of a harbour with nine rooms; most rooms link to room 4 and room 7."""
    links = "".join(f'<li><a href="{name}.html">{name}</a></li>' for name in NAMES)
    pages = {
        "index.html": ("Harbour office", f"<p>The harbour office is open. {FILLER}</p>{links}")
    }
    for name in NAMES:
        known = '<p><a href="room4.html">x</a> <a href="room7.html">y</a></p>'
        text = f"<p>{FILLER * 14}</p><p>{FILLER * 14}</p><p>Keeper of {name} is Ida Brandt.</p>"
        pages[f"{name}.html"] = ("" if name == "room3" else f"About {name}", text + known)
    for name, (title, body) in pages.items():
        (folder / name).write_text(
            f"<html><head><title>{title}</title></head><body><main><h1>{title}</h1>{body}</main>"
            "</body></html>",
            encoding="utf-8",
        )


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = tmp_path_factory.mktemp("hits")
    (folder / "html").mkdir()
    write_site(folder / "html")
    recipe = (
        '[lexical]\nengine = "tantivy"\n[dense]\nencoder = "tiny"\n[[sources]]\nkind = "html"\n'
        'path = "html"\nbase_url = "https://harbour.example/"\n'
    )
    (folder / "site.toml").write_text(recipe, encoding="utf-8")
    shown = build("--recipe", str(folder / "site.toml"), "--name", "site", "--out", str(folder))
    assert shown.returncode == 0, shown.stdout + shown.stderr
    world = folder / "site" / (folder / "site" / "current").read_text(encoding="utf-8").strip()
    opened = Engine(Generation.open(world))
    yield opened
    opened.close()


def search(engine: Engine, call: SearchCall, view: View | None = None) -> dict[str, Hit]:
    return {hit.meta.url: hit for hit in engine.search(call, view).hits}


HOME = "https://harbour.example/index.html"


def room(name: str) -> str:
    return f"https://harbour.example/{name}.html"


def test_a_start_shows_its_best_known_pages(engine: Engine) -> None:
    hits = search(engine, SearchCall("harbour office", sitelinks=True, mode=Mode.LEXICAL))
    links = hits[HOME].sitelinks
    assert links[:2] == (
        Sitelink("About room4", room("room4")),
        Sitelink("About room7", room("room7")),
    )
    assert [link.url for link in links[2:]] == [
        *(room("room0"), room("room1"), room("room2"), room("room5")),
    ]
    assert all(hit.sitelinks == () for url, hit in hits.items() if url != HOME)


def test_nobody_else_gets_them(engine: Engine) -> None:
    plain = search(engine, SearchCall("harbour office", mode=Mode.LEXICAL))
    assert plain[HOME].sitelinks == ()
    assert plain[HOME].explanation is None


def test_a_view_hides_sitelinks(engine: Engine) -> None:
    generation = engine.generation
    hidden = engine.fetch(FetchCall(room("room4"))).version
    assert hidden is not None
    versions = generation.plain_view.versions.copy()
    versions[hidden.meta.version] = False
    view = View(generation.columns, versions)
    call = SearchCall("harbour office", sitelinks=True, mode=Mode.LEXICAL)
    links = search(engine, call, view)[HOME].sitelinks
    assert links[0] == Sitelink("About room7", room("room7"))
    assert room("room4") not in {link.url for link in links}


def test_the_sentence_that_answers_is_shown_from_deep_in_a_page(engine: Engine) -> None:
    hit = search(engine, SearchCall("keeper Brandt room5", mode=Mode.LEXICAL))[room("room5")]
    assert "Keeper of room5 is Ida Brandt." in hit.snippet
    passages = engine.generation.passages
    assert "Keeper of room5" in passages.text(hit.passage)


def test_a_page_found_by_meaning_alone_shows_its_nearest_passage(engine: Engine) -> None:
    generation = engine.generation
    assert generation.encoder is not None
    assert generation.dense is not None
    hits = search(engine, SearchCall("zzzz", mode=Mode.DENSE, count=20))
    vector = generation.encoder.encode_queries(["zzzz"])[0]
    assert len(hits) == 10
    numbers = set()
    for hit in hits.values():
        first, end = generation.first_passage[hit.meta.version : hit.meta.version + 2].tolist()
        scores = generation.dense.score(vector, np.arange(first, end))
        assert hit.passage == first + int(scores.argmax())
        assert hit.snippet.split()[0] in generation.passages.text(hit.passage)
        numbers.add(hit.passage - first)
    assert len(numbers) > 1


@pytest.mark.parametrize("mode", list(Mode))
def test_explanations_add_up(engine: Engine, mode: Mode) -> None:
    call = SearchCall("keeper of room5", mode=mode, count=20, explain=True)
    answer = engine.search(call)
    hits = search(engine, call)
    shares = [hit.explanation for hit in hits.values()]
    assert all(share is not None for share in shares)
    weight = engine.generation.manifest.fusion.weight
    for hit in hits.values():
        why = hit.explanation
        assert why is not None
        assert why.passage == engine.generation.passages.span(hit.passage)
        assert why.sparse is None
        if mode is Mode.HYBRID:
            assert why.lexical is not None
            assert why.dense is not None
            assert hit.score == pytest.approx(weight * why.dense + (1 - weight) * why.lexical)
        else:
            assert (why.lexical is None) == (mode is Mode.DENSE)
            assert (why.dense is None) == (mode is Mode.LEXICAL)
            assert (why.dense_passage is None) == (mode is Mode.LEXICAL)
    if mode is Mode.HYBRID:
        parts = [hit.parts for hit in answer.hits]
        encoder = engine.generation.encoder
        assert encoder is not None
        vector = encoder.encode_queries([call.query])[0]
        fused = fuse(
            np.array([part.lexical for part in parts]),
            np.array([part.dense for part in parts]),
            scale=Scaling(engine.generation).of(call.query, vector),
        )
        assert [hit.score for hit in answer.hits] == pytest.approx(fused.tolist())


def test_the_best_passage_is_the_first_of_equals() -> None:
    scores = PassageScores(
        np.array([4, 5, 6, 9]), np.array([0.1, 0.5, 0.5, -1.0]), np.array([0, 3, 3, 4])
    )
    assert [scores.best(place) for place in range(3)] == [5, None, 9]
