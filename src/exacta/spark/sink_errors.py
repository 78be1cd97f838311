"""Why the sink cannot go on. Each message is one sentence for the user, with the remedy."""

from __future__ import annotations

import pickle


class SinkError(RuntimeError):
    """The sink cannot go on; the message is one sentence for the user."""


class NewerDriver(SinkError):
    """Another run of the same query has taken over."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"query {name} was taken over by a newer run of it (or the cluster let this one wait for longer than its "
            "transaction time-out with its decision, or the broker's machine stopped); this one decides nothing any "
            "more and must end"
        )


class EndedBeforeItsTime(SinkError):
    """A transaction of a batch was not open any more when the batch was to be decided: nothing of it is visible."""

    def __init__(self, transactional_id: str, transaction_timeout_ms: int) -> None:
        super().__init__(
            f"transaction '{transactional_id}' was ended before its batch was decided: by another run of the query, or "
            f"because the batch took longer than option 'kafka.transaction.timeout.ms' ({transaction_timeout_ms}), or "
            "the broker's machine stopped; nothing of the batch is visible, start the query again"
        )


class CopiedCheckpoint(SinkError):
    """The checkpoint belongs to another place."""


class ForeignRecords(SinkError):
    """The name that the user gave the job has records of another query."""


class HalfCommitted(SinkError):
    """Some transactions of a decided batch timed out and some did not."""


class RefusedWhilePickling(SinkError, pickle.PickleError):
    """What a writer refuses when Spark pickles it: of all errors there, Spark hands on only these as they are."""
