"""The question file of a world: questions whose evidence is in it, with page ids."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol, runtime_checkable

from world_core import urls
from world_core.pages import PageStore

Row = dict[str, object]


class Question(Protocol):
    """A training task."""

    def as_dict(self) -> Row:
        """Return the question as a line of a question file; ``evidence`` lists pages by url."""
        ...


@runtime_checkable
class AsksQuestions(Protocol):
    """A source that knows questions which its pages answer."""

    def questions(self) -> Iterable[Question]:
        """Yield the questions."""
        ...


def write_questions(path: Path, questions: Iterable[Question], pages: PageStore) -> tuple[int, int]:
    """Write the questions whose whole evidence is in the world; return how many were and were not.

    The page id of a piece of evidence is that of the page its address leads to here. No file is
    written when there is no question.

    Raises:
        PageStoreError: the page store failed.
    """
    rows = [_with_page_ids(question.as_dict(), pages) for question in questions]
    kept = [row for row in rows if row is not None]
    if kept:
        text = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in kept)
        path.write_text(text, encoding="utf-8", newline="\n")
    return len(kept), len(rows) - len(kept)


def _with_page_ids(row: Row, pages: PageStore) -> Row | None:
    evidence = row.get("evidence")
    if not isinstance(evidence, list):
        return None
    found = list(_found(evidence, pages))
    return {**row, "evidence": found} if len(found) == len(evidence) else None


def _found(evidence: Iterable[Row], pages: PageStore) -> Iterator[Row]:
    for piece in evidence:
        page = pages.find(urls.canonical(str(piece["url"])))
        if isinstance(page, int):
            meta = pages.metas([pages.versions(page)[0]])[0]
            yield {**piece, "page_id": meta.page_id}
