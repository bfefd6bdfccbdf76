"""A model of FlagEmbedding in memory, shared by its dense and its sparse side.

torch gives a text slightly different bits in different batches, so every text is a forward pass of
its own. Nothing is downloaded unless an argument says so, and no code that lies beside the weights
is ever run.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from world_core.encoders.arguments import Settings, choice, number, only, text
from world_core.encoders.families import FAMILIES, Family, family_of
from world_core.encoders.hub import local_folder
from world_core.encoders.sparse import SparseVector
from world_core.encoders.texts import readable
from world_core.errors import BadInputError, EncoderError, MissingPartError, WorldError

_LOG = logging.getLogger(__name__)

KIND = "flag"
SETUP = "pip install 'searchworld[dense]'"
ARGUMENTS = ("model", "family", "max_tokens", "fp16", "device", "allow_download")
LIMIT = 65_536  # characters read of a text
REMEMBERED = 4096
"""Passes whose weighted tokens are kept until the sparse side asks for them."""


@dataclass(frozen=True, slots=True)
class FlagSettings:
    """Which model runs and how; equal settings on one machine are one model."""

    model: str
    family: str
    tokens: int = 512
    half: bool = False
    device: str = ""
    download: bool = False

    @classmethod
    def of(cls, arguments: Settings) -> Self:
        """Read the arguments.

        Arguments: ``model`` (a folder, or a name such as ``BAAI/bge-m3`` that is looked up in the
        local Hugging Face cache), ``family`` (one of ``families.FAMILIES``; told from the model's
        name when it is a BGE model), ``max_tokens`` (default 512), ``fp16`` (1 for half precision,
        on CUDA only), ``device`` (default: CUDA if there is any, else CPU), ``allow_download`` (1
        to fetch a missing model by its name).

        Raises:
            BadInputError: an argument is unknown, missing or out of range.
        """
        only(KIND, arguments, ARGUMENTS)
        model = text(arguments, "model", "")
        if not model:
            raise BadInputError(
                "The encoder flag needs the argument model, a folder or a name.",
                hint="For example: model = 'BAAI/bge-m3'.",
            )
        return cls(
            model=model,
            family=choice(arguments, "family", "", ("", *FAMILIES)) or family_of(named(model)),
            tokens=number(arguments, "max_tokens", 512, least=8, most=8192),
            half=bool(number(arguments, "fp16", 0, least=0, most=1)),
            device=text(arguments, "device", ""),
            download=bool(number(arguments, "allow_download", 0, least=0, most=1)),
        )


def named(model: str) -> str:
    """Return the last part of a model's name or folder."""
    return model.rstrip("/").rpartition("/")[2]


class FlagModel:
    """Runs one text a pass; callers take turns.

    Attributes:
        settings: what it was loaded with.
        folder: where its files lie.
        name: model and precision, for an encoder id.
        family: how it pools and asks.
    """

    def __init__(self, settings: FlagSettings, threads: int) -> None:
        self.settings = settings
        self.family = FAMILIES[settings.family]
        self.folder = local_folder(settings.model, download=settings.download)
        self._device = device_for(settings.device, "the encoder", threads)
        half = half_on(self._device, settings.model, wanted=settings.half)
        self.name = f"{named(settings.model)}-{'fp16' if half else 'fp32'}"
        self._lock = threading.Lock()
        self._model = _loaded(self.folder, self.family, half=half, device=self._device)
        tokenizer = self._model.tokenizer
        self._unweighed = {
            getattr(tokenizer, f"{part}_token_id") for part in ("cls", "eos", "pad", "unk")
        }
        self._weighs = False
        self._recent: OrderedDict[str, SparseVector] = OrderedDict()

    @property
    def vocabulary(self) -> int:
        """Number of tokens of the model."""
        return int(self._model.model.vocab_size)

    def weigh(self) -> None:
        """Let every pass give the tokens' weights too, and keep those of the last passes."""
        self._weighs = True

    def vectors(self, texts: Sequence[str], *, is_query: bool) -> NDArray[np.float32]:
        """Return (n, dim) rows as the model gives them, of any length above 0.

        Raises:
            EncoderError: the model failed.
        """
        rows = [self._pass(self._asked(one, is_query=is_query))[0] for one in texts]
        return np.array(rows, dtype=np.float32)

    def weights(self, texts: Sequence[str], *, is_query: bool) -> list[SparseVector]:
        """Return the weighted tokens; those of a text that was just run cost nothing.

        Only after ``weigh``.

        Raises:
            EncoderError: the model failed.
        """
        asked = [self._asked(one, is_query=is_query) for one in texts]
        return [self._recent.get(one) or self._pass(one)[1] for one in asked]

    def _asked(self, one: str, *, is_query: bool) -> str:
        clean = readable(one, LIMIT)
        return f"{self.family.query_instruction}{clean}" if is_query else clean

    def _pass(self, clean: str) -> tuple[NDArray[np.float32], SparseVector]:
        """Run one text; FlagEmbedding's own ``encode`` would run every text twice."""
        try:
            with self._lock, import_module("torch").inference_mode():
                inputs = self._model.tokenizer(
                    [clean],
                    truncation=True,
                    max_length=self.settings.tokens,
                    return_tensors="pt",
                ).to(self._device)
                row, weights = self._outputs(inputs)
                tokens = inputs["input_ids"][0].tolist()
        except (RuntimeError, ValueError, IndexError) as error:
            raise EncoderError(
                f"The model {self.name} failed on a text of {len(clean)} characters: {error}"
            ) from error
        best: dict[int, float] = {}
        for token, weight in zip(tokens, weights, strict=False):
            if token not in self._unweighed:
                best[token] = max(best.get(token, 0.0), weight)
        sparse = SparseVector.of(best, self.name)
        if self._weighs:
            self._remember(clean, sparse)
        return row, sparse

    def _outputs(self, inputs: Any) -> tuple[NDArray[np.float32], list[float]]:  # noqa: ANN401 - torch's own
        """Return the vector of the text, and the weight of each of its tokens if it has any."""
        model = self._model.model
        if not self.family.is_m3:
            hidden = model(**inputs, return_dict=True).last_hidden_state
            pooled = self._model.pooling(hidden, inputs["attention_mask"])
            return pooled[0].float().cpu().numpy(), []
        output = model(inputs, return_dense=True, return_sparse=self._weighs)
        weights = output["sparse_vecs"][0, :, 0].tolist() if self._weighs else []
        return output["dense_vecs"][0].float().cpu().numpy(), weights

    def _remember(self, clean: str, sparse: SparseVector) -> None:
        with self._lock:
            self._recent[clean] = sparse
            if len(self._recent) > REMEMBERED:
                self._recent.popitem(last=False)


