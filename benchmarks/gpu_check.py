"""What a GPU gives to exact dense search and to encoding; needs torch and numpy alone.

usage: gpu_check.py [--device cuda] [--seconds 300] [--share 0.85] [--rows N] [--dim N ...]

Prints one JSON object:

``copy``: bytes a second of copying memory on the device, read and written, the limit of a search.
``flat``: for each number of components, exact search of codes by the torch tier itself, over as
many vectors as fit: rows, milliseconds and bytes a second for batches of 1 and 32, and their
share of the copy (the bar is 0.8 at batch 1); ``products`` is the multiplication alone, in the
forms that were tried. ``ids_agree``: whether the rows found on a subsample are those of the CPU by
whole numbers; ``products_exact``: whether the products are those whole numbers to the last bit.
``encoder``: tokens a second of random models of the shape of MiniLM (6 layers of 384) and BGE-M3
(24 layers of 1,024), by batch. ``faiss``: what FAISS does on the GPU, or why it was not asked.

A part that fails is reported under its name as ``error`` and the others go on. Parts are skipped
once ``--seconds`` are over.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

if not __package__:  # run as a script, where nothing of ours is installed
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from world_core.indexes.codes import Coded
from world_core.indexes.flat import TorchFlat, products

SHAPES = {"minilm": (6, 384, 12, 1536, 30522), "bge-m3": (24, 1024, 16, 4096, 250002)}
BATCHES = (1, 32)
K = 132  # what the engine asks for: 100 candidates and 32 more
CHUNK = 1 << 18  # rows made at a time
Json = dict[str, Any]


class Device:
    """The device under test, how to wait for it, and the least seconds of a measurement."""

    def __init__(self, name: str, least: float = 0.0) -> None:
        self.least = least
        self.place = torch.device(name)
        self.is_gpu = self.place.type == "cuda"
        if not self.is_gpu:
            torch.set_num_threads(1)  # threads that wait for each other say nothing of the code

    def wait(self) -> None:
        """Wait until everything asked of the device is done."""
        if self.is_gpu:
            torch.cuda.synchronize(self.place)

    def free(self) -> int:
        """Return the bytes that can be taken; on a CPU what the check allows itself."""
        return int(torch.cuda.mem_get_info(self.place)[0]) if self.is_gpu else 1 << 30

    def describe(self) -> Json:
        """Return name, memory and versions."""
        found: Json = {"torch": torch.__version__, "cuda": torch.version.cuda, "kind": "cpu"}
        if self.is_gpu:
            properties = torch.cuda.get_device_properties(self.place)
            found |= {"kind": properties.name, "bytes": properties.total_memory}
        return found


def timed(device: Device, work: Callable[[], object], *, most: int = 50) -> float:
    """Return the median seconds of a call, after one to warm up."""
    work()
    device.wait()
    spans: list[float] = []
    started = time.perf_counter()
    while len(spans) < 3 or (time.perf_counter() - started < device.least and len(spans) < most):
        begun = time.perf_counter()
        work()
        device.wait()
        spans.append(time.perf_counter() - begun)
    return float(np.median(spans))


def copy_rate(device: Device, size: int) -> Json:
    """Return bytes a second of a copy on the device, each byte read and written."""
    source = torch.ones(size, dtype=torch.uint8, device=device.place)
    target = torch.empty_like(source)
    seconds = timed(device, lambda: target.copy_(source))
    return {"bytes": size, "seconds": seconds, "bytes_per_s": 2 * size / seconds}


def random_codes(rows: int, dim: int, seed: int, device: Device) -> torch.Tensor:
    """Return int8 codes (rows, dim) by a seed, made on the device."""
    generator = torch.Generator(device=device.place).manual_seed(seed)
    return torch.randint(
        -127, 128, (rows, dim), generator=generator, dtype=torch.int8, device=device.place
    )


def halves(rows: int, dim: int, seed: int, device: Device) -> torch.Tensor:
    """Return codes in half precision, made a chunk at a time so that no more memory is needed."""
    table = torch.empty((rows, dim), dtype=torch.float16, device=device.place)
    for start in range(0, rows, CHUNK):
        part = table[start : start + CHUNK]
        part.copy_(random_codes(len(part), dim, seed + start, device))
    return table


def flat(device: Device, dim: int, rows: int, copy: float) -> Json:
    """Measure exact search over rows of so many components."""
    table = halves(rows, dim, 1, device)
    # The products stay whole numbers; the scales only need to differ.
    tier = TorchFlat(torch, table, torch.linspace(0.9, 1.1, rows, device=device.place) / 127)
    size = table.numel() * table.element_size()
    found: Json = {"rows": rows, "dim": dim, "bytes": size, "batches": {}}
    for batch in BATCHES:
        queries = on_host(random_codes(batch, dim, 2, device))
        seconds = timed(device, partial(tier.nearest, queries, K, None, 1))
        found["batches"][batch] = _rate(seconds, size, copy) | {"queries_per_s": batch / seconds}
    found["products"] = product_forms(device, table, copy)
    found |= agreement(device, dim)
    return found


def product_forms(device: Device, table: torch.Tensor, copy: float) -> Json:
    """Measure the multiplication alone for one query, in the forms a tier could use."""
    part = table[: 1 << 22]
    size = part.numel() * part.element_size()
    one = random_codes(1, part.shape[1], 2, device).half()
    padded = random_codes(8, part.shape[1], 2, device).half()
    forms: dict[str, Callable[[], object]] = {
        "mm": lambda: products(torch, one, part),
        "mm of 8": lambda: products(torch, padded, part),
        "mv in half": lambda: torch.mv(part, one[0]),
    }
    if not device.is_gpu:
        del forms["mv in half"]
    return {name: _rate(timed(device, form), size, copy) for name, form in forms.items()}


def agreement(device: Device, dim: int, rows: int = 20_000, batch: int = 8, k: int = 100) -> Json:
    """Compare a subsample with whole numbers on the CPU."""
    host = Device("cpu")
    codes, queries = random_codes(rows, dim, 3, host), random_codes(batch, dim, 4, host)
    whole = queries.numpy().astype(np.int64) @ codes.numpy().astype(np.int64).T
    table = codes.to(device.place).half()
    there = products(torch, queries.to(device.place), table).cpu().numpy()
    tier = TorchFlat(torch, table, torch.ones(rows, device=device.place))
    found = tier.nearest(on_host(queries), k, None, 1)
    best = -np.sort(-whole, axis=1)[:, :k]
    mine = np.stack([whole[place][one.rows] for place, one in enumerate(found)])
    errors = [np.abs(one.scores - mine[place]).max() for place, one in enumerate(found)]
    return {
        "products_exact": bool((there == whole).all()),
        "ids_agree": bool((-np.sort(-mine, axis=1) == best).all()),
        "largest_error": float(max(errors)),
    }


def on_host(codes: torch.Tensor) -> Coded:
    """Return queries as the engine gives them to a tier, with scales of 1."""
    return Coded(codes.cpu().numpy(), np.ones(len(codes), dtype=np.float32))


def encoder(device: Device, shape: str, layers: int | None) -> Json:
    """Measure a random encoder of a shape: 128 tokens a text, half precision on a GPU."""
    depth, width, heads, inner, words = SHAPES[shape]
    kind = torch.float16 if device.is_gpu else torch.float32
    layer = torch.nn.TransformerEncoderLayer(
        width, heads, inner, dropout=0.0, activation="gelu", batch_first=True
    )
    model = torch.nn.TransformerEncoder(layer, layers or depth).to(device.place, kind).eval()
    table = torch.nn.Embedding(words, width, dtype=kind, device=device.place)
    parameters = sum(weight.numel() for weight in (*model.parameters(), *table.parameters()))
    found: Json = {"parameters": parameters, "layers": layers or depth, "tokens_per_s": {}}
    for batch in (1, 32, 256) if device.is_gpu else (1, 4):
        tokens = torch.randint(0, words, (batch, 128), device=device.place)

        def encode(tokens: torch.Tensor = tokens) -> object:
            return torch.nn.functional.normalize(model(table(tokens)).mean(dim=1), dim=1)

        seconds = timed(device, encode)
        found["tokens_per_s"][batch] = tokens.numel() / seconds
    return found


def faiss_gpu(device: Device, rows: int, dim: int = 384) -> Json:
    """Measure FAISS on the GPU where it is installed: flat, cells and CAGRA."""
    try:
        faiss = importlib.import_module("faiss")
    except ModuleNotFoundError:
        return {"skipped": "the package faiss is not installed"}
    if not device.is_gpu or not hasattr(faiss, "StandardGpuResources") or not faiss.get_num_gpus():
        return {"skipped": f"FAISS {faiss.__version__} finds no GPU"}
    source = np.random.default_rng(5)
    vectors = source.standard_normal((rows, dim), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    queries = vectors[:32] + 0.1 * source.standard_normal((32, dim), dtype=np.float32)
    resources = faiss.StandardGpuResources()
    options = faiss.GpuIndexFlatConfig()
    options.useFloat16 = True
    exact = faiss.GpuIndexFlatIP(resources, dim, options)
    found: Json = {"version": faiss.__version__, "rows": rows, "dim": dim}
    kinds: dict[str, Callable[[], Any]] = {
        "flat": lambda: exact,
        "ivf": lambda: faiss.GpuIndexIVFScalarQuantizer(
            resources, dim, 4096, faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT
        ),
    }
    if hasattr(faiss, "GpuIndexCagra"):
        kinds["cagra"] = lambda: faiss.GpuIndexCagra(resources, dim, faiss.METRIC_L2)
    truth: Any = None
    for name, make in kinds.items():
        index = make()
        begun = time.perf_counter()
        index.train(vectors)
        if name != "cagra":
            index.add(vectors)
        build = time.perf_counter() - begun
        ids = index.search(queries, 10)[1]
        truth = ids if truth is None else truth
        found[name] = {
            "build_s": build,
            "recall_10": float(
                np.mean([len(set(a) & set(b)) / 10 for a, b in zip(ids, truth, strict=True)])
            ),
            "ms": {
                batch: timed(device, partial(index.search, queries[:batch], K)) * 1e3
                for batch in BATCHES
            },
        }
    return found


def _rate(seconds: float, size: int, copy: float) -> Json:
    """Return milliseconds, bytes a second, and their share of a copy's, which reads and writes."""
    return {
        "ms": seconds * 1000,
        "bytes_per_s": size / seconds,
        "of_copy": size / seconds / copy,
    }


