"""An engine that takes its time and always says the same, and what a test needs around it."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import hashlib
from collections.abc import Sequence

from world_core.errors import BadInputError
from world_core.lexical_settings import LexicalSettings
from world_core.manifest import Canary, Counts, Manifest
from world_core.types import (
    Explanation,
    FetchAnswer,
    FetchCall,
    Hit,
    Instant,
    Link,
    Mode,
    Outcome,
    ScoreParts,
    SearchAnswer,
    SearchCall,
    Sitelink,
    Span,
    StoredVersion,
    Timings,
    VersionMeta,
)
from world_core.urls import canonical
from world_server.query_encoder import EncoderReport
from world_server.worlds import ServedWorld

CLOCK: Instant = 1_717_200_000  # 2024-06-01T00:00:00Z
PUBLISHED: Instant = 1_614_816_000  # 2021-03-04T00:00:00Z
HITS = 250
"""Pages the stub finds for every query but ``NOTHING``."""

NOTHING = "zebra quantum"
DEAD = "https://dead.example/gone"
XSS = "https://xss.example/page"
XSS_TITLE = "<img src=x onerror=alert(1)>Stored script"
XSS_TEXT = (
    "<script>alert(2)</script> [click](javascript:alert(3)) <svg onload=alert(4)> "
    "<iframe srcdoc='<script>alert(5)</script>'></iframe> <b onmouseover=alert(6)>text</b>"
)


def meta(number: int, *, title: str = "", url: str = "") -> VersionMeta:
    """Return the description of the stub's page of a number; odd ones have no date."""
    return VersionMeta(
        version=number,
        page=number,
        page_id=hashlib.sha256(str(number).encode()).hexdigest()[:20],
        url=url or f"https://site{number % 7}.example/page/{number}",
        title=title or f"Page {number}",
        language="en",
        published=PUBLISHED + number * 86400 if number % 2 == 0 else None,
        modified=None,
        valid_from=PUBLISHED,
        valid_to=2**62,
        characters=1000,
    )


@functools.cache
def hit(number: int) -> Hit:
    """Return the hit of a page; the stub's page 9 was found by learned weights and reranked."""
    parts = ScoreParts(1.0 / (number + 1), 0.5, number + 1, None)
    if number == 9:
        parts = dataclasses.replace(parts, sparse=0.25, sparse_rank=2, rerank=-15)
    return Hit(meta(number), f"Snippet of page {number}.", 1.0 / (number + 1), parts, number)


def _asked(one: Hit, call: SearchCall) -> Hit:
    """Return the hit with what the call asks for; the stub's page 3 is a start."""
    if call.sitelinks and one.meta.page == 3:
        links = (Sitelink("Page 4", meta(4).url), Sitelink("Page 5", meta(5).url))
        one = dataclasses.replace(one, sitelinks=links)
    if call.explain:
        why = Explanation(0.25, 0.75, None, Span(10, 90), None)
        one = dataclasses.replace(one, explanation=why)
    return one


def version(number: int, *, title: str = "", url: str = "", text: str = "") -> StoredVersion:
    """Return the stored version of a page, with three links of which two are the same."""
    links = (
        Link("https://site1.example/page/1", "one"),
        Link("https://site2.example/page/2", "two"),
        Link("https://site1.example/page/1", "one again"),
    )
    body = text or f"# Page {number}\n\nThe **tower** was lit in [1871](https://a.example/1871)."
    return StoredVersion(meta(number, title=title, url=url), body, links, "text/html")


def manifest(name: str = "stub", *, version: str = "1", canaries: int = 1) -> Manifest:
    """Return the manifest of a world with these canary queries."""
    return Manifest(
        name=name,
        version=version,
        world_id=hashlib.sha256(f"{name}@{version}".encode()).hexdigest(),
        files={},
        encoder_id="",
        encoder=None,
        analyzer_id="stub",
        languages=("en",),
        lexical=LexicalSettings(
            engine="stub", engine_version="1", unit="version", k1=0.9, b=0.4, field_weights={}
        ),
        dense=None,
        counts=Counts(pages=HITS, versions=HITS, passages=HITS),
        capture_from=PUBLISHED,
        capture_to=CLOCK,
        clock=CLOCK,
        canaries=tuple(
            Canary(query=f"canary {number}", page_ids=(meta(0).page_id, meta(1).page_id))
            for number in range(canaries)
        ),
    )


class StubEngine:
    """Sleeps, then answers by number; counts what it began, ended and broke off.

    ``failure`` is raised instead of an answer; ``searches`` keeps the calls that came; a
    ``label`` stands in every snippet, to tell one engine's answers from another's.
    """

    def __init__(self, delay: float = 0.05) -> None:
        self.delay = delay
        self.failure: Exception | None = None
        self.page_failure: Exception | None = None
        self.searches: list[SearchCall] = []
        self.begun = 0
        self.ended = 0
        self.cancelled = 0
        self.closed = False
        self.label = ""
        self.encoder: EncoderReport | None = None
        self.probes = 0
        self.degraded: Mode | None = None

    async def search(
        self, calls: Sequence[SearchCall], timings: Timings | None = None
    ) -> list[SearchAnswer]:
        self.searches.extend(calls)
        await self._work(self.failure)
        if timings is not None:
            timings.add("stub", self.delay)
        return [self._answer(call) for call in calls]

    async def fetch(self, call: FetchCall) -> FetchAnswer:
        await self._work(self.page_failure or self.failure)
        if not canonical(call.url):
            raise BadInputError(f"{call.url[:200]!r} is not an http or https address.")
        if call.url == DEAD:
            return FetchAnswer(Outcome.DEAD_LINK, DEAD, status=404)
        if call.url == XSS:
            stored = version(3, title=XSS_TITLE, url=XSS, text=XSS_TEXT)
            return FetchAnswer(Outcome.OK, XSS, version=stored)
        number = call.url.rpartition("/page/")[2]
        if not number.isdecimal() or int(number) >= HITS:
            return FetchAnswer(Outcome.NOT_IN_WORLD, call.url)
        stored = version(int(number))
        return FetchAnswer(Outcome.OK, stored.meta.url, version=stored)

    async def encoder_report(self, *, probe: bool = False) -> EncoderReport | None:
        if probe:
            self.probes += 1
        return self.encoder

    async def close(self) -> None:
        self.closed = True

    async def _work(self, failure: Exception | None) -> None:
        self.begun += 1
        try:
            await asyncio.sleep(self.delay)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        self.ended += 1
        if failure is not None:
            raise failure

    def _answer(self, call: SearchCall) -> SearchAnswer:
        numbers = range(0) if call.query == NOTHING else range(HITS)
        start, end = call.published_from, call.published_to
        if start is not None or end is not None:
            numbers_seen = [
                number
                for number in numbers
                if (day := meta(number).published) is not None
                and (start is None or day >= start)
                and (end is None or day < end)
            ]
        else:
            numbers_seen = list(numbers)
        chosen = numbers_seen[call.offset : call.offset + call.count]
        hits = tuple(_asked(hit(number), call) for number in chosen)
        if self.label:
            hits = tuple(dataclasses.replace(one, snippet=self.label) for one in hits)
        return SearchAnswer(Outcome.OK if hits else Outcome.EMPTY, hits, self.degraded)


def served(name: str = "stub", *, engine: StubEngine | None = None) -> ServedWorld:
    """Return a world that the stub answers for."""
    return ServedWorld(manifest(name), engine or StubEngine(0.0))
