"""Builds worlds from crawls: sources, extraction, snapshots, indexing, publishing."""
