from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from corpus_builder.questions_file import AsksQuestions, Row, write_questions
from corpus_builder.snapshot import read_pages
from corpus_builder.sources.atlas import AtlasSource
from tests.corpus_builder.samples import drafts, sample
from world_core import urls
from world_core.page_writer import PageWriter
from world_core.pages import PageStore


@dataclass(frozen=True)
class Asked:
    """A question that rests on pages by address."""

    id: str
    urls: tuple[str, ...]

    def as_dict(self) -> Row:
        return {"id": self.id, "evidence": [{"url": url, "page_id": "?"} for url in self.urls]}


@pytest.fixture
def store(tmp_path: Path) -> PageStore:
    made = sample(tmp_path / "s", drafts(3))
    with PageWriter(tmp_path / "pages.sqlite") as writer:
        for number, page in enumerate(read_pages(made.pages)):
            aliases = ("https://alias.example/",) if number == 0 else ()
            writer.add(replace(page, aliases=aliases))
    return PageStore.open(tmp_path / "pages.sqlite")


def test_page_ids_are_those_of_the_world(tmp_path: Path, store: PageStore) -> None:
    key = "https://site0.example/page/0"
    first = next(iter(store.pages()))
    asked = [Asked("a", ("http://site0.example/page/0#x", "https://alias.example/"))]
    assert write_questions(tmp_path / "q.jsonl", asked, store) == (1, 0)
    (row,) = [json.loads(line) for line in (tmp_path / "q.jsonl").read_text().splitlines()]
    assert [piece["page_id"] for piece in row["evidence"]] == [urls.page_id(key), first.page_id]
    store.close()


def test_questions_without_their_evidence_are_dropped(tmp_path: Path, store: PageStore) -> None:
    known = "https://site0.example/page/0"
    asked = [Asked("a", (known,)), Asked("b", (known, "https://none.example/")), Asked("c", ())]
    assert write_questions(tmp_path / "q.jsonl", asked, store) == (2, 1)
    ids = [json.loads(line)["id"] for line in (tmp_path / "q.jsonl").read_text().splitlines()]
    assert ids == ["a", "c"]
    store.close()


def test_no_question_writes_no_file(tmp_path: Path, store: PageStore) -> None:
    asked = [Asked("b", ("https://none.example/",))]
    assert write_questions(tmp_path / "q.jsonl", asked, store) == (0, 1)
    assert not (tmp_path / "q.jsonl").exists()
    store.close()


def test_the_atlas_asks_questions() -> None:
    assert isinstance(AtlasSource(3, preset="atlas-toy"), AsksQuestions)
