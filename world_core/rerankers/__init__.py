"""Rerankers: a score for a query and a passage read together."""
