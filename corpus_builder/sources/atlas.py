"""The atlas as a source: a seeded, fictional encyclopaedia over several sites."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from corpus_builder.atlas import captures, entities, questions, toy
from corpus_builder.atlas.cast import BLOCK
from corpus_builder.atlas.pages import BRIEF, FULL, Style
from corpus_builder.atlas.questions import Question
from corpus_builder.atlas.world import Atlas
from corpus_builder.capture import Capture, Loss, Shard
from corpus_builder.errors import BadSourceError

KIND = "atlas"
CLOCK = entities.CLOCK
"""The world clock to build an atlas with: 2026-06-01."""
MAX_SIZE = 30_000
"""Pages for which the lexicon has a name of their own."""
_SHARD_BLOCKS = 5


@dataclass(frozen=True, slots=True)
class Preset:
    """A ready-made atlas: its size, and how long its pages are (None for the toy)."""

    size: int
    style: Style | None


PRESETS = {
    "atlas": Preset(2_000, FULL),
    "atlas-demo": Preset(400, BRIEF),
    "atlas-toy": Preset(toy.TOY_PAGES, None),
}


class AtlasSource:
    """Pages of the atlas with everything a crawl meets around them.

    Args:
        size: number of pages; None for the preset's. Versions, redirects, copies and dead links
            come on top. The first pages of a larger world are those of a smaller one.
        seed: another seed is another world, with other names and facts.
        preset: ``atlas`` (also when None), ``atlas-demo`` or ``atlas-toy``.

    Raises:
        BadSourceError: an unknown preset, or a size the preset cannot have.
    """

    def __init__(self, size: int | None = None, seed: int = 1, preset: str | None = None) -> None:
        self.preset = preset or "atlas"
        if self.preset not in PRESETS:
            raise BadSourceError(
                f"There is no atlas preset {self.preset!r}.",
                hint=f"Use one of: {', '.join(PRESETS)}.",
            )
        chosen = PRESETS[self.preset]
        self.size = chosen.size if size is None else size
        self.seed = seed
        self.style = chosen.style
        largest = toy.TOY_PAGES if chosen.style is None else MAX_SIZE
        if not 1 <= self.size <= largest:
            raise BadSourceError(
                f"An atlas of preset {self.preset!r} cannot have {self.size} pages.",
                hint=f"Give a size from 1 to {largest}.",
            )

    def shards(self) -> list[Shard]:
        """Return slices of whole blocks, each with all that makes it: preset, seed, size, place."""
        step = BLOCK * _SHARD_BLOCKS
        return [
            Shard(
                KIND,
                Path(KIND),
                {
                    "preset": self.preset,
                    "seed": str(self.seed),
                    "size": str(self.size),
                    "start": str(start),
                    "end": str(min(start + step, self.size)),
                },
            )
            for start in range(0, self.size, step)
        ]

    def read(self, shard: Shard) -> Iterator[Capture | Loss]:
        """Yield the slice's captures, by what the shard says alone.

        Raises:
            BadSourceError: the shard is not one of an atlas.
        """
        source, start, end = _parsed(shard)
        if source.style is None:
            yield from toy.toy_captures(source.seed, start, end)
            return
        world = Atlas(source.seed)
        for first in range(start, end, BLOCK):
            block = world.block(first // BLOCK)
            yield from captures.captures(block, source.style, min(BLOCK, end - first))

    def questions(self) -> Iterator[Question]:
        """Yield the questions that the world's pages answer."""
        if self.style is None:
            pages = questions.toy_questions(self.seed)
            return (question for question, _ in zip(pages, range(self.size), strict=False))
        return questions.atlas_questions(Atlas(self.seed), self.size)


def _parsed(shard: Shard) -> tuple[AtlasSource, int, int]:
    try:
        numbers = {name: int(shard.arguments[name]) for name in ("seed", "size", "start", "end")}
        preset = shard.arguments["preset"]
    except (KeyError, ValueError) as error:
        raise BadSourceError(
            f"The shard {shard.arguments!r} is not one of an atlas: {error}.",
            hint="Build the world again from its recipe.",
        ) from error
    source = AtlasSource(numbers["size"], numbers["seed"], preset)
    return source, numbers["start"], numbers["end"]
