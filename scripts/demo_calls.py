"""Waits for the demo server, asks it over the Serper and Jina routes, prints what to do next."""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
import time
import urllib.error
import urllib.request

PATIENCE = 600.0


def main() -> int:
    """Run the chosen command; return 0 when all is well."""
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("free", "ask"):
        commands.add_parser(name).add_argument("port")
    asked = commands.choices["ask"]
    asked.add_argument("--server-pid", type=int, required=True)
    asked.add_argument("--once", choices=("yes", "no"), required=True)
    options = parser.parse_args()
    try:
        return is_free(options.port) if options.command == "free" else ask(options)
    except KeyboardInterrupt:
        print("\nInterrupted; the same command goes on from here.", file=sys.stderr)
        return 130


def is_free(port: str) -> int:
    """Return 0 if a server can listen on the port, else 2 after a sentence.

    Asked before a server is started: one that listens there already would be taken for it.
    """
    if not port.isascii() or not port.isdigit() or not 0 < int(port) < 1 << 16:
        print(f"--port needs a number from 1 to 65535, not {port!r}.", file=sys.stderr)
        return 2
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", int(port)))
        except OSError as error:
            print(f"Cannot listen on port {port} ({error.strerror}).", file=sys.stderr)
            print(f"Try: scripts/demo --port {int(port) % 65535 + 1}", file=sys.stderr)
            return 2
    return 0


def ask(options: argparse.Namespace) -> int:
    """Ask the server once over each route and print what to do next; return 0 on success."""
    url = f"http://127.0.0.1:{options.port}"
    if not wait_until_ready(url, options.server_pid):
        return 1
    query = example_query(url)
    found = search(url, query)
    hits = found["organic"]
    print(f"\nSearch (Serper): {query}")
    for hit in hits[:3]:
        print(f"  {hit['position']}. {hit['title']}\n     {hit['link']}\n     {hit['snippet']}")
    if not hits:
        print("  no hits: the demo world does not answer its own canary", file=sys.stderr)
        return 1
    page = read(url, hits[0]["link"])
    print(f"\nFetch (Jina Reader): {hits[0]['link']}")
    print("\n".join(f"  {line}" for line in page.splitlines()[:12]))
    print(next_steps(url))
    if options.once == "yes":
        print(f"The server ends now. To serve on: scripts/demo --port {options.port}")
    return 0


def wait_until_ready(url: str, pid: int) -> bool:
    """Wait until the server says it is ready; False when it ends or takes too long."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{url}/ready", timeout=10):  # noqa: S310 - own server
                return True
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            if not runs(pid):
                print("The server ended before it was ready.", file=sys.stderr)
                return False
            time.sleep(0.2)
    print(f"The server was not ready within {PATIENCE:.0f} s.", file=sys.stderr)
    return False


def runs(pid: int) -> bool:
    """Return whether the process exists and is no zombie."""
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:  # noqa: PTH123 - one line of /proc
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def example_query(url: str) -> str:
    """Return the first canary query of the served world."""
    with urllib.request.urlopen(f"{url}/info", timeout=10) as answer:  # noqa: S310 - own server
        worlds = json.load(answer)["worlds"]
    return str(worlds[0]["canaries"][0])


def search(url: str, query: str) -> dict[str, list[dict[str, str]]]:
    """Ask the Serper route as a stock client does."""
    request = urllib.request.Request(  # noqa: S310 - own server
        f"{url}/search",
        data=json.dumps({"q": query, "num": 5}).encode(),
        headers={"X-API-KEY": "any", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - own server
        found: dict[str, list[dict[str, str]]] = json.load(answer)
        return found


def read(url: str, page: str) -> str:
    """Ask the Jina Reader route as a stock client does."""
    with urllib.request.urlopen(f"{url}/{page}", timeout=30) as answer:  # noqa: S310 - own server
        return str(answer.read().decode())


def next_steps(url: str) -> str:
    """Return the lines with which an existing agent is pointed at the server."""
    return f"""
Look at it:        {url}/
Serper clients:    SERPER_BASE_URL={url}          any X-API-KEY is accepted on loopback
Jina Reader:       JINA_BASE_URL={url}            GET {url}/https://...
Qwen-Agent:        SERPER_URL={url}/search
Python:            from world_client import SyncWorldClient
                   SyncWorldClient("{url}").search("...")
"""


if __name__ == "__main__":
    sys.exit(main())
