"""A real world for views: sites with subdomains, four languages, dates, pages in two versions."""

from __future__ import annotations

import json
import random
from pathlib import Path

from tests.support import build

HOSTS = (
    "example.org", "www.example.org", "news.example.org", "a.news.example.org", "beispiel.example",
    "docs.beispiel.example", "notexample.org", "ejemplo.example", "exemple.example",
)  # fmt: skip
SENTENCES = {
    "en": (
        "The old lighthouse of {} was repaired in {}.",
        "A ferry has crossed the bay near {} since {}.",
    ),
    "de": (
        "Der alte Leuchtturm von {} wurde im Jahr {} repariert.",
        "Seit {1} f\u00e4hrt eine F\u00e4hre bei {0} durch die Bucht.",
    ),
    "es": (
        "El viejo faro de {} fue reparado en {}.",
        "Un transbordador cruza la bah\u00eda de {} desde {}.",
    ),
    "zh": (
        "{}\u7684\u65e7\u706f\u5854\u5728{}\u5e74\u4fee\u590d\u3002",
        "\u81ea{1}\u5e74\u4ee5\u6765\u6e21\u8f6e\u5f80\u8fd4\u4e8e{0}\u3002",
    ),
}
PLACES = ("Norrvik", "Skarholm", "Stennes", "Lune", "Fagerstad", "Alder", "Brimsey", "Tolvik")
WORDS = (
    *PLACES,
    "lighthouse",
    "Leuchtturm",
    "faro",
    "\u706f\u5854",
    "ferry",
    "bay",
    "1874",
    "repaired",
)


def rows(count: int) -> list[dict[str, str]]:
    """Return dump rows of ``count`` pages; every fifth page has a second version a year later."""
    source = random.Random(11)
    made = []
    for number in range(count):
        language = source.choice(list(SENTENCES))
        host = source.choice(HOSTS)

        def text(sentences: int, language: str = language) -> str:
            return " ".join(
                source.choice(SENTENCES[language]).format(
                    source.choice(PLACES), source.randint(1800, 2020)
                )
                for _ in range(sentences)
            )

        row = {
            "url": f"https://{host}/{number}",
            "title": f"{source.choice(PLACES)} {number}",
            "text": text(source.choice((1, 2, 4, 30))),
            "language": language,
            "timestamp": f"2020-{1 + number % 12:02d}-15",
        }
        if number % 3:
            row["published"] = f"20{10 + number % 10}-06-01"
        made.append(row)
        if number % 5 == 0:
            made.append({**row, "text": text(5), "timestamp": "2021-06-15"})
    return made


def make_world(folder: Path, pages: int, engine: str, unit: str, tier: str) -> Path:
    """Build the world and return the published version's folder."""
    lines = "".join(json.dumps(row) + "\n" for row in rows(pages))
    (folder / "views.jsonl").write_text(lines, encoding="utf-8")
    (folder / "views.toml").write_text(
        '[[sources]]\nkind = "jsonl"\npath = "views.jsonl"\n'
        "[passages]\ntarget = 100\nlimit = 150\n"
        '[snapshot]\nexact_duplicates = "keep"\n'
        f'[lexical]\nengine = "{engine}"\nunit = "{unit}"\n'
        f'[dense]\nencoder = "tiny"\ntier = "{tier}"\n',
        encoding="utf-8",
    )
    shown = build("--recipe", str(folder / "views.toml"), "--name", "views", "--out", str(folder))
    assert shown.returncode == 0, shown.stdout + shown.stderr
    home = folder / "views"
    return home / (home / "current").read_text(encoding="utf-8").strip()
