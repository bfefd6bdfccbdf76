"""The error tree of the core.

WorldError
├── BadWorldError           a world folder cannot be served
│   ├── DamagedFileError    a file differs from the manifest
│   ├── NewerFormatError    written by a newer program
│   └── ForeignWorldError   not a world of ours, or of another content
├── BadInputError           the caller gave something unusable
├── TooLargeError           this machine has too little memory or disk for a world
├── MissingPartError        a model, a jar, Java or a package is not installed
├── EncoderError            an encoder failed or broke its promise
├── RerankerError           a reranker failed, or is not the one a world names
├── IndexFailedError        an index failed
├── PageStoreError          the page store failed or cannot be reached
└── CancelledCallError      nobody waits for this call any more
"""

from __future__ import annotations

from typing import ClassVar


class WorldError(Exception):
    """Base of every error the core raises on purpose.

    Attributes:
        code: stable machine-readable name, used in answers, logs and docs.
        status: HTTP status a server gives for it.
        hint: the next step for the reader, a command where there is one.
    """

    code: ClassVar[str] = "internal"
    status: ClassVar[int] = 503

    def __init__(self, sentence: str, *, hint: str = "") -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.sentence} {self.hint}".strip()


class BadWorldError(WorldError):
    """A world folder that cannot be served."""

    code = "bad_world"


class DamagedFileError(BadWorldError):
    """A file of a world is missing or differs from its digest in the manifest."""

    code = "damaged_file"


class NewerFormatError(BadWorldError):
    """A world was written in a format this program does not know yet."""

    code = "newer_format"


class ForeignWorldError(BadWorldError):
    """A folder is no world, or its content is not the one that was asked for."""

    code = "foreign_world"


class BadInputError(WorldError):
    """The caller gave a value that cannot be used."""

    code = "bad_request"
    status = 400


class TooLargeError(WorldError):
    """A world needs more memory or disk than this machine has; nothing of it was loaded."""

    code = "too_large"


class MissingPartError(WorldError):
    """Something that must be installed is not: a package, model weights, Java, the Lucene jar."""

    code = "missing_part"


class EncoderError(WorldError):
    """An encoder failed, or two runs of it disagree."""

    code = "encoder"


class RerankerError(WorldError):
    """A reranker failed, or is not the one that a world names."""

    code = "reranker"


class IndexFailedError(WorldError):
    """An index failed while it was read or asked."""

    code = "index"


class PageStoreError(WorldError):
    """The page store failed or cannot be reached; never to be read as an absent page."""

    code = "page_store"


class CancelledCallError(WorldError):
    """The caller left or the deadline passed while the call was at work."""

    code = "deadline"
    status = 504
