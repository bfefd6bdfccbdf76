"""bm25s behind the same kind of server as its users write: one process, a synchronous handler.

Runs in the environment of the peers.

usage: PYTHON peers_bm25s.py FOLDER PORT
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import bm25s
import Stemmer
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel


class Question(BaseModel):
    """The body of ``POST /retrieve``."""

    query: str
    topk: int = 10


def main() -> None:
    """Index the passages, serve until told to end."""
    folder, port = Path(sys.argv[1]), int(sys.argv[2])
    with (folder / "docs.jsonl").open(encoding="utf-8") as file:
        docs = [json.loads(line) for line in file]
    stemmer = Stemmer.Stemmer("english")
    texts = [f"{doc['title']}\n{doc['text']}" for doc in docs]
    retriever = bm25s.BM25(k1=0.9, b=0.4)
    tokens = bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False)
    retriever.index(tokens, show_progress=False)
    app = FastAPI()

    @app.get("/ready")
    def ready() -> dict[str, str]:
        return {"status": "ready"}

    @app.post("/retrieve")
    def retrieve(question: Question) -> dict[str, object]:
        asked = bm25s.tokenize(
            [question.query], stopwords="en", stemmer=stemmer, show_progress=False
        )
        places, scores = retriever.retrieve(asked, k=question.topk, show_progress=False)
        hits = zip(places[0], scores[0], strict=True)
        return {"result": [{**docs[place], "score": float(score)} for place, score in hits]}

    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", access_log=False)


if __name__ == "__main__":
    main()
