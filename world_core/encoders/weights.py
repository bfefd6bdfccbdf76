"""The files of a model: where they lie, their digests, and the encoder id made from them."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Protocol, Self

from world_core.encoders.base import Encoder
from world_core.errors import EncoderError, MissingPartError

SHORT = 16  # hex digits of a digest that stand in an id


class PinnedEncoder(Encoder, Protocol):
    """An encoder that can prove which model it runs."""

    def files(self) -> Mapping[str, str]:
        """Return the sha256 of each file of the model by its name; empty for none."""
        ...


@dataclass(frozen=True, slots=True)
class Recipe:
    """All that decides an encoder's vectors, on processors of one family.

    ``files`` are the sha256 of the model's files by name. The versions of runtimes are left out:
    they may round differently, which the integer codes of an index absorb, and an update must not
    turn every world away.
    """

    kind: str
    model: str
    files: Mapping[str, str]
    pooling: str
    limit: str
    query_prefix: str = ""
    passage_prefix: str = ""

    @property
    def id(self) -> str:
        """The encoder id: ``kind:model:digests:pooling:limit:query prefix:passage prefix``.

        Digests are the first 16 hex digits of each file's sha256, joined by "+" in file order; of
        more than three files the digest of their digests.
        """
        digests = [digest[:SHORT] for digest in self.files.values()]
        if len(digests) > 3:
            lines = "".join(f"{digest}  {name}\n" for name, digest in self.files.items())
            digests = [hashlib.sha256(lines.encode()).hexdigest()[:SHORT]]
        prefixes = (json.dumps(part) for part in (self.query_prefix, self.passage_prefix))
        return ":".join(
            (self.kind, self.model, "+".join(digests), self.pooling, self.limit, *prefixes)
        )


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file of a model with the sha256 of its content, in hex."""

    path: Path
    sha256: str

    @classmethod
    def at(cls, path: Path, hint: str) -> Self:
        """Read and digest a file.

        Raises:
            MissingPartError: it is not there or cannot be read; ``hint`` is the next command.
        """
        try:
            with path.open("rb") as stream:
                return cls(path, hashlib.file_digest(stream, "sha256").hexdigest())
        except OSError as error:
            raise MissingPartError(
                f"The model file {path} cannot be read: {error.strerror}.", hint=hint
            ) from error

    @classmethod
    def of_package(cls, distribution: str, name: str, hint: str) -> Self:
        """Find a file of an installed distribution and compare it with the package's own record.

        Nothing of the package is imported: packages that carry a model often import torch.

        Args:
            distribution: its name as installed by pip.
            name: the file, relative to the folder of all packages.
            hint: the command that installs the distribution.

        Raises:
            MissingPartError: the distribution or the file is not there.
            EncoderError: the file is not the one that was installed.
        """
        try:
            listed = metadata.files(distribution) or []
        except metadata.PackageNotFoundError as error:
            raise MissingPartError(
                f"The package {distribution} is not installed.", hint=hint
            ) from error
        entries = [entry for entry in listed if entry.as_posix() == name]
        if not entries:
            raise MissingPartError(f"The package {distribution} holds no {name}.", hint=hint)
        file = cls.at(Path(str(entries[0].locate())), hint)
        recorded = entries[0].hash
        if recorded is not None and recorded.value != _record_spelling(file.sha256):
            raise EncoderError(
                f"The model file {file.path} is damaged: it differs from the one that the package "
                f"{distribution} installed.",
                hint=f"Remove the package, then: {hint}",
            )
        return file


def _record_spelling(digest: str) -> str:
    """Return a hex digest as the RECORD file of a wheel writes it."""
    return base64.urlsafe_b64encode(bytes.fromhex(digest)).decode().rstrip("=")
