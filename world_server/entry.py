"""The command ``world-server`` before its packages are known to be there."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``world_server.cli``; where a package of the extra is missing, say so and return 2."""
    try:
        from world_server import cli
    except ModuleNotFoundError as error:
        sys.stderr.write(
            f"world-server: The package {error.name} is not installed. "
            "Run: pip install 'searchworld[server,cpu]'\n"
        )
        return 2
    return cli.main(arguments)
