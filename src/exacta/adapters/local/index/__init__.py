"""Indexes that say where the batches of each stream lie: in a segment, and in the whole journal."""
