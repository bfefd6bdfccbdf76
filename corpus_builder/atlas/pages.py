"""Pages of the atlas as HTML: head with dates, navigation, text, fact table, links, footer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random

from corpus_builder.atlas import cast, colour
from corpus_builder.atlas.cast import Identity, Kind
from corpus_builder.atlas.entities import DAY, Block, Dating, Entity, State
from corpus_builder.atlas.frame import Alternatives, Frame
from corpus_builder.atlas.frames_people import FOREBEAR, MODERN, NEWS_FRAMES
from corpus_builder.atlas.frames_places import PLACES
from corpus_builder.atlas.frames_works import WORKS
from corpus_builder.atlas.lexicon import MONTHS
from corpus_builder.atlas.tongues import CHOIRS
from world_core.types import Instant


@dataclass(frozen=True, slots=True)
class Style:
    """How long pages are: filler sentences a section, closing remarks, links in the list."""

    fillers: tuple[int, int]
    remarks: tuple[int, int]
    related: int


FULL = Style(fillers=(3, 5), remarks=(6, 10), related=12)
BRIEF = Style(fillers=(0, 1), remarks=(0, 0), related=2)

_FRAMES = {**PLACES, **WORKS}
_SITES = {
    "atlas.example": "The Atlas",
    "wiki.example": "Open Wiki",
    "museum.example": "Museum of Ships and Sciences",
    "news.atlas.example": "Atlas News",
    "harbour-gazette.example": "The Harbour Gazette",
}
_POOLS = {
    Kind.PROVINCE: colour.PLACE,
    Kind.TOWN: colour.PLACE,
    Kind.RIVER: colour.PLACE,
    Kind.PERSON: colour.LIFE,
    Kind.NEWS: colour.REPORT,
}
_SEEN_FROM_TARGET = {
    (Kind.COMPANY, "founder"): "Founder of",
    (Kind.COMPANY, "seat"): "Seat of",
    (Kind.BUILDING, "architect"): "Architect of",
    (Kind.BUILDING, "town"): "Site of",
    (Kind.FESTIVAL, "town"): "Host of",
    (Kind.SHIP, "builder"): "Builder of",
    (Kind.SHIP, "port"): "Home port of",
    (Kind.BOOK, "author"): "Author of",
    (Kind.BOOK, "publisher"): "Publisher of",
    (Kind.BOOK, "setting"): "Setting of",
    (Kind.FINDING, "discoverer"): "Discoverer of",
    (Kind.FINDING, "place"): "Where they found",
    (Kind.PERSON, "birthplace"): "Birthplace of",
    (Kind.TOWN, "river"): "Flows through",
    (Kind.TOWN, "province"): "Contains",
    (Kind.CHOIR, "town"): "Home of",
    (Kind.NEWS, "subject"): "In the news",
}
_DESCRIPTIONS = {
    Kind.PROVINCE: "the province around it",
    Kind.TOWN: "a town near by",
    Kind.RIVER: "the river that drains the land",
    Kind.COMPANY: "a company of the province",
    Kind.FESTIVAL: "a feast for the whole province",
    Kind.SHIP: "a ship with a story",
    Kind.BOOK: "a novel set here",
    Kind.FINDING: "a finding that was disputed",
    Kind.CHOIR: "a choir",
    Kind.NEWS: "a report",
    Kind.STUB: "the index",
}


def host_of(url: str) -> str:
    """Return the host of an address of the atlas."""
    return url.split("/", 3)[2]


def frame_of(identity: Identity) -> Frame | None:
    """Return the frame a page is written by; None for a stub, which has none."""
    match identity.kind:
        case Kind.PERSON:
            return FOREBEAR if identity.slot in cast.FOREBEARS else MODERN
        case Kind.NEWS:
            return NEWS_FRAMES[_told_by(identity.slot)]
        case Kind.CHOIR:
            return CHOIRS[identity.sort]
        case Kind.STUB:
            return None
    return _FRAMES[identity.kind]


def related(block: Block) -> dict[int, list[tuple[str, Identity]]]:
    """Return, by slot, which pages of the block name that one, and as what."""
    found: dict[int, list[tuple[str, Identity]]] = {}
    for entity in block.entities:
        for relation, target in entity.targets.items():
            phrase = _SEEN_FROM_TARGET.get((entity.identity.kind, relation))
            if phrase and target.block == block.number:
                found.setdefault(target.slot, []).append((phrase, entity.identity))
    return found


def render(
    block: Block,
    entity: Entity,
    version: int,
    *,
    named_by: Sequence[tuple[str, Identity]],
    style: Style,
    extra_links: Sequence[tuple[str, str]] = (),
) -> bytes:
    """Return the page as UTF-8 HTML.

    Args:
        block: the block the page belongs to.
        entity: its subject.
        version: which of the entity's states the page shows.
        named_by: pages that name this one, from ``related``.
        style: how long the page is.
        extra_links: more links for the list at the end, as (address, text).
    """
    identity, state = entity.identity, entity.states[version]
    draw = block.stream("prose", _told_by(identity.slot))
    body = "\n".join(_body(entity, state, draw, style))
    links = "\n".join(
        _links(block, entity, draw, named_by=named_by, style=style, extra_links=extra_links)
    )
    site = _SITES[host_of(identity.url)]
    language = identity.sort if identity.kind is Kind.CHOIR else "en"
    page = (
        f'<!DOCTYPE html>\n<html lang="{language}">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{identity.title} | {site}</title>\n{_head(entity, version, draw)}</head>\n<body>\n"
        f'<header><p class="site">{site}</p><nav><ul><li><a href="/">Start</a></li>'
        '<li><a href="/recent">Recent changes</a></li><li><a href="/about">About</a></li></ul>'
        f"</nav></header>\n<main>\n<article>\n<h1>{identity.title}</h1>\n{body}\n{links}"
        f"</article>\n</main>\n<footer><p>{site} is written by its readers.</p>"
        '<p><a href="/terms">Terms</a> <a href="/contact">Contact</a></p></footer>\n'
        "</body>\n</html>\n"
    )
    return page.encode("utf-8")


def day_in_words(time: Instant) -> str:
    """Return the day of an instant as it reads in a text: ``3 May 2019``."""
    day = datetime.fromtimestamp(time, tz=UTC)
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def iso_day(time: Instant) -> str:
    """Return the day of an instant as ``2019-05-03``."""
    return datetime.fromtimestamp(time, tz=UTC).date().isoformat()


def _told_by(slot: int) -> int:
    # A syndicated story is told in the words of the one it was taken from.
    return cast.NEWS[-1] if slot == cast.SYNDICATED else slot


def _head(entity: Entity, version: int, draw: Random) -> str:
    identity, lines = entity.identity, []
    published = f"{iso_day(entity.published)}T08:00:00Z"
    modified = f"{iso_day(entity.states[version].captured[0] - DAY)}T08:00:00Z"
    if entity.dating in {Dating.META, Dating.BOTH}:
        lines.append(f'<meta property="article:published_time" content="{published}">')
        if version:
            lines.append(f'<meta property="article:modified_time" content="{modified}">')
    if entity.dating in {Dating.JSON_LD, Dating.BOTH}:
        data = {
            "@context": "https://schema.org",
            "@type": "NewsArticle" if identity.kind is Kind.NEWS else "Article",
            "headline": identity.title,
            "datePublished": published,
            **({"dateModified": modified} if version else {}),
        }
        text = json.dumps(data, ensure_ascii=False)
        lines.append(f'<script type="application/ld+json">{text}</script>')
    if identity.kind is Kind.STUB:
        lines.append('<meta name="robots" content="noindex">')
    # The pages that a mirror copies say where they belong, or do not, in every world alike.
    named = draw.random() < 0.6
    if identity.slot == cast.FINDINGS[0] or (named and identity.slot != cast.BOOKS[1]):
        lines.append(f'<link rel="canonical" href="{identity.url}">')
    return "".join(f"{line}\n" for line in lines)


def _body(entity: Entity, state: State, draw: Random, style: Style) -> Iterator[str]:
    identity = entity.identity
    frame = frame_of(identity)
    if frame is None:
        yield f"<p>The {identity.name} is not written yet.</p>"
        return
    values = _values(identity, state, draw)
    pool = _Pool(_POOLS.get(identity.kind, colour.WORK), draw)
    if identity.kind is Kind.NEWS:
        yield _byline(identity, entity.published, draw)
    yield f"<p>{_sentences(frame.lead, values, draw)}</p>"
    if frame.rows:
        yield _table(frame, values)
    english = identity.kind is not Kind.CHOIR
    for section in frame.sections:
        yield f"<h2>{draw.choice(section.headings)}</h2>"
        fillers = pool.take(draw.randint(*style.fillers)) if english else ""
        yield f"<p>{_sentences(section.sentences, values, draw)}{fillers}</p>"
    if english:
        yield from _remarks(identity, pool, draw, style)


def _remarks(identity: Identity, pool: _Pool, draw: Random, style: Style) -> Iterator[str]:
    count = draw.randint(*style.remarks)
    if identity.kind is Kind.NEWS:
        count += 3
        if identity.slot == cast.SYNDICATED:
            yield "<p>The story was taken over from a partner of this paper.</p>"
    if count:
        if identity.kind is not Kind.NEWS:
            yield f"<h2>{draw.choice(colour.TITLES)}</h2>"
        for part in (count - count // 3, count // 3):
            if paragraph := pool.take(part).strip():
                yield f"<p>{paragraph}</p>"


def _byline(identity: Identity, published: Instant, draw: Random) -> str:
    desk = draw.choice(("By our own staff", "From the regional desk", "By a reporter on the spot"))
    if identity.slot == cast.SYNDICATED:
        desk = "From the wire"
    day = day_in_words(published)
    return f'<p class="byline">{desk}, <time datetime="{iso_day(published)}">{day}</time></p>'


def _values(identity: Identity, state: State, draw: Random) -> dict[str, str]:
    """Return what stands in each slot of a frame, as HTML; names of pages are links."""
    values = {"name": identity.name}
    for relation, text in state.facts.items():
        target = state.targets.get(relation)
        if target is None:
            values[relation] = text
        else:
            tracking = "?utm_source=atlas&amp;utm_medium=text" if draw.random() < 0.04 else ""
            values[relation] = f'<a href="{target.url}{tracking}">{text}</a>'
    return values


def _sentences(sentences: Sequence[Alternatives], values: Mapping[str, str], draw: Random) -> str:
    return " ".join(draw.choice(options).format_map(values) for options in sentences)


def _table(frame: Frame, values: Mapping[str, str]) -> str:
    rows = "".join(
        f"<tr><th>{label}</th><td>{values[slot]}</td></tr>" for label, slot in frame.rows
    )
    return f'<table class="facts"><tbody>{rows}</tbody></table>'


def _links(
    block: Block,
    entity: Entity,
    draw: Random,
    *,
    named_by: Sequence[tuple[str, Identity]],
    style: Style,
    extra_links: Sequence[tuple[str, str]],
) -> Iterator[str]:
    identity = entity.identity
    if identity.kind in {Kind.STUB, Kind.CHOIR}:
        home = block.identity(0)
        yield f'<p><a href="{home.url}">{home.name}</a></p>'
        return
    items = [
        f'<li>{phrase} <a href="{other.url}">{other.title}</a></li>'
        for phrase, other in named_by[: style.related]
    ]
    for slot in draw.sample(range(cast.BLOCK), 2):
        other = block.identity(slot)
        text = _description(other) if draw.random() < 0.4 else other.title
        if slot != identity.slot:
            items.append(f'<li>See <a href="{other.url}">{text}</a></li>')
    items += [f'<li>See <a href="{url}">{text}</a></li>' for url, text in extra_links]
    yield f"<h2>Related pages</h2>\n<ul>{''.join(items)}</ul>\n"


def _description(identity: Identity) -> str:
    if identity.kind in {Kind.PERSON, Kind.BUILDING}:
        sort = identity.sort.lower()
        return f"{'an' if sort[0] in 'aeiou' else 'a'} {sort} of note"
    return _DESCRIPTIONS[identity.kind]


class _Pool:
    """Filler sentences of one page, none used twice."""

    def __init__(self, sentences: Sequence[str], draw: Random) -> None:
        self._left = draw.sample(sentences, len(sentences))
        self._draw = draw

    def take(self, count: int) -> str:
        """Return some sentences, each with a leading space; fewer once none are left."""
        taken = [self._left.pop() for _ in range(min(count, len(self._left)))]
        return "".join(" " + self._fill(sentence) for sentence in taken)

    def _fill(self, sentence: str) -> str:
        filled = sentence.format_map(_Words(self._draw))
        return filled[0].upper() + filled[1:]


class _Words(dict[str, str]):
    """The words of one filler sentence, each drawn when its slot is met."""

    def __init__(self, draw: Random) -> None:
        super().__init__()
        self._draw = draw

    def __missing__(self, slot: str) -> str:
        return self._draw.choice(colour.FILLERS[slot])
