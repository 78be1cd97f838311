"""Damaged journals: what is sound, what can be mended, and the journal rewritten."""