def device_for(wanted: str, what: str, threads: int) -> str:
    """Return the torch device to run on, and set the threads of the process.

    Raises:
        MissingPartError: a package is not installed, or the device is not there.
    """
    for package in ("torch", "FlagEmbedding"):
        if find_spec(package) is None:
            raise MissingPartError(f"The package {package} is not installed.", hint=SETUP)
    import torch

    torch.set_num_threads(threads)
    with_cuda = bool(torch.cuda.is_available())
    device = wanted or ("cuda:0" if with_cuda else "cpu")
    if device.startswith("cuda") and not with_cuda:
        raise MissingPartError(
            f"There is no CUDA device here, and {what} is to run on {device}.",
            hint="Leave out the argument device, or set it to cpu.",
        )
    return device


def half_on(device: str, model: str, *, wanted: bool) -> bool:
    """Say whether half precision is used: where it is wanted and the device has it."""
    if wanted and not device.startswith("cuda"):
        _LOG.warning("No half precision on %s: %s runs in single precision.", device, model)
        return False
    return wanted


def flag_class(name: str) -> Any:  # noqa: ANN401 - FlagEmbedding has no types
    """Return a class of FlagEmbedding.

    Raises:
        MissingPartError: the package cannot be imported.
    """
    try:
        return getattr(import_module("FlagEmbedding"), name)
    except ImportError as error:
        raise MissingPartError(
            f"The package FlagEmbedding cannot be imported: {error}.", hint=f"{SETUP} --upgrade"
        ) from error


def load_failures() -> tuple[type[Exception], ...]:
    """Return what transformers raises for a model that is damaged or incomplete."""
    damaged: type[Exception] = import_module("safetensors").SafetensorError
    # What torch raises for a file of its older kind that is none.
    foreign: type[Exception] = import_module("torch.serialization").pickle.UnpicklingError
    return OSError, EOFError, ValueError, KeyError, RuntimeError, damaged, foreign


def unloadable(folder: Path, error: Exception, kind: type[WorldError] = EncoderError) -> WorldError:
    """Return the error, of this kind, for a model that cannot be loaded."""
    return kind(
        f"The model in {folder} cannot be loaded: {error}.",
        hint=f"Fetch it again, for example: hf download NAME --local-dir {folder}",
    )


def _loaded(folder: Path, family: Family, *, half: bool, device: str) -> Any:  # noqa: ANN401 - no types
    kind = flag_class("BGEM3FlagModel" if family.is_m3 else "FlagModel")
    try:
        loaded = kind(str(folder), use_fp16=half, devices=[device], pooling_method=family.pooling)
        loaded.model.to(device).eval()
    except load_failures() as error:
        raise unloadable(folder, error) from error
    return loaded
