"""From the inputs that a recipe or a command line names to sources."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from corpus_builder.capture import Capture, Loss, Shard, Source
from corpus_builder.errors import BadRecipeError, BadSourceError
from corpus_builder.recipe import READABLE, Argument, SourceRecipe
from corpus_builder.sources.atlas import AtlasSource
from corpus_builder.sources.debian_docs import DebianDocsSource
from corpus_builder.sources.html_folder import HtmlFolderSource
from corpus_builder.sources.jsonl import JsonlSource
from corpus_builder.sources.wacz import WaczSource
from corpus_builder.sources.warc import WarcSource
from corpus_builder.textclean import path_text
from world_core.types import Instant

ENDINGS = {
    ".warc": "warc",
    ".arc": "warc",
    ".wet": "warc",
    ".wacz": "wacz",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".html": "html",
    ".htm": "html",
}
PACKED = (".gz", ".lz4", ".zst")


@dataclass(frozen=True, slots=True)
class HtmlFileSource:
    """Single HTML files of one folder, with the addresses they would have as parts of it."""

    folder: HtmlFolderSource
    names: frozenset[str]

    def shards(self) -> list[Shard]:
        """Return the folder's shards."""
        return self.folder.shards()

    def read(self, shard: Shard) -> Iterator[Capture | Loss]:
        """Yield what the folder yields for these files."""
        return (item for item in self.folder.read(shard) if item.origin in self.names)


@dataclass(frozen=True, slots=True)
class SkippableSource:
    """An input that is left out and counted as lost, rather than refused, when it is no good."""

    source: Source
    path: Path

    def shards(self) -> list[Shard]:
        """Return the input's shards, or one that stands for the refusal."""
        try:
            return self.source.shards()
        except BadSourceError as error:
            reason = error.sentence.replace(f"{self.path} ", "").rstrip(".")
            return [Shard("refused", self.path, {"reason": reason})]

    def read(self, shard: Shard) -> Iterator[Capture | Loss]:
        """Yield what the input yields, or the one loss."""
        if shard.kind == "refused":
            yield Loss(path_text(self.path.name), 0, f"refused: {shard.arguments['reason']}")
        else:
            yield from self.source.read(shard)


class _Arguments:
    """Takes the arguments a kind knows and refuses the others."""

    def __init__(self, recipe: SourceRecipe) -> None:
        self._recipe = recipe
        self._left = dict(recipe.arguments)

    def text(self, key: str, default: str = "") -> str:
        value = self._left.pop(key, default)
        if not isinstance(value, str):
            raise self._bad(key, value, "a string")
        return value

    def number(self, key: str) -> int | None:
        value = self._left.pop(key, None)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise self._bad(key, value, "a whole number")
        return value

    def flag(self, key: str) -> bool:
        value = self._left.pop(key, False)
        if not isinstance(value, bool):
            raise self._bad(key, value, "true or false")
        return value

    def finish(self) -> None:
        for key in sorted(self._left):
            raise BadRecipeError(
                f"A source of kind {self._recipe.kind!r} has no setting {key!r}.",
                hint="See docs/recipes.md.",
            )

    def path(self) -> Path:
        if not self._recipe.path:
            raise BadRecipeError(
                f"A source of kind {self._recipe.kind!r} names no path.",
                hint='Add path = "..." to it.',
            )
        return Path(self._recipe.path)

    def _bad(self, key: str, value: Argument, what: str) -> BadRecipeError:
        return BadRecipeError(
            f"The setting {key} = {value!r} of a source of kind {self._recipe.kind!r} must be "
            f"{what}.",
            hint="See docs/recipes.md.",
        )


def open_source(recipe: SourceRecipe, default_time: Instant) -> Source:
    """Return the source a recipe names; ``default_time`` is given to captures without a date.

    Raises:
        BadRecipeError: an unknown kind or setting.
        BadSourceError: an argument the kind cannot work with.
    """
    make = _KINDS.get(recipe.kind)
    if make is None:
        raise BadRecipeError(
            f"There is no kind of source named {recipe.kind!r}.",
            hint=f"Use one of: {', '.join(sorted(_KINDS))}.",
        )
    arguments = _Arguments(recipe)
    skip = arguments.flag("skip_bad")
    source = make(recipe, arguments, default_time)
    arguments.finish()
    return SkippableSource(source, Path(recipe.path)) if skip else source


def _warc(_recipe: SourceRecipe, arguments: _Arguments, time: Instant) -> Source:
    return WarcSource([arguments.path()], time)


