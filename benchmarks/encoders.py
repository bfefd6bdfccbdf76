"""CPU time of encoders on the same texts, taken in turns within one run.

usage:
    encoders.py TEXTS.jsonl KIND [KIND ...] [--passages N] [--queries N] [--characters N]

A kind may have arguments: ``onnx-e5:precision=fp32``. Passages are the texts cut to
``--characters`` and given one at a time; queries are their first eight words. Each encoder has one
thread; the last two columns are ratios to the first encoder.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from world_core.encoders.base import Encoder
from world_core.encoders.loading import load
from world_core.types import Vectors

Encode: TypeAlias = Callable[[Sequence[str]], Vectors]


def main() -> int:
    """Measure and print one line an encoder."""
    options = parser().parse_args()
    passages = read_texts(options.texts, options.passages, options.characters)
    queries = [" ".join(text.split()[:8])[:100] for text in passages][: options.queries]
    encoders = [opened(kind) for kind in options.kinds]
    in_passages = turns([encoder.encode_passages for encoder in encoders], passages)
    in_queries = turns([encoder.encode_queries for encoder in encoders], queries)
    print(f"{len(passages)} passages of {sum(map(len, passages)) / len(passages):.0f} characters")
    for kind, passage, query in zip(options.kinds, in_passages, in_queries, strict=True):
        print(
            f"{kind:28} {1 / passage:7.1f} passages/CPU s {query * 1000:7.2f} CPU ms/query"
            f" {in_passages[0] / passage:6.2f} x {in_queries[0] / query:6.2f} x"
        )
    print(f"peak memory of all together {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss} KiB")
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    top = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    top.add_argument("texts", type=Path, help="lines with a field text")
    top.add_argument("kinds", nargs="+")
    top.add_argument("--passages", type=int, default=40)
    top.add_argument("--queries", type=int, default=40)
    top.add_argument("--characters", type=int, default=1000)
    return top


def opened(kind: str) -> Encoder:
    """Load an encoder with one thread by its kind and arguments."""
    name, _, rest = kind.partition(":")
    return load(name, dict(part.split("=", 1) for part in rest.split(",") if part), threads=1)


def read_texts(path: Path, count: int, characters: int) -> list[str]:
    """Return the first texts that are long enough, cut."""
    with path.open(encoding="utf-8") as lines:
        texts = (json.loads(line)["text"] for line in lines)
        return list(islice((t[:characters] for t in texts if len(t) >= characters), count))


def turns(
    encode: Sequence[Callable[[Sequence[str]], Vectors]], texts: Sequence[str]
) -> list[float]:
    """Return the mean CPU seconds of a text by encoder; each text goes to all of them in turn."""
    spent = [0.0] * len(encode)
    for one in encode:
        one(texts[:1])
    for text in texts:
        for number, one in enumerate(encode):
            start = time.process_time()
            one([text])
            spent[number] += time.process_time() - start
    return [seconds / len(texts) for seconds in spent]


if __name__ == "__main__":
    sys.exit(main())
