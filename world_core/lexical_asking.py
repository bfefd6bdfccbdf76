"""From the text of a search to what the lexical index is asked, by the settings of a world."""

from __future__ import annotations

from world_core.expansion import Expansion, unit_passages
from world_core.generation import Generation
from world_core.types import LexicalQuery
from world_core.views import View
from world_core.weighing import Weighing


class LexicalAsking:
    """Makes lexical queries for one generation; safe under threads."""

    def __init__(self, generation: Generation) -> None:
        settings = generation.manifest.lexical
        self._analyzer = generation.analyzer
        self._unit = settings.unit
        self._weigh = Weighing(generation.holder_counts, settings.long_query)
        self._expansion: Expansion | None = None
        if settings.expansion is not None:
            self._expansion = Expansion(
                generation.lexical,
                generation.passages,
                unit_passages(settings.unit, generation.first_passage, generation.passages.count),
                generation.analyzer,
                settings.expansion,
            )

    def query(self, text: str, view: View) -> LexicalQuery:
        """Return the query of a text inside a view: analysed, weighed, and grown if so set.

        Raises:
            IndexFailedError: the index failed.
            DamagedFileError: a passage is damaged.
        """
        query = self._analyzer.query(text, self._weigh)
        if self._expansion is None or query.is_empty:
            return query
        return self._expansion.grown(query, view.allowed(self._unit))
