"""Documentation packages of Debian as captures of the sites they are copies of.

Packages are fetched with ``apt-get download`` into a cache folder and unpacked there without being
installed. ``recipes/debian.tsv`` names each package's HTML folder, the address rule of the site,
the licence and the smallest set that holds it.
"""

from __future__ import annotations

import csv
import gzip
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from corpus_builder.capture import Capture, Loss, Shard
from corpus_builder.dates import instant
from corpus_builder.errors import BadRecipeError, BadSourceError
from corpus_builder.sources.files import HtmlFile, html_files, quoted, read_body
from world_core.types import Instant

KIND = "debian_docs"
SETS = ("light", "standard", "full")
_ENTRY_DATE = re.compile(r"^ -- .*>  (.+)$", re.MULTILINE)
_RULE = re.compile(r"\{[^{}]+\}")


@dataclass(frozen=True, slots=True)
class Package:
    """A documentation package; ``root`` is its HTML folder, ``set`` the smallest set with it."""

    name: str
    root: str
    url_template: str
    licence: str
    set: str
    languages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DebianDocsSource:
    """A set of packages, one shard each.

    ``cache`` is the folder that keeps packages fetched and unpacked. ``names`` picks single
    packages instead of a set.
    """

    cache: Path
    set: str = "light"
    names: Sequence[str] = ()

    def shards(self) -> list[Shard]:
        """Fetch and unpack what the cache lacks, and return one shard a package, by name.

        Raises:
            BadRecipeError: a set or package is not in the list.
            BadSourceError: a package cannot be fetched or unpacked.
        """
        chosen = choose(self.set, self.names)
        _fetch([package.name for package in chosen], self.cache)
        return [
            Shard(
                KIND,
                self.cache / package.name,
                {
                    "package": package.name,
                    "root": package.root,
                    "url_template": package.url_template,
                    "languages": ",".join(package.languages),
                },
            )
            for package in chosen
        ]

    def read(self, shard: Shard) -> Iterator[Capture | Loss]:
        """Yield a capture or a loss for each HTML file of the package."""
        root = shard.path / shard.arguments["root"]
        name = shard.arguments["package"]
        files = html_files(root)
        if not files:
            yield Loss(name, 0, "no HTML file")
        time = _changelog_date(shard.path / "usr/share/doc" / name) or _newest(root, files)
        languages = tuple(shard.arguments["languages"].split(","))
        for file in files:
            yield _read(shard, root, file, time, languages)


def packages() -> list[Package]:
    """Return every known package by name."""
    table = resources.files("corpus_builder") / "recipes" / "debian.tsv"
    rows = csv.DictReader(table.read_text("utf-8").splitlines(), delimiter="\t")
    return [
        Package(
            name=row["package"],
            root=row["root"].rstrip("/"),
            url_template=row["url_template"],
            licence=row["licence"],
            set=row["set"],
            languages=tuple(row["languages"].split(",")),
        )
        for row in rows
    ]


def choose(set_name: str, names: Sequence[str] = ()) -> list[Package]:
    """Return the packages of a set, each set holding the smaller ones, or those named.

    Raises:
        BadRecipeError: the set or a package is not known.
    """
    known = {package.name: package for package in packages()}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise BadRecipeError(
            f"The package {unknown[0]!r} is not in the list of documentation packages.",
            hint=f"Known are: {', '.join(sorted(known))}.",
        )
    if set_name not in SETS:
        raise BadRecipeError(
            f"There is no set {set_name!r} of documentation packages.",
            hint=f"Sets are: {', '.join(SETS)}.",
        )
    held = SETS[: SETS.index(set_name) + 1]
    wanted = names or [name for name, package in known.items() if package.set in held]
    return [known[name] for name in sorted(set(wanted))]


def address(template: str, path: str, languages: Sequence[str] = ("en",)) -> str:
    """Return the address of a file by a package's rule; ``path`` is below the package's root."""
    return _RULE.sub(lambda found: quoted(_RULES[found[0]](path, languages)), template)


