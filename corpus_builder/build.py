"""A build from inputs to a published world: the only file that knows the order of the stages."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from corpus_builder import publish, recipe_dump, room
from corpus_builder.canaries import ask_canaries
from corpus_builder.capture import Source
from corpus_builder.dedup import LOOP, NOWHERE
from corpus_builder.errors import EmptyWorldError
from corpus_builder.extract import ExtractSettings
from corpus_builder.indexing import dense_rows, write_vectors
from corpus_builder.inputs import open_source
from corpus_builder.installed import check_packages
from corpus_builder.lexical_stage import (
    check_lexical,
    lexical_files_depend_on,
    unit_terms,
    write_lexical,
)
from corpus_builder.models import Models
from corpus_builder.near_stage import FILES, PASSES, Near, near_stage
from corpus_builder.passage_blocks import Blocks, write_blocks
from corpus_builder.progress import Progress
from corpus_builder.questions_file import AsksQuestions, write_questions
from corpus_builder.recipe import Recipe
from corpus_builder.report import Report, StageReport
from corpus_builder.snapshot import (
    DUPLICATE_URL,
    SAME_TIME,
    VERSION,
    Snapshot,
    blocks_of,
    make_snapshot,
)
from corpus_builder.sparse_stage import sparse_stage, weighed
from corpus_builder.stages import PageExtractor, ReadFacts, read_shards
from corpus_builder.tables import write_tables
from corpus_builder.vector_cache import VectorCache, default_folder
from corpus_builder.workspace import Facts, Workspace, digest_of, kill_point
from corpus_builder.world_manifest import Built, manifest_of
from world_core import manifest as manifests
from world_core.analysis import Analyzer
from world_core.generation import Generation
from world_core.manifest import Manifest
from world_core.pages import PageStore
from world_core.passages import PassageFile
from world_core.types import Instant

TOLD = frozenset({LOOP, NOWHERE, SAME_TIME})
"""What becomes of a draft that is worth a note, though it costs no page."""

NO_CLOCK = "world clock is 1970-01-01: give --clock"

FORMAT = 4
"""Raised when the output of the snapshot or a later stage changes for equal input."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a build runs; none of it changes what comes out."""

    out: Path
    workers: int = 1
    cache: Path = field(default_factory=default_folder)
    allow_empty: bool = False
    plan_check: bool = True


def build(recipe: Recipe, options: Options, progress: Progress | None = None) -> Report:
    """Build and publish a world, going on where an earlier run of the same build stopped.

    Raises:
        BuilderError, WorldError: why there is no world; what is done is kept for the next run.
        OSError: a file cannot be read or written.
    """
    home = options.out / recipe.name
    with Workspace.locked(options.out / f".build-{recipe.name}") as workspace:
        publish.check_place(home)
        run = _Run(recipe, options, workspace, progress or Progress())
        report = run.publish(home)
        workspace.remove()
    return report


