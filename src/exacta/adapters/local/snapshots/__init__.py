"""Snapshots of the engine's state: their files, and when one is made."""
