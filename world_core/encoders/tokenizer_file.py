"""Reads a tokenizer.json, whatever its model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from world_core.errors import EncoderError


def read_tokenizer(path: Path, hint: str) -> Any:  # noqa: ANN401 - tokenizers has no types
    """Return the tokenizer of a file, without the padding and the limit that it may ask for.

    Raises:
        EncoderError: it is no such file; ``hint`` is the next command.
    """
    import tokenizers

    try:
        tokenizer = tokenizers.Tokenizer.from_str(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise _unreadable(path, error, hint) from error
    except Exception as error:
        # tokenizers raises Exception itself, so there is no narrower class to name.
        if type(error) is not Exception:
            raise
        raise _unreadable(path, error, hint) from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _unreadable(path: Path, error: Exception, hint: str) -> EncoderError:
    return EncoderError(f"The model file {path} cannot be loaded: {error}.", hint=hint)
