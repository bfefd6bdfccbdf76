"""What a crawl of the atlas saw: pages over time, redirects, mirrors, dead links.

Besides its pages a block holds addresses that lead to them or nowhere, always the same kinds, so
that every rule of identity meets its case in every world.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from corpus_builder.atlas import cast
from corpus_builder.atlas.cast import BLOCK, Identity
from corpus_builder.atlas.entities import DAY, Block, Entity
from corpus_builder.atlas.lexicon import slug
from corpus_builder.atlas.pages import Style, related, render
from corpus_builder.capture import Capture
from world_core.types import Instant

ERROR_BODY = b"<!DOCTYPE html><title>Not here</title><p>There is no page at this address.</p>"
MIRRORED = (cast.FINDINGS[0], cast.BOOKS[1])
"""Pages with an exact copy on a mirror: the first names its original, the second does not."""


@dataclass(frozen=True, slots=True)
class Redirect:
    """An address that answers 301."""

    url: str
    target: str
    time: Instant


def mirror_of(identity: Identity) -> str:
    """Return the address of a page's copy on the mirror."""
    site, path = identity.url.removeprefix("https://").split("/", 1)
    return f"https://mirror.example/{site}/{path}"


def redirects(block: Block) -> list[Redirect]:
    """Return the block's redirects: old addresses, both slashes, plain http, and loops."""
    of = block.identity
    town, person, ship = of(cast.RIVER_TOWN), of(cast.FOREBEARS[0]), of(cast.SHIP)
    first_old = f"https://wiki.example/{slug(person.title)}"
    second_old = f"https://wiki.example/people/{slug(person.title)}"
    pairs = [
        (f"https://atlas.example/towns/{slug(town.name)}", town.url),
        (first_old, second_old),
        (second_old, person.url),
        (f"https://museum.example/ships?number={block.number}", ship.url),
        (f"{of(cast.CAPITAL).url}/", of(cast.CAPITAL).url),
        *((of(slot).url.rstrip("/"), of(slot).url) for slot in cast.FESTIVALS),
        (of(cast.RIVERS[0]).url.replace("https:", "http:"), of(cast.RIVERS[0]).url),
    ]
    if block.number % 10 == 0:
        loop = f"https://atlas.example/loop/{block.number}"
        pairs += [(loop, f"{loop}/"), (f"{loop}/", loop)]
        pairs.append((f"https://atlas.example/former/{block.number}", dead_addresses(block)[0][0]))
    time = block.entities[0].states[0].captured[0]
    return [Redirect(url, target, time + n * DAY) for n, (url, target) in enumerate(pairs)]


def dead_addresses(block: Block) -> list[tuple[str, int]]:
    """Return addresses at which the crawl met an error, with the status."""
    return [
        (f"https://atlas.example/town/{slug(block.identity(cast.OLD_TOWN).name)}/harbour", 404),
        (f"https://news.atlas.example/story/withdrawn-{block.number}", 410),
    ]


def extra_links(block: Block) -> dict[int, list[tuple[str, str]]]:
    """Return links to such addresses, by the slot of the page that carries them."""
    town, ship = block.identity(cast.RIVER_TOWN), block.identity(cast.SHIP)
    dead = dead_addresses(block)
    links = {
        0: [(f"https://atlas.example/towns/{slug(town.name)}", town.name)],
        cast.RIVERS[1]: [(dead[0][0], "the old harbour")],
        cast.NEWS[0]: [(dead[1][0], "a report since withdrawn")],
        cast.SHIPYARD: [(f"https://museum.example/ships?number={block.number}", ship.name)],
        cast.BUILDINGS[1]: [(mirror_of(block.identity(MIRRORED[0])), "a copy of the report")],
        cast.PRESS: [(f"{block.identity(cast.CAPITAL).url}/#history", "the history of the seat")],
    }
    if block.number % 10 == 0:
        links[cast.CAPITAL] = [(f"https://atlas.example/loop/{block.number}", "the old guide")]
    return links


def captures(block: Block, style: Style, end: int) -> Iterator[Capture]:
    """Yield the block's captures: pages in slot order, each over time, then all other addresses.

    Args:
        block: the block to crawl.
        style: how long its pages are.
        end: slots from here on are left out of the world, and so is what leads to them.
    """
    origin = f"atlas/block-{block.number:05d}"
    for offset, capture in enumerate(_all(block, style, end)):
        yield Capture(
            url=capture.url,
            time=capture.time,
            origin=origin,
            offset=offset,
            status=capture.status,
            mime="text/html",
            charset="utf-8",
            location=capture.location,
            body=capture.body,
        )


def _all(block: Block, style: Style, end: int) -> Iterator[Capture]:
    named_by, links = related(block), extra_links(block)
    pages: dict[int, bytes] = {}
    for entity in block.entities[:end]:
        slot = entity.identity.slot
        for version, state in enumerate(entity.states):
            pages[slot] = render(
                block,
                entity,
                version,
                named_by=named_by.get(slot, ()),
                style=style,
                extra_links=links.get(slot, ()),
            )
            for time in state.captured:
                yield _page(entity.identity.url, time, pages[slot])
    yield from _copies(block, pages)
    if end == BLOCK:
        for redirect in redirects(block):
            yield Capture(
                redirect.url, redirect.time, "", 0, status=301, location=redirect.target, body=b""
            )
        for url, status in dead_addresses(block):
            time = block.entities[cast.OLD_TOWN].states[0].captured[0]
            yield Capture(url, time, "", 0, status=status, body=ERROR_BODY)


def _copies(block: Block, pages: dict[int, bytes]) -> Iterator[Capture]:
    """Yield the mirrored pages, and one that was met under an address with tracking."""
    for slot in MIRRORED:
        if slot in pages:
            entity = block.entities[slot]
            yield _page(mirror_of(entity.identity), _last(entity) + DAY, pages[slot])
    tracked = cast.RIVERS[0]
    if tracked in pages:
        entity = block.entities[tracked]
        url = f"{entity.identity.url}?utm_source=feed&utm_campaign=rivers"
        yield _page(url, _last(entity) + 2 * DAY, pages[tracked])


def _last(entity: Entity) -> Instant:
    return entity.states[-1].captured[-1]


def _page(url: str, time: Instant, body: bytes) -> Capture:
    return Capture(url, time, "", 0, body=body)