def _wacz(_recipe: SourceRecipe, arguments: _Arguments, time: Instant) -> Source:
    return WaczSource([arguments.path()], time, unverified=arguments.flag("unverified"))


def _jsonl(_recipe: SourceRecipe, arguments: _Arguments, time: Instant) -> Source:
    return JsonlSource([arguments.path()], time, arguments.text("url_template"))


def _html(_recipe: SourceRecipe, arguments: _Arguments, time: Instant) -> Source:
    path = arguments.path()
    names = arguments.text("files")
    base_url = arguments.text("base_url")
    folder = HtmlFolderSource(path, base_url, time, strip_ending=arguments.flag("strip_ending"))
    return HtmlFileSource(folder, frozenset(map(path_text, names.split("/")))) if names else folder


def _debian(recipe: SourceRecipe, arguments: _Arguments, _time: Instant) -> Source:
    cache = Path(recipe.path) if recipe.path else Path.home() / ".cache" / "searchworld" / "debian"
    names = arguments.text("packages").split()
    return DebianDocsSource(cache, arguments.text("set", "light"), tuple(names))


def _atlas(_recipe: SourceRecipe, arguments: _Arguments, _time: Instant) -> Source:
    seed = arguments.number("seed")
    return AtlasSource(
        arguments.number("size"), 1 if seed is None else seed, arguments.text("preset") or None
    )


_KINDS: Mapping[str, Callable[[SourceRecipe, _Arguments, Instant], Source]] = MappingProxyType(
    {
        "warc": _warc,
        "wacz": _wacz,
        "jsonl": _jsonl,
        "html": _html,
        "debian_docs": _debian,
        "atlas": _atlas,
    }
)


def recognise(
    names: Sequence[str],
    *,
    base_url: str = "",
    strip_ending: bool = False,
    url_template: str = "",
    unverified: bool = False,
) -> tuple[SourceRecipe, ...]:
    """Turn the inputs of a command line into recipe entries, by their endings.

    A folder stands for the archives and dumps in it, bad ones of which are counted and left out, or
    with a base address for its HTML files.

    Raises:
        BadRecipeError: HTML files without a base address.
        BadSourceError: an input is missing or of no known kind.
    """
    html: dict[str, Argument] = {"base_url": base_url, "strip_ending": strip_ending}
    by_kind: dict[str, dict[str, Argument]] = {
        "warc": {},
        "wacz": {"unverified": True} if unverified else {},
        "jsonl": {"url_template": url_template} if url_template else {},
        "html": html,
    }
    entries: list[SourceRecipe] = []
    pages: dict[Path, list[str]] = {}
    for name in names:
        path = Path(name)
        if path.is_dir() and base_url:
            entries.append(SourceRecipe("html", name, path.name, html))
            continue
        for file in _files(path):
            kind = kind_of(file)
            if kind == "html":
                pages.setdefault(file.parent, []).append(file.name)
            else:
                arguments = dict(by_kind[kind])
                if path.is_dir():
                    arguments["skip_bad"] = True
                entries.append(SourceRecipe(kind, str(file), file.name, arguments))
    for folder, files in pages.items():
        if not base_url:
            raise BadRecipeError(
                f"{folder / files[0]} is an HTML file, whose address must be told.",
                hint="Give --base-url https://site.example/.",
            )
        arguments = {**html, "files": "/".join(sorted(files))}
        entries.append(SourceRecipe("html", str(folder), folder.name, arguments))
    return tuple(entries)


def kind_of(path: Path) -> str:
    """Return the kind of source that reads a file, by its ending.

    Raises:
        BadSourceError: the ending says nothing.
    """
    name = path.name.lower()
    for packed in PACKED:
        name = name.removesuffix(packed)
    kind = ENDINGS.get(Path(name).suffix)
    if kind is None:
        raise BadSourceError(f"{path} is of no known kind.", hint=f"Give {READABLE}.")
    return kind


def _files(path: Path) -> list[Path]:
    """Return the path, or the archives and dumps in a folder."""
    if not path.exists():
        raise BadSourceError(f"{path} does not exist.", hint=f"Give {READABLE}.")
    if not path.is_dir():
        return [path]
    found = [file for file in sorted(path.rglob("*")) if file.is_file() and _is_dump(file)]
    if not found:
        raise BadSourceError(
            f"The folder {path} holds no archive and no dump.",
            hint="For a folder of HTML files give --base-url https://site.example/.",
        )
    return found


def _is_dump(path: Path) -> bool:
    name = path.name.lower()
    for packed in PACKED:
        name = name.removesuffix(packed)
    return ENDINGS.get(Path(name).suffix, "html") != "html"
