"""Arguments of an encoder as a manifest or a recipe holds them, read with their types checked."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from world_core.errors import BadInputError

Settings = Mapping[str, str | int]


def only(kind: str, arguments: Settings, names: Collection[str]) -> None:
    """Refuse arguments that the kind does not have.

    Raises:
        BadInputError: naming the first unknown argument and the known ones.
    """
    for name in sorted(set(arguments) - set(names)):
        known = ", ".join(sorted(names)) or "none"
        raise BadInputError(
            f"The encoder {kind} has no argument {name!r} (given: {arguments[name]!r}).",
            hint=f"Arguments it has: {known}.",
        )


def text(arguments: Settings, name: str, default: str) -> str:
    """Return the text argument, or the default when it is not given.

    Raises:
        BadInputError: it is not text.
    """
    value = arguments.get(name, default)
    if not isinstance(value, str):
        raise BadInputError(f"The encoder argument {name} is {value!r}, not text.")
    return value


def number(arguments: Settings, name: str, default: int, *, least: int, most: int) -> int:
    """Return the whole number, or the default when it is not given.

    Raises:
        BadInputError: it is no whole number from ``least`` to ``most``.
    """
    value = arguments.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise BadInputError(
            f"The encoder argument {name} is {value!r}, not a whole number from {least} to {most}."
        )
    return value


def choice(arguments: Settings, name: str, default: str, among: Collection[str]) -> str:
    """Return the text argument if it is one of a few, or the default when it is not given.

    Raises:
        BadInputError: it is none of them.
    """
    value = text(arguments, name, default)
    if value not in among:
        raise BadInputError(
            f"The encoder argument {name} is {value!r}.", hint=f"Use one of: {', '.join(among)}."
        )
    return value
