"""The error tree of the builder.

BuilderError
├── BadRecipeError      the recipe or the command line cannot be used
├── BadSourceError      an input file is missing or not of its kind
├── EmptyWorldError     nothing was left to publish
├── StageFailedError    a stage failed; what is done is kept and resumed
└── PublishError        the finished world cannot be put in its place
"""

from __future__ import annotations

from typing import ClassVar


class BuilderError(Exception):
    """Base of every error the builder raises on purpose; see ``world_core.errors.WorldError``."""

    code: ClassVar[str] = "builder"
    exit_code: ClassVar[int] = 2

    def __init__(self, sentence: str, *, hint: str = "") -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.sentence} {self.hint}".strip()


class BadRecipeError(BuilderError):
    """The recipe or the command line cannot be used."""

    code = "bad_recipe"


class BadSourceError(BuilderError):
    """An input file is missing, unreadable or not of its kind."""

    code = "bad_source"


class EmptyWorldError(BuilderError):
    """Nothing was left to publish, and publishing an empty world was not allowed."""

    code = "empty_world"


class StageFailedError(BuilderError):
    """A stage failed; completed shards are kept, the same command resumes."""

    code = "stage_failed"


class PublishError(BuilderError):
    """The finished world cannot be put in its place."""

    code = "publish"
