"""A table of token vectors, whose mean is the vector of a text: no model runs at all.

Some hundred times faster than the smallest transformer, and blind to order, context and other
languages than the table's own. Made for laptops.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from world_core.encoders.arguments import Settings, number, only, text
from world_core.encoders.distilling import VERSION, distil
from world_core.encoders.model_cache import cached, default_folder
from world_core.encoders.onnx_minilm import MODEL, TOKENIZER, OnnxMiniLm
from world_core.encoders.onnx_minilm import SETUP as SETUP_MINILM
from world_core.encoders.onnx_session import need
from world_core.encoders.recipe_encoder import RecipeEncoder
from world_core.encoders.texts import readable, unit_rows
from world_core.encoders.tokenizer_file import read_tokenizer
from world_core.encoders.weights import ModelFile, Recipe
from world_core.errors import EncoderError, MissingPartError
from world_core.types import Vectors

KIND = "static"
TABLES = ("table.npy", "table.safetensors", "model.safetensors")
COMPONENTS = 256
LIMIT = 32_768  # characters read of a text


class StaticEncoder(RecipeEncoder):
    """Means of token vectors; safe to call from several threads at once."""

    def __init__(
        self, table: NDArray[np.floating], tokenizer: Path, model: str, files: Mapping[str, str]
    ) -> None:
        """Encode with a table (vocabulary, components) in the tokenizer's order.

        Raises:
            EncoderError: the table has no two axes, or fewer rows than the tokenizer has tokens.
        """
        self._recipe = Recipe(KIND, model, files, "mean", f"{LIMIT} characters")
        self._tokenizer = read_tokenizer(tokenizer, "Check the file, or get it again.")
        size = self._tokenizer.get_vocab_size()
        if table.ndim != 2 or table.shape[0] < size or not np.isfinite(table).all():
            raise EncoderError(
                f"The table of shape {table.shape} is none of {size} token vectors.",
                hint="Table and tokenizer must be of one model.",
            )
        self._table = table.astype(np.float32)
        self._dim = int(table.shape[1])

    @classmethod
    def load(cls, arguments: Settings, threads: int) -> Self:
        """Open a table, or make one of MiniLM on the first use (about a minute).

        Arguments: ``folder`` with ``table.npy``, ``table.safetensors`` or ``model.safetensors``
        (one matrix) and ``tokenizer.json``; without it ``components`` (8 to 384, default 256) of
        the table that is distilled from the installed MiniLM.

        Raises:
            BadInputError: an argument is unknown or out of range.
            MissingPartError: a package or file is not there, or the cache cannot be written.
            EncoderError: a file is damaged.
        """
        need(("tokenizers",), "pip install 'searchworld[server]'")
        if "folder" in arguments:
            only(KIND, arguments, ("folder",))
            return cls._of_folder(Path(text(arguments, "folder", "")))
        only(KIND, arguments, ("folder", "components"))
        components = number(arguments, "components", COMPONENTS, least=8, most=384)
        return cls._of_minilm(components, threads, default_folder())

    @classmethod
    def _of_folder(cls, folder: Path) -> Self:
        hint = f"The folder needs tokenizer.json and one of: {', '.join(TABLES)}."
        found = [folder / name for name in TABLES if (folder / name).is_file()]
        if not found:
            raise MissingPartError(f"There is no table of token vectors in {folder}.", hint=hint)
        table = ModelFile.at(found[0], hint)
        tokenizer = ModelFile.at(folder / "tokenizer.json", hint)
        digests = {file.path.name: file.sha256 for file in (table, tokenizer)}
        return cls(_read_table(table.path), tokenizer.path, "table", digests)

    @classmethod
    def _of_minilm(cls, components: int, threads: int, folder: Path) -> Self:
        # The digests are the model's: those of the table may differ in its last bits between
        # families of processors, and no world should be turned away for that.
        model, tokenizer = (
            ModelFile.of_package(*part, SETUP_MINILM) for part in (MODEL, TOKENIZER)
        )
        digests = {file.path.name: file.sha256 for file in (model, tokenizer)}
        name = f"all-MiniLM-L6-v2-distilled-{components}-{VERSION}"
        key = hashlib.sha256(f"{name} {digests}".encode()).hexdigest()
        path = cached(
            folder, f"{key}.npy", lambda: distil(OnnxMiniLm.load({}, threads), components)
        )
        return cls(_read_table(path), tokenizer.path, name, digests)

    def _encode(self, texts: Sequence[str], *, is_query: bool) -> Vectors:  # noqa: ARG002 - no prefixes
        rows = np.zeros((len(texts), self._dim), dtype=np.float64)
        for row, part in zip(rows, texts, strict=True):
            encoded = self._tokenizer.encode(readable(part, LIMIT), add_special_tokens=False)
            if encoded.ids:
                row[:] = self._table[encoded.ids].mean(axis=0, dtype=np.float64)
            if not row.any():  # no tokens at all, or all of them cancelled out
                row[0] = 1.0
        return unit_rows(rows, KIND)


def _read_table(path: Path) -> NDArray[np.floating]:
    if path.suffix == ".npy":
        try:
            table: NDArray[np.floating] = np.load(path, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise _damaged(path, str(error)) from error
        return table
    need(("safetensors",), "pip install safetensors")
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        tensors = load_file(path)
    except SafetensorError as error:
        raise _damaged(path, str(error)) from error
    if len(tensors) != 1:
        raise _damaged(path, f"it holds {len(tensors)} tensors and not one")
    return next(iter(tensors.values()))


def _damaged(path: Path, why: str) -> EncoderError:
    return EncoderError(f"The table {path} cannot be read: {why}.", hint="Get it again.")
