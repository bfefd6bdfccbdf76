"""Models in the layout of the Hugging Face hub: their folder on this machine, and its files."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from world_core.encoders.weights import ModelFile
from world_core.errors import MissingPartError

CONFIGURATION = ("config.json", "tokenizer*.json", "special_tokens_map.json", "vocab.txt")
PIECES = ("sentencepiece*.model", "spiece.model")
WEIGHTS = ("model*.safetensors", "pytorch_model*.bin")
"""Patterns of weight files; the first that matches is what transformers loads."""
HEADS = ("sparse_linear.pt", "colbert_linear.pt")
"""What BGE-M3 has beside its weights; FlagEmbedding takes both or makes both up."""


def local_folder(model: str, *, download: bool = False) -> Path:
    """Return the folder of a model: the one named, or its copy in the local cache.

    What looks like a path (starts with ``/``, ``.`` or ``~``, or is a folder) is never looked up as
    a name.

    Args:
        model: a folder, or a name such as ``BAAI/bge-m3``.
        download: fetch a named model that is not in the cache.

    Raises:
        MissingPartError: there is no such folder, or no such model in the cache.
    """
    path = Path(model).expanduser()
    if path.is_dir():
        return path
    if model.startswith(("/", ".", "~")):
        raise MissingPartError(
            f"There is no folder {model}.",
            hint=f"Put the model there, for example: hf download BAAI/bge-m3 --local-dir {model}",
        )
    fetch = f"hf download {model}"
    if find_spec("huggingface_hub") is None:
        raise MissingPartError(
            f"The model {model} cannot be looked up by name: huggingface_hub is not installed.",
            hint="pip install 'searchworld[dense]', or give the model's folder instead.",
        )
    from huggingface_hub import snapshot_download

    wanted = [*CONFIGURATION, *PIECES, *WEIGHTS, *HEADS]
    try:
        return Path(snapshot_download(model, local_files_only=not download, allow_patterns=wanted))
    except (OSError, ValueError) as error:
        raise MissingPartError(
            f"The model {model} is not on this machine ({str(error).splitlines()[0]}).",
            hint=f"{fetch}, or set the argument allow_download to 1.",
        ) from error


def model_files(folder: Path) -> list[ModelFile]:
    """Return configuration, tokenizer and weights with their digests, weights last.

    Raises:
        MissingPartError: the folder has no configuration or no weights.
    """
    rest = [path for pattern in (*CONFIGURATION, *PIECES) for path in sorted(folder.glob(pattern))]
    weights = next(filter(None, (sorted(folder.glob(pattern)) for pattern in WEIGHTS)), [])
    for found, what in ((folder / "config.json" in rest, "config.json"), (weights, WEIGHTS[0])):
        if not found:
            raise MissingPartError(
                f"The folder {folder} holds no {what}, so it is no complete model.",
                hint=_fetch_again(folder),
            )
    return [ModelFile.at(path, _fetch_again(folder)) for path in (*rest, *weights)]


def head_files(folder: Path) -> list[ModelFile]:
    """Return the heads of BGE-M3 with their digests.

    Raises:
        MissingPartError: one is not there; without both the weights would be made up at random.
    """
    return [ModelFile.at(folder / name, _fetch_again(folder)) for name in HEADS]


def _fetch_again(folder: Path) -> str:
    return f"Fetch the model again, for example: hf download NAME --local-dir {folder}"
