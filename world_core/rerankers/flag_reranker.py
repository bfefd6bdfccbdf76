"""Cross encoders of the BGE family through FlagEmbedding and torch, by local folder or by name.

torch gives a pair slightly different bits in different batches, so every pair is a forward pass of
its own. Nothing is downloaded unless an argument says so, and no code that lies beside the weights
is ever run.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import numpy as np

from world_core.encoders.arguments import Settings, number, only, text
from world_core.encoders.flag_model import (
    LIMIT,
    device_for,
    flag_class,
    half_on,
    load_failures,
    named,
    unloadable,
)
from world_core.encoders.hub import local_folder, model_files
from world_core.encoders.texts import readable
from world_core.encoders.weights import Recipe
from world_core.errors import BadInputError, RerankerError
from world_core.types import Numbers, as_numbers

KIND = "flag"
ARGUMENTS = ("model", "max_tokens", "fp16", "device", "allow_download")
STEPS = 1000
"""Whole numbers a score of 1.0 is worth. The model's raw scores lie between about -12 and 12."""


class FlagCross:
    """A cross encoder on CPU or GPU; callers take turns, one pair at a time."""

    def __init__(
        self, folder: Path, *, name: str, tokens: int, half: bool, device: str, threads: int
    ) -> None:
        files = {file.path.name: file.sha256 for file in model_files(folder)}
        self._device = device_for(device, "the reranker", threads)
        half = half_on(self._device, name, wanted=half)
        self._tokens = tokens
        self._lock = threading.Lock()
        self._recipe = Recipe(
            kind=f"{KIND}-reranker",
            model=f"{name}-{'fp16' if half else 'fp32'}",
            files=files,
            pooling=f"logit x {STEPS}",
            limit=f"{tokens} tokens",
        )
        self._model = _loaded(folder, half=half, device=self._device)
        # A first pair finds out now, and not at the first search, whether the device can run it.
        self._logit("a", "a")

    @classmethod
    def load(cls, arguments: Settings, threads: int) -> Self:
        """Open a model.

        Arguments: ``model`` (a folder, or a name such as ``BAAI/bge-reranker-v2-m3`` that is looked
        up in the local Hugging Face cache), ``max_tokens`` of query and passage together (default
        512), ``fp16`` (1 for half precision, on CUDA only), ``device`` (default: CUDA if there is
        any, else CPU), ``allow_download`` (1 to fetch a missing model by its name).

        Raises:
            BadInputError: an argument is unknown, missing or out of range.
            MissingPartError: the package, the folder or the weights are not there.
            RerankerError: the model cannot be loaded, or is no reranker.
        """
        only(f"{KIND} (reranker)", arguments, ARGUMENTS)
        model = text(arguments, "model", "")
        if not model:
            raise BadInputError(
                "The reranker flag needs the argument model, a folder or a name.",
                hint="For example: model = 'BAAI/bge-reranker-v2-m3'.",
            )
        tokens = number(arguments, "max_tokens", 512, least=16, most=8192)
        half = number(arguments, "fp16", 0, least=0, most=1)
        download = number(arguments, "allow_download", 0, least=0, most=1)
        return cls(
            local_folder(model, download=bool(download)),
            name=named(model),
            tokens=tokens,
            half=bool(half),
            device=text(arguments, "device", ""),
            threads=threads,
        )

    @property
    def id(self) -> str:
        """Names model, precision, digests, token limit and the step of the scores."""
        return self._recipe.id

    def files(self) -> Mapping[str, str]:
        """Return the sha256 of configuration, tokenizer and weights by file name."""
        return self._recipe.files

    def score(self, query: str, passages: Sequence[str]) -> Numbers:
        """Return the model's raw score of each pair in thousandths, shape (n,) int64.

        The query keeps at most three quarters of the tokens; the passage is cut to the rest.

        Raises:
            RerankerError: the model failed.
        """
        asked = readable(query, LIMIT)
        logits = [self._logit(asked, readable(passage, LIMIT)) for passage in passages]
        wrong = [logit for logit in logits if not np.isfinite(logit)]
        if wrong:
            raise RerankerError(
                f"The reranker {self._recipe.model} gave a pair the score {wrong[0]}.",
                hint="Check the model's files; they may be damaged.",
            )
        return as_numbers([round(logit * STEPS) for logit in logits])

    def _logit(self, query: str, passage: str) -> float:
        """Run one pair; FlagEmbedding's own ``compute_score`` would run it twice."""
        tokenizer = self._model.tokenizer
        try:
            with self._lock, import_module("torch").inference_mode():
                pair = tokenizer(
                    self._shortened(query),
                    passage,
                    truncation="only_second",
                    max_length=self._tokens,
                    return_tensors="pt",
                ).to(self._device)
                return float(self._model.model(**pair, return_dict=True).logits[0, 0])
        except (RuntimeError, ValueError, IndexError) as error:
            raise RerankerError(
                f"The reranker {self._recipe.model} failed on a passage of {len(passage)} "
                f"characters: {error}"
            ) from error

    def _shortened(self, query: str) -> str:
        """Return the query without what comes after three quarters of the tokens of a pair."""
        most = self._tokens * 3 // 4
        if len(query) <= most:  # no token is shorter than a character
            return query
        places = self._model.tokenizer(
            query,
            add_special_tokens=False,
            truncation=True,
            max_length=most,
            return_offsets_mapping=True,
        )["offset_mapping"]
        return query[: places[-1][1]] if places else ""


def _loaded(folder: Path, *, half: bool, device: str) -> Any:  # noqa: ANN401 - no types
    kind = flag_class("FlagReranker")
    try:
        loaded = kind(str(folder), use_fp16=half, devices=[device])
        model = loaded.model.half() if half else loaded.model
        model.to(device).eval()
    except load_failures() as error:
        raise unloadable(folder, error, RerankerError) from error
    labels = int(loaded.model.config.num_labels)
    if labels != 1:
        raise RerankerError(
            f"The model in {folder} gives a pair {labels} numbers, so it is no reranker.",
            hint="Use one such as BAAI/bge-reranker-v2-m3.",
        )
    return loaded
