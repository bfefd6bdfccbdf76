"""The same requests give the same bytes from an engine here and from an engine process.

And so they do from 1, 2 and 4 workers, after a restart, in batches of any size, and whether vectors
are remembered or not; in a world of exact and near copies too, where most scores tie.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.parity.asking import Digest, Request, digests, mixed_requests
from tests.support import RunningServer, build, running_server

SIZES = (1, 2, 7, 64)
SEARCHES = 64
THREADS = 4
SUBJECTS = ("lighthouse", "ferry", "harbour", "keeper", "pilot", "lantern", "anchor", "rudder")
PLACES = ("Norrvik", "Skarholm", "Stennes", "Lune")


def copies() -> Iterator[dict[str, str]]:
    """Return pages of which most have a copy: the same text, or the same but for one word."""
    for subject, place in itertools.product(SUBJECTS, PLACES):
        text = f"The {subject} of {place} is old. Nobody in {place} knows who built the {subject}."
        texts = (text, text, text.replace("old", "very old"), text.replace("Nobody", "Somebody"))
        for number, written in enumerate(texts):
            url = f"https://copy{number}.example/{subject}/{place.lower()}"
            yield {"url": url, "title": f"{subject.title()} of {place}", "text": written}


@pytest.fixture(scope="module")
def copied_world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the named folder of a world of exact and near copies."""
    folder = tmp_path_factory.mktemp("copied")
    dump = folder / "copies.jsonl"
    dump.write_text("".join(json.dumps(row) + "\n" for row in copies()), encoding="utf-8")
    flags = ("--lexical", "tantivy", "--encoder", "tiny", "--workers", "1")
    shown = build(str(dump), "--name", "copied", "--out", str(folder / "worlds"), *flags)
    assert shown.returncode == 0, shown.stdout + shown.stderr
    return folder / "worlds" / "copied"


@dataclass(frozen=True)
class Reference:
    """Worlds, and what a server with one worker and the engine inside answers over them."""

    worlds: tuple[str, ...]
    server: RunningServer

    def requests(self, count: int) -> list[Request]:
        """Return requests to both worlds, half each."""
        plain = mixed_requests(self.server, count - count // 2)
        queries = [f"{subject} old" for subject in SUBJECTS]
        return plain + mixed_requests(self.server, count // 2, world="copied", seeds=queries)


@pytest.fixture(scope="module", params=["atlas"])
def reference(
    request: pytest.FixtureRequest, copied_world: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Reference]:
    """Return a server of a world with real vectors and of the world of copies."""
    world: Path = request.getfixturevalue(f"{request.param}_world")
    worlds = (str(world), str(copied_world))
    folder = tmp_path_factory.mktemp("reference")
    with running_server(folder, "serve", *worlds, "--engine", "local") as server:
        yield Reference(worlds, server)


def bytes_of(server: RunningServer, requests: Sequence[Request]) -> list[Digest]:
    """Return the digests of the answers, asked by several clients at once."""
    return digests(server, requests, THREADS)


def check_batches(server: RunningServer, requests: Sequence[Request]) -> None:
    """Check that batches of every size hold exactly the bytes of their searches asked alone."""
    for prefix in ("", "/w/copied"):
        path = f"{prefix}/v1/search"
        searches = [body for asked, body in requests if asked == path]
        assert len(searches) > 5
        searches = list(itertools.islice(itertools.cycle(searches), SEARCHES))
        alone = [server.ask(path, body).body for body in searches]
        for size in SIZES:
            for start in range(0, len(searches), size):
                sent = {"searches": searches[start : start + size]}
                body = server.ask(f"{path}/batch", sent).body
                assert body == b'{"answers":[' + b",".join(alone[start : start + size]) + b"]}"


def test_an_engine_process_gives_the_bytes_of_an_engine_here(
    reference: Reference, tmp_path: Path
) -> None:
    requests = reference.requests(100)
    first = bytes_of(reference.server, requests)
    assert len({body for _, body in first}) > 30, "the requests do differ"
    flags = ("--workers", "2", "--query-cache-mb", "0")
    with running_server(tmp_path, "serve", *reference.worlds, *flags) as other:
        assert bytes_of(other, requests) == first
        check_batches(other, requests)
        assert bytes_of(other, requests) == first
    assert "Traceback" not in other.log.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def many(reference: Reference) -> tuple[list[Request], list[Digest]]:
    """Return 10,000 requests and what they are answered."""
    requests = reference.requests(10_000)
    return requests, bytes_of(reference.server, requests)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "flags",
    [
        ("--engine", "local"),
        ("--engine", "local", "--query-cache-mb", "0"),
        ("--engine", "local", "--workers", "2"),
        ("--engine", "process"),
        ("--workers", "2"),
        ("--workers", "4"),
        ("--workers", "4", "--query-cache-mb", "0"),
    ],
    ids=" ".join,
)
def test_ten_thousand_requests_are_answered_alike(
    reference: Reference,
    many: tuple[list[Request], list[Digest]],
    tmp_path: Path,
    flags: tuple[str, ...],
) -> None:
    requests, first = many
    with running_server(tmp_path, "serve", *reference.worlds, *flags) as other:
        assert bytes_of(other, requests) == first
        check_batches(other, requests)
    assert "Traceback" not in other.log.read_text(encoding="utf-8")
