"""The kinds of learned sparse encoders by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from world_core.encoders.arguments import Settings
from world_core.encoders.flag_sparse import FlagSparse
from world_core.encoders.sparse import SparseEncoder
from world_core.encoders.tiny_sparse import TinySparse
from world_core.errors import BadInputError, EncoderError

KINDS: Mapping[str, Callable[[Settings, int, object], SparseEncoder]] = {
    "tiny": lambda arguments, threads, _beside: TinySparse.load(arguments, threads),
    "flag": FlagSparse.load,
}
"""How each kind is made from its arguments, a number of threads and the encoder beside it."""


def load_sparse(
    kind: str,
    arguments: Settings,
    *,
    threads: int = 1,
    expected_id: str | None = None,
    beside: object = None,
) -> SparseEncoder:
    """Make the sparse encoder of a kind; never another one instead.

    Args:
        kind: one of ``KINDS``.
        arguments: the kind's own arguments, see its module.
        threads: CPU threads for one call.
        expected_id: the id a world was built with; ``None`` to take any.
        beside: the dense encoder, whose model is shared when it is the same one.

    Raises:
        BadInputError: an unknown kind or argument.
        MissingPartError: a package or the weights are not there.
        EncoderError: the model cannot be loaded, or has another id than expected.
    """
    if kind not in KINDS:
        raise BadInputError(
            f"There is no sparse encoder {kind!r}.", hint=f"Use one of: {', '.join(KINDS)}."
        )
    encoder = KINDS[kind](arguments, threads, beside)
    if expected_id is not None and encoder.id != expected_id:
        raise EncoderError(
            f"The sparse encoder here is {encoder.id}, but the world was built with {expected_id}.",
            hint="Install the model that the world was built with, or build the world again.",
        )
    return encoder
