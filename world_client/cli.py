"""``world-client``: ask a running server from the command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from world_client.client import WorldClient
from world_client.errors import ClientError
from world_client.sync import SyncWorldClient


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0 for an answer, 1 for a failed call, 2 for wrong usage."""
    options = _parser().parse_args(arguments)
    with SyncWorldClient(WorldClient(options.url, key=options.key, deadline=30.0)) as client:
        try:
            if options.command == "search":
                print(client.search(options.query, count=options.count).model_dump_json(indent=2))
            else:
                print(client.fetch(options.address).model_dump_json(indent=2))
        except ClientError as error:
            print(f"world-client: {error.outcome}: {error}", file=sys.stderr)
            return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="world-client", description="Ask a running world server.")
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="address of the server")
    parser.add_argument("--key", default="", help="API key, if the server wants one")
    commands = parser.add_subparsers(dest="command", required=True)
    search = commands.add_parser("search", help="search the world")
    search.add_argument("query")
    search.add_argument("--count", type=int, default=10, help="hits wanted, 1 to 100")
    fetch = commands.add_parser("fetch", help="read a page of the world")
    fetch.add_argument("address", help="address of the page")
    return parser
