"""Why the sink cannot go on. Each message is one sentence for the user, with the remedy."""

from __future__ import annotations


class SinkError(RuntimeError):
    """The sink cannot go on; the message is one sentence for the user."""


class NewerDriver(SinkError):
    """Another run of the same query has taken over."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"query {name} was taken over by a newer run of it (or the cluster let this one wait for longer than its "
            "transaction time-out with its decision); this one decides nothing any more and must end"
        )


class CopiedCheckpoint(SinkError):
    """The checkpoint belongs to another place."""


class ForeignRecords(SinkError):
    """The name that the user gave the job has records of another query."""


class HalfCommitted(SinkError):
    """Some transactions of a decided batch timed out and some did not."""
