"""The packages that reading pages may need, asked for before a build begins."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence

from world_core.errors import MissingPartError

PACKAGES = (
    *("brotli", "htmldate", "lxml", "lxml_html_clean", "lz4", "py3langid", "resiliparse"),
    "trafilatura",
)
"""Packages of the extra ``builder``, imported only where a page needs them."""


def check_packages(packages: Sequence[str] = PACKAGES) -> None:
    """Refuse to begin a build that a page might stop much later.

    Raises:
        MissingPartError: a package is not installed.
    """
    for package in packages:
        if importlib.util.find_spec(package) is None:
            raise MissingPartError(
                f"The package {package} is not installed.",
                hint="Run: pip install 'searchworld[builder]'",
            )
