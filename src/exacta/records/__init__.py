"""The record batches that lie in the log: their admission, their compaction, their format for the engine."""
