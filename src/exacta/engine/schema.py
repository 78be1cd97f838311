"""The schema of what the engine gives a journal to keep: the numbers of the core's events and snapshots."""

from exacta.core.event_codec import EVENTS_SCHEMA
from exacta.core.snapshot import SNAPSHOT_SCHEMA
from exacta.ports.journal import Schema

SCHEMA = Schema(writes=f"events {EVENTS_SCHEMA}, snapshot {SNAPSHOT_SCHEMA}", reads=("events 2, snapshot 2",))
"""The schema that the adapter is given when it opens a journal, and the older ones that it may find there."""
