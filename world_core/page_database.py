"""How the page store's database is reached: an SQLite file or a PostgreSQL schema."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from world_core.errors import BadInputError, MissingPartError, PageStoreError
from world_core.page_file import PageFile

_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_DRIVER = "postgresql+psycopg"
_CONNECT_SECONDS = 5
_PAGE_BYTES = 8192
_SQLITE_MAGIC = b"SQLite format 3\0"


def schema_of(world_id: str) -> str:
    """Return the PostgreSQL schema in which a world's tables live."""
    return f"world_{world_id[:16]}"


class RowReader(Protocol):
    """Answers the statements of ``PageQueries``; safe for several threads at once."""

    def rows(self, statement: sa.Executable, values: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
        """Return all rows of a statement; raises what the database's driver raises."""
        ...

    def close(self) -> None:
        """Release connections and files."""
        ...


class EngineReader:
    """A reader through SQLAlchemy's engine and its pool."""

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine

    def rows(self, statement: sa.Executable, values: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
        """Return all rows of a statement."""
        with self.engine.connect() as connection:
            return connection.execute(statement, dict(values)).all()

    def close(self) -> None:
        """Close the pool's connections."""
        self.engine.dispose()


@dataclass(frozen=True, slots=True)
class PageDatabase:
    """Where a page store lives: exactly one of ``path`` and ``url`` is set.

    ``name`` is what messages call it, without a password.
    """

    path: Path | None
    url: sa.URL | None
    schema: str | None
    name: str

    @classmethod
    def of(cls, where: str | Path, schema: str | None = None) -> PageDatabase:
        """Return the database of a path or of a ``postgresql+psycopg://`` address.

        Raises:
            BadInputError: another kind of address, or a schema that cannot be used.
        """
        if isinstance(where, Path) or "://" not in where:
            if schema is not None:
                raise BadInputError(
                    f"The schema {schema!a} was given for the file {where}; files have none."
                )
            return cls(Path(where), None, None, str(where))
        if schema is not None and not _SCHEMA.fullmatch(schema):
            raise BadInputError(
                f"{schema[:80]!a} cannot name a PostgreSQL schema.",
                hint="Use 1 to 63 of a-z, 0-9 and underscore, no digit first.",
            )
        url = _postgres_url(where)
        shown = url.set(query={}).render_as_string(hide_password=True)
        return cls(None, url, schema, f"{shown} (schema {schema or 'public'})")

    def reader(self, connections: int, patience: float) -> RowReader:
        """Return what reads; a call waits ``patience`` seconds for a connection.

        Raises:
            MissingPartError: psycopg is not installed.
            PageStoreError: the file is missing or cut.
        """
        if self.path is not None:
            with page_failures(self.name):
                _refuse_cut_file(self.path)
            return PageFile(self.path, self.name, connections, patience)
        # Reads need no transaction, so none is opened or rolled back around each of them.
        engine = self._postgres(
            f"-c statement_timeout={int(patience * 1000)}",
            pool_size=connections,
            max_overflow=0,
            pool_timeout=patience,
            pool_pre_ping=True,
            pool_reset_on_return=None,
            isolation_level="AUTOCOMMIT",
        )
        return EngineReader(engine)

    def writer(self) -> sa.Engine:
        """Return an engine for one bulk load; an SQLite file is written without a journal.

        Raises:
            MissingPartError: psycopg is not installed.
        """
        if self.path is None:
            return self._postgres("", poolclass=sa.NullPool)
        path = str(self.path)
        return sa.create_engine(
            "sqlite://",
            creator=lambda: _new_file(path),
            poolclass=sa.NullPool,
            hide_parameters=True,
        )

    def _postgres(self, options: str, **settings: object) -> sa.Engine:
        assert self.url is not None  # noqa: S101 - the class invariant, for the type checker
        defaults = {"connect_timeout": str(_CONNECT_SECONDS), "application_name": "searchworld"}
        if options:
            defaults["options"] = options
        url = self.url.set(query={**defaults, **self.url.query})
        try:
            return sa.create_engine(url, hide_parameters=True, **settings)
        except ImportError as error:
            raise MissingPartError(
                f"The page store {self.name} needs psycopg, which is not installed.",
                hint="Install it: pip install 'searchworld[postgres]'.",
            ) from error


@contextmanager
def page_failures(name: str) -> Iterator[None]:
    """Turn what the database raises into a ``PageStoreError`` that names the store."""
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error, OSError) as error:
        cause = str(getattr(error, "orig", None) or error).strip().split("\n")[0]
        raise PageStoreError(
            f"The page store {name} failed: {cause}.",
            hint="Check that the file or the database server is there: world-server check PATH.",
        ) from error


def make_durable(path: Path) -> None:
    """Bring a file or a folder's entries to the disk.

    Raises:
        OSError: the disk refused.
    """
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _postgres_url(where: str) -> sa.URL:
    try:
        url = sa.make_url(where)
    except (ArgumentError, ValueError) as error:
        raise BadInputError(
            "The address of the page store cannot be read.",
            hint=f"Write {_DRIVER}://USER:PASSWORD@HOST:5432/DATABASE or the path of a file.",
        ) from error
    if url.drivername not in {_DRIVER, "postgresql"}:
        raise BadInputError(
            f"The page store cannot be reached by {url.drivername[:80]!a}.",
            hint=f"Write {_DRIVER}://USER:PASSWORD@HOST:5432/DATABASE or the path of a file.",
        )
    return url.set(drivername=_DRIVER)


def _refuse_cut_file(path: Path) -> None:
    """Compare the size with the file's own header: SQLite reads what is cut off as zeros.

    See the SQLite file format: page size at byte 16 (1 means 65,536), page count at byte 28.
    """
    with path.open("rb") as file:
        header = file.read(100)
        size = file.seek(0, os.SEEK_END)
    if len(header) < 100 or not header.startswith(_SQLITE_MAGIC):
        raise PageStoreError(
            f"The page store {path} is not an SQLite file.", hint="world-server check PATH."
        )
    page_bytes = int.from_bytes(header[16:18], "big")
    wanted = (1 << 16 if page_bytes == 1 else page_bytes) * int.from_bytes(header[28:32], "big")
    if size != wanted:
        raise PageStoreError(
            f"The page store {path} has {size} bytes instead of {wanted}.",
            hint="Unpack the world again; world-server check PATH names damaged files.",
        )


def _new_file(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    # Durability comes from one fsync at the end; until then the file is a throw-away.
    for pragma in (
        f"page_size={_PAGE_BYTES}",
        "journal_mode=OFF",
        "synchronous=OFF",
        "locking_mode=EXCLUSIVE",
    ):
        connection.execute(f"PRAGMA {pragma}")
    return connection
