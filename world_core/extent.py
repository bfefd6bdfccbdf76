"""How large a world is, or will be: what a plan starts from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from world_core.errors import BadInputError
from world_core.indexes.faiss_tiers import cells_of, pieces_of
from world_core.indexes.tiers import chosen_kind
from world_core.manifest import Manifest
from world_core.unit_costs import ENCODERS, PASSAGES_A_PAGE, cost

PARTS = ("pages.sqlite", "passages.bin", "columns", "lexical", "dense")
"""The parts of a world that grow with it."""


@dataclass(frozen=True, slots=True)
class Extent:
    """How much a world holds, and in what form.

    Attributes:
        pages: number of pages.
        versions: number of versions, at least one a page.
        passages: number of passages.
        rows: rows of the dense index.
        dim: components of a vector, 0 without a dense index.
        encoder: kind of the encoder, "" without one.
        engine: lexical engine.
        units: units of the lexical index.
        tier: tier of the dense index, "" without one, never "auto".
        stored: bytes by part of ``PARTS``: those of the files, or what they will have.
    """

    pages: int
    versions: int
    passages: int
    rows: int
    dim: int
    encoder: str
    engine: str
    units: int
    tier: str
    stored: Mapping[str, int] = field(default_factory=dict)

    @property
    def disk(self) -> int:
        """Bytes of the published world."""
        return sum(self.stored.values())


def of_world(manifest: Manifest) -> Extent:
    """Return the extent of a published world; sizes are those of its files."""
    stored = dict.fromkeys(PARTS, 0)
    for path, digest in manifest.files.items():
        part = path.split("/")[0]
        stored[part] = stored.get(part, 0) + digest.bytes
    counts, dense = manifest.counts, manifest.dense
    return Extent(
        pages=counts.pages,
        versions=counts.versions,
        passages=counts.passages,
        rows=dense.rows if dense else 0,
        dim=dense.dim if dense else 0,
        encoder=manifest.encoder.kind if manifest.encoder else "",
        engine=manifest.lexical.engine,
        units=counts.passages if manifest.lexical.unit == "passage" else counts.versions,
        tier=dense.kind if dense else "",
        stored=stored,
    )


def of_pages(
    pages: int,
    *,
    encoder: str,
    dim: int = 0,
    passages_a_page: float = PASSAGES_A_PAGE,
    rows: str = "all",
    row_pages: int = 0,
    tier: str = "auto",
    engine: str = "lucene",
    unit: str = "version",
) -> Extent:
    """Return what a world of so many pages, one version each, will hold.

    Args:
        pages: number of pages.
        encoder: kind of the encoder, "" for a world without vectors.
        dim: components of a vector where the encoder's arguments decide; 0 for its usual number.
        passages_a_page: passages of an average page.
        rows: "all", "lead", "version" or "none", as in a recipe.
        row_pages: pages with rows, 0 for all.
        tier: as in a recipe.
        engine: lexical engine.
        unit: lexical unit, "version" or "passage".

    Raises:
        BadInputError: a negative number, or an encoder without stated costs.
    """
    if pages < 0 or row_pages < 0 or passages_a_page < 0 or dim < 0:
        raise BadInputError(
            f"A plan for {pages} pages of {passages_a_page:g} passages cannot be made.",
            hint="Give numbers that are not negative.",
        )
    if encoder and encoder not in ENCODERS:
        raise BadInputError(
            f"There is no encoder {encoder!r}.", hint=f"Use one of: {', '.join(ENCODERS)}, none."
        )
    passages = round(pages * passages_a_page)
    count, width = 0, 0
    if encoder:
        chosen = min(pages, row_pages) if row_pages else pages
        lead = min(1.0, passages_a_page)
        per_page = {"all": passages_a_page, "lead": lead, "version": lead}.get(rows, 0.0)
        count, width = round(chosen * per_page), dim or ENCODERS[encoder].dim
    kind = chosen_kind(tier, count) if encoder else ""
    units = passages if unit == "passage" else pages
    share = passages_a_page / PASSAGES_A_PAGE
    columns = cost("columns_page") * pages + cost("columns_passage") * passages
    stored = {
        "pages.sqlite": round(cost("pages_page") * pages * share),
        "passages.bin": round(cost("passage") * passages),
        "columns": round(columns),
        "lexical": round(cost("lexical_page") * pages * share),
        "dense": dense_bytes(kind, count, width) if encoder else 0,
    }
    return Extent(pages, pages, passages, count, width, encoder, engine, units, kind, stored)


def dense_bytes(tier: str, rows: int, dim: int) -> int:
    """Return the bytes of a dense index: what proposes candidates, and the codes that score.

    Codes are one byte a component, with a scale and a number a row. Beside them a flat index holds
    two bytes a component; cells hold one, an id a row and their centres; product codes one byte for
    eight components; a graph holds two bytes a component and 64 neighbours of four bytes a row, a
    tenth more for its upper levels; torch scans the codes themselves. A tier not known here is
    taken for flat.
    """
    codes = rows * (dim + 12)
    centres = cells_of(rows) * dim * 4 if rows else 0
    if tier == "ivf":
        return codes + rows * (dim + 8) + centres
    if tier == "ivfpq":
        return codes + rows * (pieces_of(dim) + 8) + centres + 256 * dim * 4
    if tier == "hnsw":
        return codes + rows * (2 * dim + 282)
    return codes if tier == "torch" else codes + rows * 2 * dim