class _Run:
    """One run of a build, stage by stage."""

    def __init__(
        self, recipe: Recipe, options: Options, workspace: Workspace, progress: Progress
    ) -> None:
        self.recipe = recipe
        self.options = options
        self.workspace = workspace
        self.progress = progress
        self.began = time.monotonic()
        self.report = Report(recipe.name)
        self.models = Models()

    def publish(self, home: Path) -> Report:
        sources = [open_source(entry, self.recipe.clock or 0) for entry in self.recipe.sources]
        check_packages()
        check_lexical(self.recipe.lexical)
        if self.options.plan_check:
            room.check_inputs(self.recipe, self.options.out, self.options.workers)
        self.models = Models.load(self.recipe, self.options.workers)
        read, digest = self._read(sources)
        snapshot, digest = self._snapshot(read, digest)
        blocks = self._passages(snapshot, digest)
        if self.options.plan_check:
            work, counts = self.workspace.folder, (snapshot.versions, blocks.passages)
            room.check_indexes(self.recipe, work, *counts)
        near = self._near(snapshot, digest)
        tables = self._tables(snapshot, blocks, near, digest)
        self._lexical(snapshot, blocks)
        dense = self._dense(blocks, digest)
        sparse = self._sparse(blocks, digest)
        folder = self._assemble()
        self._questions(folder, sources)
        built = Built(
            snapshot=snapshot,
            blocks=blocks,
            world_id=str(tables["world_id"]),
            models=self.models,
            clock=self._clock(snapshot),
            dense=dense,
            sparse=sparse,
            losses=self.report.losses,
        )
        manifest = manifest_of(self.recipe, built)
        manifest = publish.seal(folder, self._with_canaries(folder, manifest))
        target = publish.place(folder, manifest, home)
        publish.point(home, target)
        self._finish(manifest, target)
        return self.report

    def _read(self, sources: Sequence[Source]) -> tuple[ReadFacts, str]:
        with self._stage("read", "records") as stage:
            facts, digest = read_shards(
                sources,
                self.workspace.folder / "drafts",
                extractor=PageExtractor(ExtractSettings(self.recipe.extract.least_words)),
                cpu_seconds=self.recipe.extract.cpu_seconds,
                workers=self.options.workers,
                tell=self._teller(stage),
            )
            stage.taken, stage.given = facts.items, facts.drafts
            stage.dropped = dict(facts.lost + facts.noted)
        self.report.losses = dict(facts.lost)
        self.report.notes = dict(facts.noted)
        self.report.listed = list(facts.losses)
        return facts, digest

    def _snapshot(self, read: ReadFacts, input_digest: str) -> tuple[Snapshot, str]:
        policy = self.recipe.snapshot.exact_duplicates
        digest = digest_of(FORMAT, input_digest, policy)
        with self._stage("snapshot", "drafts") as stage:

            def produce(folder: Path) -> Facts:
                made = make_snapshot(read.parts, folder, exact_duplicates=policy)
                self._teller(stage)(made.drafts)
                return made.as_facts()

            snapshot = Snapshot.from_facts(self.workspace.stage("snapshot", digest, produce))
            stage.taken, stage.given = snapshot.drafts, snapshot.versions
            stage.dropped = {
                reason: count for reason, count in snapshot.counts.items() if reason != VERSION
            }
        if duplicates := snapshot.counts[DUPLICATE_URL]:
            self.report.losses[DUPLICATE_URL] = duplicates
            self.report.listed += snapshot.losses
        for reason in TOLD & snapshot.counts.keys():
            self.report.notes[reason] = snapshot.counts[reason]
        if not snapshot.pages and not self.options.allow_empty:
            reasons = {**read.lost, **read.noted, **stage.dropped}
            told = ", ".join(f"{count} x {reason}" for reason, count in sorted(reasons.items()))
            raise EmptyWorldError(
                f"Nothing is left to publish of {read.items} records ({told or 'none came in'}).",
                hint="Check the input, or give --allow-empty to publish an empty world.",
            )
        return snapshot, digest

    def _passages(self, snapshot: Snapshot, input_digest: str) -> Blocks:
        with self._stage("passages", "versions", snapshot.versions) as stage:
            blocks = write_blocks(
                list(
                    zip(
                        blocks_of(self.workspace.folder / "snapshot"),
                        snapshot.block_versions,
                        strict=True,
                    )
                ),
                self.workspace.folder / "passages",
                input_digest=input_digest,
                languages=sorted(snapshot.languages),
                passages=self.recipe.passages,
                unit=self.recipe.lexical.unit,
                workers=self.options.workers,
                tell=self._teller(stage),
            )
            stage.taken = stage.given = snapshot.versions
        kill_point("passages")
        return blocks

    def _near(self, snapshot: Snapshot, input_digest: str) -> Near:
        recipe, workers = self.recipe.near, self.options.workers
        with self._stage("near", "steps", PASSES * snapshot.versions) as stage:
            tell = self._teller(stage)
            near = near_stage(self.workspace, input_digest, recipe, workers=workers, tell=tell)
            stage.taken = stage.given = snapshot.versions
        self.report.near = near.counts
        return near

    def _tables(self, snapshot: Snapshot, blocks: Blocks, near: Near, input_digest: str) -> Facts:
        content = self.models.content_part(self.recipe)
        encoder_id = self.models.encoder_id
        digest = digest_of(FORMAT, input_digest, blocks.digest, content, encoder_id, near.digest)
        with self._stage("tables", "pages", snapshot.pages) as stage:

            def produce(folder: Path) -> Facts:
                world_id = write_tables(
                    folder,
                    self.workspace.folder / "snapshot",
                    blocks,
                    languages=sorted(snapshot.languages),
                    recipe=content,
                    encoder_id=encoder_id,
                    groups=near.group_column(snapshot.versions),
                )
                self._teller(stage)(snapshot.pages)
                return {"world_id": world_id}

            facts = self.workspace.stage("tables", digest, produce)
            stage.taken = stage.given = snapshot.pages
        return facts

    def _lexical(self, snapshot: Snapshot, blocks: Blocks) -> None:
        lexical = self.recipe.lexical
        units = blocks.passages if lexical.unit == "passage" else snapshot.versions
        digest = digest_of(FORMAT, blocks.digest, lexical_files_depend_on(lexical))
        with self._stage("lexical", "units", units) as stage:

            def produce(folder: Path) -> Facts:
                analyzer = Analyzer(sorted(snapshot.languages))
                pages = blocks_of(self.workspace.folder / "snapshot")
                terms = unit_terms(blocks, lexical, pages, folder / "links", analyzer)
                fields, tell = analyzer.fields, self._teller(stage)
                return {"units": write_lexical(folder / "lexical", lexical, fields, terms, tell)}

            facts = self.workspace.stage("lexical", digest, produce)
            stage.taken, stage.given = units, int(str(facts["units"]))

    def _dense(self, blocks: Blocks, input_digest: str) -> Facts | None:
        dense, encoder = self.recipe.dense, self.models.encoder
        if dense is None or encoder is None:
            self.workspace.forget("dense")
            return None
        settings = [*dense.row_settings, dense.tier]
        digest = digest_of(FORMAT, input_digest, blocks.digest, encoder.id, settings)
        every = dense.rows == "all" and not dense.pages and not dense.include_digest
        # How many rows a choice of pages gives is known only when it is made.
        with self._stage("dense", "passages", blocks.passages if every else 0) as stage:

            def produce(folder: Path) -> Facts:
                passages = PassageFile.open(self.workspace.folder / "tables" / "passages.bin")
                (folder / "dense").mkdir()
                with (
                    VectorCache(self.options.cache, encoder.id, encoder.dim) as cache,
                    weighed(encoder, self.models.sparse, self.options.cache) as encoding,
                ):
                    summary = write_vectors(
                        folder / "dense",
                        blocks_of(self.workspace.folder / "snapshot"),
                        passages,
                        dense=dense,
                        encoder=encoding,
                        cache=cache,
                        tell=self._teller(stage),
                    )
                passages.close()
                return asdict(summary)

            facts = self.workspace.stage("dense", digest, produce)
            stage.taken, stage.given = blocks.passages, int(str(facts["rows"]))
            if stage.taken > stage.given:
                stage.dropped = {"no row by recipe": stage.taken - stage.given}
        return facts

    def _sparse(self, blocks: Blocks, input_digest: str) -> Facts | None:
        recipe, dense, encoder = self.recipe.sparse, self.recipe.dense, self.models.sparse
        if recipe is None or dense is None or encoder is None:
            self.workspace.forget("sparse")
            return None
        settings = [recipe.bits, recipe.top, *dense.row_settings]
        digest = digest_of(FORMAT, input_digest, blocks.digest, encoder.id, settings)
        with self._stage("sparse", "passages") as stage:

            def produce(folder: Path) -> Facts:
                passages = PassageFile.open(self.workspace.folder / "tables" / "passages.bin")
                pages = blocks_of(self.workspace.folder / "snapshot")
                facts = sparse_stage(
                    folder,
                    dense_rows(pages, passages, dense),
                    passages.count,
                    recipe,
                    encoder,
                    cache=self.options.cache,
                    tell=self._teller(stage),
                )
                passages.close()
                return facts

            facts = self.workspace.stage("sparse", digest, produce)
            stage.taken, stage.given = blocks.passages, int(str(facts["passages"]))
            if stage.taken > stage.given:
                stage.dropped = {"no weights": stage.taken - stage.given}
        return facts

    def _assemble(self) -> Path:
        """Put the files of the stages into one folder; cheap to do again after a kill."""
        stages = ("tables", f"near/{FILES}", "lexical", "dense", "sparse")
        folder = self.workspace.assembled(stages)
        text = recipe_dump.dump(self.recipe)
        (folder / "recipe.toml").write_text(text, encoding="utf-8", newline="\n")
        kill_point("assembled")
        return folder

    def _questions(self, folder: Path, sources: Sequence[Source]) -> None:
        questions = [
            question
            for source in sources
            if isinstance(source, AsksQuestions)
            for question in source.questions()
        ]
        if not questions:
            return
        store = PageStore.open(folder / "pages.sqlite")
        try:
            kept, dropped = write_questions(folder / "questions.jsonl", questions, store)
        finally:
            store.close()
        self.report.counts["questions"] = kept
        if dropped:
            self.report.notes["question without its evidence in the world"] = dropped

    def _clock(self, snapshot: Snapshot) -> Instant:
        if self.recipe.clock is not None:
            return self.recipe.clock
        if not snapshot.present:
            self.report.notes[NO_CLOCK] = 1
        return snapshot.present

    def _with_canaries(self, folder: Path, manifest: Manifest) -> Manifest:
        """Open the world as a server would and ask it; fill in what only it can say."""
        manifests.write(folder, manifest)
        generation = Generation.open(folder, verify=False, threads=self.options.workers)
        try:
            canaries = ask_canaries(generation, self.recipe.canaries)
            engine = generation.lexical.engine
        finally:
            generation.close()
        lexical = manifest.lexical.model_copy(update={"engine_version": engine})
        return manifest.model_copy(update={"lexical": lexical, "canaries": canaries})

    def _finish(self, manifest: Manifest, target: Path) -> None:
        report = self.report
        report.world_id = manifest.world_id
        report.folder = str(target.parent)
        counts = manifest.counts.model_dump(exclude={"dropped"})
        report.counts = {**counts, **report.counts}
        for path, digest in manifest.files.items():
            part = path.partition("/")[0]
            report.bytes_by_part[part] = report.bytes_by_part.get(part, 0) + digest.bytes
        report.seconds = time.monotonic() - self.began
        report.write(publish.report_path(target))

    @contextmanager
    def _stage(self, name: str, unit: str, total: int = 0) -> Iterator[StageReport]:
        stage = StageReport(name, 0, 0, unit=unit)
        self.progress.start(name, unit, total)
        yield stage
        seconds = self.progress.finish()
        stage.seconds = seconds if stage.done else 0.0
        self.report.stages.append(stage)

    def _teller(self, stage: StageReport) -> Callable[[int], None]:
        def tell(count: int) -> None:
            stage.done += count
            self.progress.tell(count)

        return tell
