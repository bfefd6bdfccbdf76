"""The manifest of a built world, before its files are digested and its canaries asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from corpus_builder.lexical_stage import constants
from corpus_builder.models import Models
from corpus_builder.passage_blocks import Blocks
from corpus_builder.recipe import LexicalRecipe, Recipe, RerankerRecipe, SparseRecipe
from corpus_builder.snapshot import Snapshot
from corpus_builder.workspace import Facts
from world_core.analysis import DEFAULT_WEIGHTS, Analyzer
from world_core.lexical_settings import ExpansionSettings, LexicalSettings
from world_core.manifest import (
    Counts,
    DenseSettings,
    EncoderSettings,
    FusionSettings,
    Manifest,
)
from world_core.manifest_options import RerankerSettings, SparseSettings
from world_core.types import Instant


@dataclass(frozen=True, slots=True)
class Built:
    """What the stages of a build came to.

    Attributes:
        snapshot: pages and versions.
        blocks: passages.
        world_id: of the content.
        models: encoders and the id of the reranker.
        clock: the world clock.
        dense: facts of the dense stage, ``None`` without vectors.
        sparse: facts of the sparse stage, ``None`` without weights.
        losses: pages lost by reason.
    """

    snapshot: Snapshot
    blocks: Blocks
    world_id: str
    models: Models
    clock: Instant
    dense: Facts | None = None
    sparse: Facts | None = None
    losses: Mapping[str, int] = field(default_factory=dict)


def manifest_of(recipe: Recipe, built: Built) -> Manifest:
    """Return the manifest without file digests, engine version and canaries."""
    snapshot = built.snapshot
    languages = tuple(sorted(snapshot.languages))
    return Manifest(
        name=recipe.name,
        world_id=built.world_id,
        files={},
        encoder_id=built.models.encoder_id,
        encoder=(
            EncoderSettings(kind=recipe.dense.encoder, arguments=dict(recipe.dense.arguments))
            if recipe.dense
            else None
        ),
        analyzer_id=Analyzer(languages).id,
        languages=languages,
        lexical=_lexical(recipe.lexical),
        dense=DenseSettings.model_validate(built.dense) if built.dense else None,
        sparse=_sparse(recipe.sparse, built) if recipe.sparse else None,
        fusion=FusionSettings(weight=recipe.fusion_weight),
        reranker=_reranker(recipe.reranker, built.models) if recipe.reranker else None,
        counts=Counts(
            pages=snapshot.pages,
            versions=snapshot.versions,
            passages=built.blocks.passages,
            links=snapshot.links,
            dead_links=snapshot.dead_links,
            dropped=dict(sorted(built.losses.items())),
        ),
        capture_from=snapshot.capture_from,
        capture_to=snapshot.capture_to,
        clock=built.clock,
    )


def _lexical(lexical: LexicalRecipe) -> LexicalSettings:
    k1, b = constants(lexical)
    expansion = lexical.expansion
    return LexicalSettings(
        engine=lexical.engine,
        engine_version="",
        unit="passage" if lexical.unit == "passage" else "version",
        k1=k1,
        b=b,
        field_weights={**DEFAULT_WEIGHTS, **lexical.field_weights},
        scoring="bm25f" if lexical.scoring == "bm25f" else "bm25",
        long_query=lexical.long_query,
        expansion=ExpansionSettings(**asdict(expansion)) if expansion is not None else None,
    )


def _sparse(sparse: SparseRecipe, built: Built) -> SparseSettings:
    stated = {
        "encoder_id": built.models.sparse_id,
        "kind": sparse.encoder,
        "arguments": dict(sparse.arguments),
        "weight": sparse.weight,
    }
    return SparseSettings.model_validate({**stated, **(built.sparse or {})})


def _reranker(reranker: RerankerRecipe, models: Models) -> RerankerSettings:
    return RerankerSettings(
        reranker_id=models.reranker_id,
        kind=reranker.kind,
        arguments=dict(reranker.arguments),
        top=reranker.top,
    )
