"""Reading a page store's SQLite file: prepared texts on a few mapped, read-only connections.

Every search reads the rows of its hits, so the way to them is short: SQLAlchemy puts each statement
into words once, and the words go to SQLite as they are. Going through its engine for every call
took three times as long as the reading itself.
"""

from __future__ import annotations

import queue
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from world_core.errors import PageStoreError

MAPPED_BYTES = 1 << 40
"""More than any file has: SQLite maps as much of it as it was built to allow, 2 GiB as a rule."""


class PageFile:
    """Answers the statements of a page store from a file; safe for several threads at once.

    A call takes a free connection, or waits for one as long as ``patience`` says.
    """

    def __init__(self, path: Path, name: str, connections: int, patience: float) -> None:
        """Open nothing yet; each connection is made by the first call that needs it."""
        self._address = f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"
        self._name = name
        self._patience = patience
        self._is_closed = False
        # The last one used comes first: its cache is the warmest.
        self._free: queue.LifoQueue[sqlite3.Connection | None] = queue.LifoQueue()
        for _ in range(connections):
            self._free.put(None)
        self._texts: dict[tuple[int, int], tuple[sa.Executable, str, tuple[str, ...]]] = {}

    def rows(self, statement: sa.Executable, values: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
        """Return all rows of a statement; a list among the values must be the only one.

        Raises:
            PageStoreError: the file is closed, or no connection was free in time.
            sqlite3.Error: SQLite failed.
        """
        text, names = self._prepared(statement, values)
        given: list[Any] = []
        for name in names:
            value = values[name]
            if isinstance(value, list):
                given.extend(value)
            else:
                given.append(value)
        connection = self._take()
        try:
            if connection is None:
                connection = self._connect()
            return connection.execute(text, given).fetchall()
        finally:
            if self._is_closed and connection is not None:
                connection.close()
            else:
                self._free.put(connection)

    def close(self) -> None:
        """Close free connections now and those at work after their calls; later calls fail."""
        self._is_closed = True
        while True:
            try:
                connection = self._free.get_nowait()
            except queue.Empty:
                return
            if connection is not None:
                connection.close()

    def _take(self) -> sqlite3.Connection | None:
        try:
            if self._is_closed:
                raise queue.Empty
            return self._free.get(timeout=self._patience)
        except queue.Empty:
            cause = "is closed" if self._is_closed else f"had no turn within {self._patience:g} s"
            raise PageStoreError(
                f"The page store {self._name} {cause}.", hint="Ask again when it is less busy."
            ) from None

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._address, uri=True, check_same_thread=False, isolation_level=None
        )
        connection.execute(f"PRAGMA mmap_size={MAPPED_BYTES}")
        return connection

    def _prepared(
        self, statement: sa.Executable, values: Mapping[str, Any]
    ) -> tuple[str, tuple[str, ...]]:
        """Return the words of a statement and the names of its values in their order.

        The words depend on how long a list is, so each length has its own.
        """
        length = next((len(value) for value in values.values() if isinstance(value, list)), -1)
        known = self._texts.get((id(statement), length))
        if known is None:
            known = (statement, *_words(statement, values, length))
            # The statement is kept, so that its id is not given to another one.
            self._texts[id(statement), length] = known
        return known[1], known[2]


def _words(
    statement: sa.Executable, values: Mapping[str, Any], length: int
) -> tuple[str, tuple[str, ...]]:
    if length >= 0:
        statement = statement.params(values)  # type: ignore[attr-defined]  # only selects hold lists
    compiled = statement.compile(  # type: ignore[attr-defined]  # executables here are selects
        dialect=sqlite.dialect(paramstyle="qmark"), compile_kwargs={"render_postcompile": True}
    )
    names = tuple(compiled.positiontup)
    if length >= 0:
        names = tuple(name for name, value in values.items() if isinstance(value, list))
    return str(compiled), names
