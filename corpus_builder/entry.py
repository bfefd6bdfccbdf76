"""The command ``corpus-builder`` before its packages are known to be there."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``corpus_builder.cli``; where a package of the extra is missing, say so and return 2."""
    try:
        from corpus_builder import cli
    except ModuleNotFoundError as error:
        sys.stderr.write(
            f"corpus-builder: The package {error.name} is not installed. "
            "Run: pip install 'searchworld[builder,cpu]'\n"
        )
        return 2
    return cli.main(arguments)
