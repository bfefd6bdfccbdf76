"""``world-server``: serve worlds, look into them, set up what they need."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import httpx

from world_core import manifest as manifests
from world_core.errors import WorldError
from world_server import demo, installing, logs, planning, room
from world_server.app import create_app
from world_server.pointer import WorldFolder
from world_server.serving import address_of, bind, listen, serve_here, serve_workers
from world_server.settings import Settings, load, table
from world_server.worlds import open_worlds, opener_for

EXIT_FAILED = 1
EXIT_UNUSABLE = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Returns:
        0 when all went well, 1 when a request of ``get`` failed, 2 when something is missing or
        unusable: then one sentence on standard error says what, and what to do next.
    """
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except WorldError as error:
        print(f"world-server: {error}", file=sys.stderr)
        return EXIT_UNUSABLE
    except KeyboardInterrupt:
        return 128 + 2


def _serve(options: argparse.Namespace) -> int:
    return _serve_with(_settings(options))


def _demo(options: argparse.Namespace) -> int:
    settings = _settings(options)
    folder = Path(options.folder) if options.folder else demo.default_folder(os.environ)
    settings = dataclasses.replace(settings, worlds=(str(folder),))
    bind(settings).close()  # a port in use is said before anything is built
    if demo.ensure(folder):
        print(f"Built the demo world in {folder}", flush=True)
    return _serve_with(settings)


def _serve_with(settings: Settings) -> int:
    logs.configure(settings.log_level)
    with bind(settings) as bound:
        settings = dataclasses.replace(settings, port=bound.getsockname()[1])
        room.check(settings)
        if settings.workers > 1 or settings.has_engine_process:
            print(f"Starting {settings.workers} processes on {address_of(bound)}", flush=True)
            return serve_workers(settings, bound)
        worlds = open_worlds(settings.worlds, opener_for(settings, verify=settings.verify))
        names = ", ".join(world.manifest.name for world in worlds.opened)
        print(f"Serving {names} on {listen(bound)}", flush=True)
        return serve_here(worlds, settings, bound)


def _get(options: argparse.Namespace) -> int:
    logs.configure("error")
    settings = dataclasses.replace(_settings(options), worlds=(options.world,))
    worlds = open_worlds(settings.worlds, opener_for(settings, verify=settings.verify))
    app = create_app(worlds, settings)
    path = options.path if options.path.startswith("/") else f"/{options.path}"

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://get.invalid") as client:
            try:
                if options.data is None:
                    return await client.get(path)
                return await client.post(path, content=options.data.encode())
            finally:
                await worlds.close()

    response = asyncio.run(ask())
    sys.stdout.write(response.text.rstrip("\n") + "\n")
    return EXIT_FAILED if response.is_error else 0


def _check(options: argparse.Namespace) -> int:
    logs.configure("error")
    folder = WorldFolder(Path(options.world)).target()
    manifest = manifests.read(folder)
    damages = list(manifests.damages(folder, manifest))
    for damage in damages:
        print(damage.sentence, file=sys.stderr)
    if damages:
        print(f"world-server: {len(damages)} damaged files. {damages[0].hint}", file=sys.stderr)
        return EXIT_UNUSABLE
    # The files are checked; what is left is that they open and answer as they must.
    world = opener_for(_settings(options), verify=False)(folder)
    asyncio.run(world.close())
    counts = manifest.counts
    print(
        f"{manifest.name}@{manifest.version} {manifest.world_id}: {counts.pages} pages, "
        f"{counts.versions} versions, {counts.passages} passages, "
        f"{len(manifest.canaries)} canary queries answered; good"
    )
    return 0


def _plan(options: argparse.Namespace) -> int:
    settings = _settings(options)
    fits, text = planning.describe(settings, as_json=options.json)
    print(text)
    return 0 if fits else EXIT_UNUSABLE


def _setup(options: argparse.Namespace) -> int:
    print(installing.PARTS[options.part]())
    return 0


def _show_settings(options: argparse.Namespace) -> int:
    settings = _settings(options)
    for row in table():
        value = getattr(settings, row.name)
        shown = ",".join(value) if isinstance(value, tuple) else str(value)
        if not row.flag and shown:
            shown = "(set)"
        print(f"{row.name} = {shown}\n    {row.meaning} [{row.environment}]")
    return 0


def _settings(options: argparse.Namespace) -> Settings:
    flags = {name: value for name, value in vars(options).items() if value not in (None, [])}
    config = Path(options.config) if getattr(options, "config", None) else None
    return load(flags, os.environ, config)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="world-server", description="Serve worlds through the APIs that search agents speak."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser("serve", help="serve worlds")
    serve.add_argument("worlds", nargs="*", metavar="WORLD", help="folder of a world")
    _add_settings(serve, _serve)
    shown = commands.add_parser("demo", help="build the demo world if it is not there, serve it")
    shown.add_argument("--folder", help="folder of the demo world")
    _add_settings(shown, _demo)
    get = commands.add_parser("get", help="answer one request without a network")
    get.add_argument("world", metavar="WORLD", help="folder of a world")
    get.add_argument("path", metavar="PATH", help="such as '/search?q=x', or an address to read")
    get.add_argument("--data", help="body to POST; without it the request is a GET")
    _add_settings(get, _get)
    check = commands.add_parser("check", help="check the files of a world and its canary queries")
    check.add_argument("world", metavar="WORLD", help="folder of a world")
    _add_settings(check, _check)
    planned = commands.add_parser("plan", help="say what serving worlds takes, and if it is there")
    planned.add_argument("worlds", nargs="*", metavar="WORLD", help="folder of a world")
    planned.add_argument("--json", action="store_true", help="print JSON")
    _add_settings(planned, _plan)
    install = commands.add_parser("setup", help="install a part that is too large to come along")
    install.add_argument("part", choices=sorted(installing.PARTS))
    install.set_defaults(run=_setup)
    settings = commands.add_parser("settings", help="print every setting and its value")
    settings.add_argument("worlds", nargs="*", metavar="WORLD", help="folder of a world")
    _add_settings(settings, _show_settings)
    return parser


def _add_settings(parser: argparse.ArgumentParser, run: object) -> None:
    """Add the flags of the settings table, so that the two cannot differ."""
    kinds = {"int": int, "float": float, "str": str}
    group = parser.add_argument_group("settings")
    group.add_argument("--config", help="TOML file with settings")
    for row in table():
        if not row.flag.startswith("--"):
            continue
        text = f"{row.meaning} (default: {row.default or 'empty'})".replace("%", "%%")
        if row.kind == "bool":
            group.add_argument(
                row.flag, action=argparse.BooleanOptionalAction, default=None, help=text
            )
        elif row.kind == "list":
            group.add_argument(row.flag, action="append", metavar="TEXT", help=text)
        else:
            group.add_argument(row.flag, type=kinds[row.kind], metavar=row.kind.upper(), help=text)
    parser.set_defaults(run=run)


if __name__ == "__main__":
    sys.exit(main())