def _without_first(path: str, _: Sequence[str]) -> str:
    return path.partition("/")[2] or path


def _language(path: str, languages: Sequence[str]) -> str:
    """Return the folder that names the file's language, or the package's only language."""
    first, slash, _ = path.partition("/")
    if slash and first.lower().replace("_", "-") in {
        language.lower().replace("_", "-") for language in languages
    }:
        return first
    return languages[0]


def _django(path: str, _: Sequence[str]) -> str:
    folder = path.removesuffix("index.html")
    if folder != path and (not folder or folder.endswith("/")):
        return folder
    return path.removesuffix(".html") + "/"


_RULES: Mapping[str, Callable[[str, Sequence[str]], str]] = {
    "{path}": lambda path, _: path,
    "{path without .html}": lambda path, _: path.removesuffix(".html"),
    "{path without its first folder}": _without_first,
    "{path: x.html -> x/, index.html -> folder}": _django,
    "{file name}": lambda path, _: path.rpartition("/")[2],
    "{stem}": lambda path, _: path.rpartition("/")[2].partition(".")[0],
    "{lang}": _language,
    "{rest}": _without_first,
}


def _read(
    shard: Shard, root: Path, file: HtmlFile, time: Instant, languages: Sequence[str]
) -> Capture | Loss:
    template = shard.arguments["url_template"]
    origin = f"{shard.arguments['package']}/{file.path}"
    url = address(template, file.path, languages)
    if file.target is None:
        return Loss(origin, 0, "link out of the folder", url, note=True)
    if file.target:
        location = address(template, file.target, languages)
        return Capture(url, time, origin, 0, status=308, location=location, body=b"")
    body, flaw = read_body(root / file.path)
    if flaw:
        return Loss(origin, 0, flaw, url)
    return Capture(url, time, origin, 0, body=body, modified=time)


def _changelog_date(folder: Path) -> Instant | None:
    """Return the date of the newest entry of the package's changelog."""
    for name in ("changelog.Debian.gz", "changelog.gz"):
        file = folder / name
        if not file.is_file():
            continue
        try:
            with gzip.open(file) as stream:
                text = stream.read(256 * 1024).decode("utf-8", "replace")
        except (OSError, EOFError):
            continue
        found = _ENTRY_DATE.search(text)
        if found:
            return instant(found[1])
    return None


def _newest(root: Path, files: Sequence[HtmlFile]) -> Instant:
    """Return the newest date of the files, which Debian clamps to that of the build."""
    return max((int((root / file.path).lstat().st_mtime) for file in files), default=0)


def _fetch(names: Sequence[str], cache: Path) -> None:
    missing = [name for name in names if not (cache / name).is_dir()]
    if not missing:
        return
    cache.mkdir(parents=True, exist_ok=True)
    lacking = [name for name in missing if not _archive(cache, name)]
    if lacking:
        _run(["apt-get", "download", *lacking], cache)
    for name in missing:
        archive = _archive(cache, name)
        if archive is None:
            raise BadSourceError(
                f"apt-get download left no package {name!r} in {cache}.",
                hint="Run: apt-get update",
            )
        # Unpacked beside and renamed, so that a folder under a package's name is always whole.
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            unpacked = Path(folder, name)
            _run(["dpkg-deb", "-x", str(archive.resolve()), str(unpacked.resolve())], cache)
            unpacked.rename(cache / name)


def _archive(cache: Path, name: str) -> Path | None:
    return max(cache.glob(f"{name}_*.deb"), default=None)


def _run(command: Sequence[str], cache: Path) -> None:
    program = shutil.which(command[0])
    if program is None:
        raise BadSourceError(
            f"{command[0]} is not installed, which {KIND} needs.",
            hint="Use a Debian system, or give another source.",
        )
    done = subprocess.run(  # noqa: S603 - fixed programs, names checked against our own list
        [program, *command[1:]], cwd=cache, capture_output=True, text=True, check=False
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise BadSourceError(f"{command[0]} failed for {KIND}: {last}", hint="Run: apt-get update")