def check(options: argparse.Namespace) -> Json:
    """Run the parts in order and return what they found."""
    device, started = Device(options.device, options.least), time.perf_counter()
    found: Json = {"device": device.describe()}
    size = min(device.free() // 4, options.copy_bytes)
    parts: dict[str, Callable[[], Json]] = {"copy": lambda: copy_rate(device, size)}
    for dim in options.dim:
        parts[f"flat {dim}"] = partial(_flat_part, device, dim, options, found)
    for shape in options.shape:
        parts[f"encoder {shape}"] = partial(encoder, device, shape, options.layers)
    parts["faiss"] = lambda: faiss_gpu(device, options.faiss_rows)
    for name, part in parts.items():
        begun = time.perf_counter()
        if begun - started > options.seconds:
            found[name] = {"skipped": f"{options.seconds} s are over"}
            continue
        try:
            with torch.inference_mode():
                found[name] = part()
        except RuntimeError as error:  # also what torch and FAISS raise for want of memory
            found[name] = {"error": f"{type(error).__name__}: {error}"[:500]}
        found[name]["took_s"] = round(time.perf_counter() - begun, 1)
        if device.is_gpu:
            torch.cuda.empty_cache()
    found["passed"] = passed(found, options.dim)
    return found


def _flat_part(device: Device, dim: int, options: argparse.Namespace, found: Json) -> Json:
    rows = options.rows or fitting(device, dim, options.share)
    return flat(device, dim, rows, _copied(found))


def fitting(device: Device, dim: int, share: float) -> int:
    """Return how many rows in half precision fit a share of the free memory."""
    return max(1000, int(device.free() * share) // (2 * dim + 4))


def passed(found: Mapping[str, Json], dims: list[int]) -> Json:
    """Return which bars were met; ``None`` where a part did not run."""
    met: Json = {}
    for dim in dims:
        part = found.get(f"flat {dim}", {})
        batches = part.get("batches", {})
        met[f"flat {dim} at 0.8 of copy"] = batches[1]["of_copy"] >= 0.8 if batches else None
        met[f"flat {dim} ids"] = part.get("ids_agree")
    return met


def _copied(found: Mapping[str, Json]) -> float:
    return float(found["copy"].get("bytes_per_s", float("nan")))


def main() -> int:
    """Print the JSON; the exit code is 1 when a bar was missed, 2 when there is no such device."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--share", type=float, default=0.85, help="of the free memory to fill")
    parser.add_argument("--rows", type=int, default=0, help="rows instead of as many as fit")
    parser.add_argument("--dim", type=int, nargs="+", default=[1024, 384])
    parser.add_argument("--layers", type=int, help="layers of the encoders instead of all")
    parser.add_argument("--copy-bytes", type=int, default=8 << 30)
    parser.add_argument("--shape", nargs="*", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--least", type=float, default=2.0, help="seconds of each measurement")
    parser.add_argument("--faiss-rows", type=int, default=1_000_000)
    options = parser.parse_args()
    if torch.device(options.device).type == "cuda" and not torch.cuda.is_available():
        print(json.dumps({"error": f"torch {torch.__version__} sees no GPU; try --device cpu"}))
        return 2
    found = check(options)
    print(json.dumps(found, indent=1))
    return int(options.device != "cpu" and False in found["passed"].values())


if __name__ == "__main__":
    sys.exit(main())
