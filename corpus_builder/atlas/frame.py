"""The shape of sentence frames; the frames themselves are tables in ``frames_*.py``.

Every alternative of a frame states the same facts, so that a page states all of them whichever
alternatives it drew. ``{slots}`` are facts; those with a target become links.
"""

from __future__ import annotations

from dataclasses import dataclass

Alternatives = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page: possible headings, and sentences with their alternatives."""

    headings: Alternatives
    sentences: tuple[Alternatives, ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """How pages of a kind are written.

    ``rows`` are the lines of the fact table (label, slot); ``noun`` names the kind in a phrase.
    """

    noun: str
    rows: tuple[tuple[str, str], ...]
    lead: tuple[Alternatives, ...]
    sections: tuple[Section, ...]
