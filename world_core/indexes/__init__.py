"""Ways to find units of a world: lexical (BM25) and dense (vectors)."""
