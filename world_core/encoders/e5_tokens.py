"""The tokenizer of multilingual-e5-small, made from the token table of its weights file."""

from __future__ import annotations

import re
from typing import Any

from world_core.encoders.e5_weights import E5Pieces

SPACE = "\N{LOWER ONE EIGHTH BLOCK}"
"""What stands for the space before a word in the pieces."""

# Stands for the unknown piece in the model, so that no text can spell it: the table of spellings
# removes this control character.
_UNSPELLABLE = "\x01"
_SPACES = re.compile(" {2,}")


class E5Tokens:
    """Texts to token ids; safe to call from several threads at once.

    The ids are those of the model's own engine, with one exception: a run of characters that no
    piece covers is one unknown token, as in the model's training, where the engine makes one of
    each character.
    """

    def __init__(self, pieces: E5Pieces, limit: int) -> None:
        self._spellings = dict(pieces.spellings)
        self._start = pieces.start
        self._end = pieces.end
        self._limit = limit
        self._model = _model(pieces)

    def ids(self, text: str) -> list[int]:
        """Return the ids with the marks of start and end, at most ``limit`` of them.

        The text must be one that UTF-8 can write (see ``texts.readable``).
        """
        spelt = _SPACES.sub(" ", text.translate(self._spellings))
        content = self._model.encode(spelt, add_special_tokens=False).ids
        return [self._start, *content[: self._limit - 2], self._end]


def _model(pieces: E5Pieces) -> Any:  # noqa: ANN401 - tokenizers has no types
    from tokenizers import Tokenizer, models, pre_tokenizers

    table = list(zip(pieces.texts, pieces.scores, strict=True))
    table[pieces.unknown] = (_UNSPELLABLE, pieces.scores[pieces.unknown])
    tokenizer = Tokenizer(models.Unigram(table, unk_id=pieces.unknown, byte_fallback=False))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="always")
    return tokenizer
