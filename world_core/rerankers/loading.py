"""The kinds of rerankers by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from world_core.encoders.arguments import Settings
from world_core.errors import BadInputError, RerankerError
from world_core.manifest_options import DEFAULT_TOP, MOST_RERANKED, RerankerSettings
from world_core.rerankers.base import Reranker
from world_core.rerankers.flag_reranker import FlagCross
from world_core.rerankers.tiny import TinyReranker

KINDS: Mapping[str, Callable[[Settings, int], Reranker]] = {
    "tiny": TinyReranker.load,
    "flag": FlagCross.load,
}
"""How each kind is made from its arguments and a number of threads."""


NONE = "none"


def chosen(
    named: RerankerSettings | None, choice: str = "", top: int = 0
) -> RerankerSettings | None:
    """Return which reranker serves a world: the one it names, or the operator's choice.

    Args:
        named: the world's own, ``None`` without one.
        choice: "" for the world's own, "none" for no reranker, else ``KIND`` or ``KIND:MODEL``.
        top: pages to order anew; 0 for the world's number, or 20 where it names none.

    Raises:
        BadInputError: ``top`` is not from 0 to 200.
    """
    if choice == NONE or (not choice and named is None):
        return None
    if not 0 <= top <= MOST_RERANKED:
        raise BadInputError(f"{top} pages cannot be reranked.", hint=f"Set 1 to {MOST_RERANKED}.")
    top = top or (named.top if named is not None else DEFAULT_TOP)
    if not choice and named is not None:
        return named.model_copy(update={"top": top})
    kind, _, model = choice.partition(":")
    arguments: dict[str, str | int] = {"model": model} if model else {}
    return RerankerSettings(reranker_id="", kind=kind, arguments=arguments, top=top)


def load_reranker(
    kind: str, arguments: Settings, *, threads: int = 1, expected_id: str | None = None
) -> Reranker:
    """Make the reranker of a kind; never another one instead.

    Args:
        kind: one of ``KINDS``.
        arguments: the kind's own arguments, see its module.
        threads: CPU threads for one call; ``flag`` sets it for the whole process.
        expected_id: the id a world names; ``None`` to take any.

    Raises:
        BadInputError: an unknown kind or argument.
        MissingPartError: a package or the weights are not there.
        RerankerError: the model cannot be loaded, or has another id than expected.
    """
    if kind not in KINDS:
        raise BadInputError(
            f"There is no reranker {kind!r}.", hint=f"Use one of: {', '.join(KINDS)}."
        )
    reranker = KINDS[kind](arguments, threads)
    if expected_id is not None and reranker.id != expected_id:
        raise RerankerError(
            f"The reranker here is {reranker.id}, but the world names {expected_id}.",
            hint="Install the model that the world names, or serve it with --reranker none.",
        )
    return reranker
