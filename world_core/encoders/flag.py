"""Models of the BGE family through FlagEmbedding and torch, by local folder or by name.

torch gives a text slightly different bits in different batches, so this encoder is to be used
through ``invariance.repeatable``. Nothing is downloaded unless the argument says so, and no code
that lies beside the weights is ever run.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from world_core.encoders.arguments import Settings, choice, number, only, text
from world_core.encoders.families import FAMILIES, Family, family_of
from world_core.encoders.hub import local_folder, model_files
from world_core.encoders.texts import readable, unit_rows
from world_core.encoders.weights import Recipe
from world_core.errors import BadInputError, EncoderError, MissingPartError
from world_core.types import Vectors

_LOG = logging.getLogger(__name__)

KIND = "flag"
SETUP = "pip install 'searchworld[dense]'"
ARGUMENTS = ("model", "family", "max_tokens", "fp16", "device", "allow_download")
LIMIT = 65_536  # characters read of a text
BATCH = 32


class FlagEncoder:
    """A transformer on CPU or GPU; callers take turns, one call at a time."""

    def __init__(
        self,
        folder: Path,
        *,
        name: str,
        family: Family,
        tokens: int = 512,
        half: bool = False,
        device: str = "",
        threads: int = 1,
    ) -> None:
        files = model_files(folder)
        torch = _torch()
        torch.set_num_threads(threads)
        with_cuda = bool(torch.cuda.is_available())
        device = device or ("cuda:0" if with_cuda else "cpu")
        if device.startswith("cuda") and not with_cuda:
            raise MissingPartError(
                f"There is no CUDA device here, and the encoder is to run on {device}.",
                hint="Leave out the argument device, or set it to cpu.",
            )
        if half and not device.startswith("cuda"):
            _LOG.warning("No half precision on %s: %s runs in single precision.", device, name)
            half = False
        self._family = family
        self._recipe = Recipe(
            kind=KIND,
            model=f"{name}-{'fp16' if half else 'fp32'}",
            files={file.path.name: file.sha256 for file in files},
            pooling=family.pooling,
            limit=f"{tokens} tokens",
            query_prefix=family.query_instruction,
        )
        self._lock = threading.Lock()
        self._model = _model(folder, family, tokens=tokens, half=half, device=device)
        # A first text finds out now, and not at the first query, whether the device can run it.
        self._dim = int(self._run(["a"], is_query=False).shape[1])

    @classmethod
    def load(cls, arguments: Settings, threads: int) -> Self:
        """Open a model.

        Arguments: ``model`` (a folder, or a name such as ``BAAI/bge-m3`` that is looked up in the
        local Hugging Face cache), ``family`` (one of ``families.FAMILIES``; told from the model's
        name when it is a BGE model), ``max_tokens`` (default 512), ``fp16`` (1 for half precision,
        on CUDA only), ``device`` (default: CUDA if there is any, else CPU), ``allow_download`` (1
        to fetch a missing model by its name).

        Raises:
            BadInputError: an argument is unknown, missing or out of range.
            MissingPartError: the package, the folder or the weights are not there.
            EncoderError: the model cannot be loaded.
        """
        only(KIND, arguments, ARGUMENTS)
        model = text(arguments, "model", "")
        if not model:
            raise BadInputError(
                "The encoder flag needs the argument model, a folder or a name.",
                hint="For example: model = 'BAAI/bge-m3'.",
            )
        name = model.rstrip("/").rpartition("/")[2]
        family = choice(arguments, "family", "", ("", *FAMILIES)) or family_of(name)
        tokens = number(arguments, "max_tokens", 512, least=8, most=8192)
        half = number(arguments, "fp16", 0, least=0, most=1)
        download = number(arguments, "allow_download", 0, least=0, most=1)
        folder = local_folder(model, download=bool(download))
        return cls(
            folder,
            name=name,
            family=FAMILIES[family],
            tokens=tokens,
            half=bool(half),
            device=text(arguments, "device", ""),
            threads=threads,
        )

    @property
    def id(self) -> str:
        """Names model, precision, digests, pooling, token limit and query instruction."""
        return self._recipe.id

    @property
    def dim(self) -> int:
        """Number of components."""
        return self._dim

    def files(self) -> Mapping[str, str]:
        """Return the sha256 of configuration, tokenizer and weights by file name."""
        return self._recipe.files

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """Return (n, dim) float32, one row a query, length 1, with the model's instruction.

        Raises:
            EncoderError: the model failed.
        """
        return self._encode(texts, is_query=True)

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        """Return (n, dim) float32, one row a passage, length 1.

        Raises:
            EncoderError: the model failed.
        """
        return self._encode(texts, is_query=False)

    def _encode(self, texts: Sequence[str], *, is_query: bool) -> Vectors:
        rows = np.zeros((len(texts), self._dim), dtype=np.float32)
        clean = [readable(part, LIMIT) for part in texts]
        for start in range(0, len(clean), BATCH):
            some = clean[start : start + BATCH]
            rows[start : start + BATCH] = self._run(some, is_query=is_query)
        return unit_rows(rows, KIND)

    def _run(self, texts: list[str], *, is_query: bool) -> NDArray[np.float32]:
        encode = self._model.encode_queries if is_query else self._model.encode_corpus
        try:
            with self._lock:
                output = encode(texts)
        except (RuntimeError, ValueError, IndexError, AttributeError) as error:
            # FlagEmbedding answers a RuntimeError of torch by smaller batches, down to none, so
            # what comes out may be any of these.
            raise EncoderError(f"The model failed on {len(texts)} texts: {error}") from error
        vectors = output["dense_vecs"] if self._family.is_m3 else output
        return np.asarray(vectors, dtype=np.float32)


def _torch() -> Any:  # noqa: ANN401 - torch is not installed where types are checked
    for package in ("torch", "FlagEmbedding"):
        if find_spec(package) is None:
            raise MissingPartError(f"The package {package} is not installed.", hint=SETUP)
    import torch

    return torch


def _model(folder: Path, family: Family, *, tokens: int, half: bool, device: str) -> Any:  # noqa: ANN401 - no types
    try:
        from FlagEmbedding import BGEM3FlagModel, FlagModel
    except ImportError as error:
        raise MissingPartError(
            f"The package FlagEmbedding cannot be imported: {error}.", hint=f"{SETUP} --upgrade"
        ) from error
    damaged: type[Exception] = import_module("safetensors").SafetensorError
    kind = BGEM3FlagModel if family.is_m3 else FlagModel
    try:
        return kind(
            str(folder),
            use_fp16=half,
            devices=[device],
            pooling_method=family.pooling,
            query_instruction_for_retrieval=family.query_instruction or None,
            # One more than we ever pass: a full batch makes FlagEmbedding draw a progress bar.
            batch_size=BATCH + 1,
            query_max_length=tokens,
            passage_max_length=tokens,
        )
    except (OSError, ValueError, KeyError, RuntimeError, damaged) as error:
        raise EncoderError(
            f"The model in {folder} cannot be loaded: {error}.",
            hint="Check that the folder holds a complete model of transformers.",
        ) from error
