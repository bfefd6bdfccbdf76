"""A small world with time in it, made by the builder, for the tests of the engine."""

from __future__ import annotations

import json
import random
from pathlib import Path

from tests.support import build

PLACES = ("Norrvik", "Skarholm", "Stennes", "Alder Point", "Lune", "Fagerstad")
THINGS = ("lighthouse", "ferry", "library", "bridge", "harbour", "market", "museum", "mill")
FACTS = ("was built in", "was closed in", "was repaired in", "opened its doors in")


def rows(count: int = 80) -> list[dict[str, str]]:
    """Return dump rows; every fourth page has a second version a year later."""
    source = random.Random(7)
    made = []
    for number in range(count):
        place, thing = source.choice(PLACES), source.choice(THINGS)
        title = f"{thing.title()} of {place} {number}"
        url = f"https://world.example/{thing}/{number}"
        sentences = [
            f"The {source.choice(THINGS)} of {source.choice(PLACES)} {source.choice(FACTS)} "
            f"{source.randint(1800, 2020)}."
            for _ in range(source.randint(1, 60))
        ]
        made.append(
            {
                "url": url,
                "title": title,
                "text": " ".join(sentences),
                "date": f"2020-01-{1 + number % 28:02d}",
            }
        )
        if number % 4 == 0:
            text = " ".join([f"The keeper of {title} is Ida Brandt.", *sentences[1:]])
            made.append({"url": url, "title": title, "text": text, "date": "2021-06-01"})
    return made


def make_world(folder: Path, recipe: str, *, count: int = 80) -> Path:
    """Build a world of ``rows`` by the recipe's text and return the published version's folder."""
    lines = "".join(json.dumps(row) + "\n" for row in rows(count))
    (folder / "small.jsonl").write_text(lines, encoding="utf-8")
    source = '[[sources]]\nkind = "jsonl"\npath = "small.jsonl"\n'
    (folder / "small.toml").write_text(recipe + source, encoding="utf-8")
    shown = build("--recipe", str(folder / "small.toml"), "--name", "small", "--out", str(folder))
    assert shown.returncode == 0, shown.stdout + shown.stderr
    return folder / "small" / (folder / "small" / "current").read_text(encoding="utf-8").strip()
