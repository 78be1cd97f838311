"""Freeing space: cleaning of sealed segments, and compaction."""
