"""A dense retriever served the way Search-R1's users serve theirs, to compare with.

One process, one FastAPI file, a synchronous handler: it encodes the queries of the request, asks a
FAISS index for the nearest vectors, and looks the documents up in a list in memory. Written from
the description of the interface. The encoder is the one our server uses, so that the work is equal.

usage: python -m benchmarks.peers_search_r1 FOLDER --port N [--index flat] [--encoder KIND]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import faiss
import numpy as np
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

from world_core.encoders.loading import load


class Question(BaseModel):
    """The body of ``POST /retrieve``."""

    queries: list[str]
    topk: int | None = None
    return_scores: bool = False


def make_app(folder: Path, kind: str, encoder_kind: str) -> FastAPI:
    """Load passages, vectors and encoder, and return the app."""
    with (folder / "docs.jsonl").open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    docs = [{"id": row["id"], "contents": f'"{row["title"]}"\n{row["text"]}'} for row in rows]
    vectors = np.load(folder / "vectors.npy", allow_pickle=False)
    index = make_index(vectors, kind)
    encoder = load(encoder_kind, {})
    app = FastAPI()

    @app.get("/ready")
    def ready() -> dict[str, str]:
        return {"status": "ready"}

    @app.post("/retrieve")
    def retrieve(question: Question) -> dict[str, object]:
        found = encoder.encode_queries(question.queries)
        scores, places = index.search(found, question.topk or 3)
        return {
            "result": [
                [
                    {"document": docs[place], "score": float(score)}
                    if question.return_scores
                    else docs[place]
                    for score, place in zip(some_scores, some, strict=True)
                    if place >= 0
                ]
                for some_scores, some in zip(scores, places, strict=True)
            ]
        }

    return app


def make_index(vectors: np.ndarray, kind: str) -> faiss.Index:
    """Return an inner-product index over float32 vectors: all rows scanned, or cells."""
    count, dim = vectors.shape
    if kind == "flat":
        index: faiss.Index = faiss.IndexFlatIP(dim)
    else:
        cells = max(1, min(int(4 * count**0.5), count // 39))
        index = faiss.IndexIVFFlat(faiss.IndexFlatIP(dim), dim, cells, faiss.METRIC_INNER_PRODUCT)
        index.train(vectors)
        index.nprobe = 64
    index.add(vectors)
    return index


def main() -> None:
    """Serve until told to end."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--index", choices=("flat", "ivf"), default="flat")
    parser.add_argument("--encoder", default="onnx-minilm")
    options = parser.parse_args()
    app = make_app(options.folder, options.index, options.encoder)
    uvicorn.run(app, host="127.0.0.1", port=options.port, log_level="warning", access_log=False)


if __name__ == "__main__":
    main()
