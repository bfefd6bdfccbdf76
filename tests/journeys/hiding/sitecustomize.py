"""Lets a process run as if packages were not installed: ``SEARCHWORLD_TEST_HIDDEN`` names them.

Python imports this file by its name when its folder stands in ``PYTHONPATH``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import DistributionFinder, PathDistribution
from types import ModuleType

HIDDEN = frozenset(os.environ.get("SEARCHWORLD_TEST_HIDDEN", "").split())


class Hiding(PathFinder):
    """Finds all but the hidden modules and distributions."""

    @classmethod
    def find_spec(
        cls,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] in HIDDEN:
            return None
        return super().find_spec(fullname, path, target)

    @classmethod
    def find_distributions(
        cls, context: DistributionFinder.Context | None = None
    ) -> Iterable[PathDistribution]:
        for found in super().find_distributions(context or DistributionFinder.Context()):
            if found.metadata["Name"] not in HIDDEN:
                yield found


sys.meta_path[:] = [Hiding if finder is PathFinder else finder for finder in sys.meta_path]
