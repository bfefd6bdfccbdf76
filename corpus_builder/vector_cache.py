"""What encoders made of texts, by the digest of the text, kept between builds.

One SQLite file an encoder id. A batch is stored in one transaction, so a killed build loses at most
the batch it was at. Several builds may use the cache at once.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Self

import numpy as np

from corpus_builder.errors import StageFailedError
from world_core.types import Vector, Vectors

FORMAT = 1
PATIENCE = 60.0
_ASKED_AT_ONCE = 500


def default_folder() -> Path:
    """Return where the cache lies unless the command line says otherwise."""
    return Path.home() / ".cache" / "searchworld" / "vectors"


def text_digest(text: str) -> bytes:
    """Return the key of a text, 32 bytes."""
    return hashlib.sha256(text.encode("utf-8")).digest()


class TextCache:
    """What one encoder made of texts, as bytes; a context manager that closes the file.

    Args:
        folder: where the files of all encoders lie; made if missing.
        encoder_id: names the encoder; another id never gives what is its.

    Raises:
        StageFailedError: the file is damaged, or belongs to another encoder.
    """

    def __init__(self, folder: Path, encoder_id: str) -> None:
        name = hashlib.sha256(encoder_id.encode("utf-8")).hexdigest()[:16]
        self.path = folder / f"{name}-v{FORMAT}.sqlite"
        folder.mkdir(parents=True, exist_ok=True)
        try:
            self._connection = sqlite3.connect(self.path, timeout=PATIENCE)
            self._prepare(encoder_id)
        except sqlite3.DatabaseError as error:
            raise self.damaged(str(error)) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._connection.close()

    def read(self, digests: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return what is known, by digest.

        Raises:
            StageFailedError: the file is damaged.
        """
        found: dict[bytes, bytes] = {}
        for first in range(0, len(digests), _ASKED_AT_ONCE):
            asked = digests[first : first + _ASKED_AT_ONCE]
            marks = ",".join("?" * len(asked))
            statement = f"SELECT digest, vector FROM vectors WHERE digest IN ({marks})"  # noqa: S608  # marks only
            try:
                with closing(self._connection.execute(statement, asked)) as rows:
                    found |= dict(rows)
            except sqlite3.DatabaseError as error:
                raise self.damaged(str(error)) from error
        return found

    def write(self, rows: Sequence[tuple[bytes, bytes]]) -> None:
        """Keep bytes under their digests, all or none; what is there already stays.

        Raises:
            StageFailedError: the file is damaged or cannot be written.
        """
        try:
            with self._connection:
                self._connection.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?)", rows)
        except sqlite3.DatabaseError as error:
            raise self.damaged(str(error)) from error

    def damaged(self, reason: str) -> StageFailedError:
        """Return the error that the file cannot be used for this reason."""
        return StageFailedError(
            f"The vector cache {self.path} cannot be used: {reason}.",
            hint=f"Remove it (rm {self.path}) or give another --cache, and run the same command.",
        )

    def _prepare(self, encoder_id: str) -> None:
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=NORMAL")
        with self._connection:
            self._connection.execute("CREATE TABLE IF NOT EXISTS encoder (id TEXT PRIMARY KEY)")
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS vectors "
                "(digest BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID"
            )
            self._connection.execute("INSERT OR IGNORE INTO encoder VALUES (?)", (encoder_id,))
        if self._connection.execute("SELECT count(*) FROM encoder").fetchone() != (1,):
            raise self.damaged("it holds vectors of two encoders")


class VectorCache(TextCache):
    """The vectors of one encoder.

    Args:
        folder: where the files of all encoders lie; made if missing.
        encoder_id: names the encoder; another id never gives its vectors.
        dim: components of a vector.

    Raises:
        StageFailedError: the file is damaged, or belongs to another encoder.
    """

    def __init__(self, folder: Path, encoder_id: str, dim: int) -> None:
        super().__init__(folder, encoder_id)
        self._dim = dim

    def find(self, digests: Sequence[bytes]) -> dict[bytes, Vector]:
        """Return the vectors that are known, by digest.

        Raises:
            StageFailedError: the file is damaged.
        """
        return {digest: self._vector(data) for digest, data in self.read(digests).items()}

    def store(self, digests: Iterable[bytes], vectors: Vectors) -> None:
        """Keep vectors of shape (n, dim) under their digests, all or none.

        Raises:
            StageFailedError: the file is damaged or cannot be written.
        """
        self.write(
            [
                (digest, vector.astype("<f4").tobytes())
                for digest, vector in zip(digests, vectors, strict=True)
            ]
        )

    def _vector(self, data: bytes) -> Vector:
        vector = np.frombuffer(data, dtype="<f4").astype(np.float32)
        if vector.shape != (self._dim,) or not abs(float(vector @ vector) - 1.0) < 1e-3:
            raise self.damaged("a vector in it has another shape or length")
        return vector
