"""The errors after which the sink cannot go on. Each message is one sentence for the user, with the remedy."""

import pickle
from collections.abc import Sequence
from typing import Self


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


class NoWorkQueue(SinkError):
    """The cluster does not end a batch together with acknowledgements."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(
            f"{bootstrap} is not an Exacta, or is an older one: only an Exacta ends a micro-batch together with "
            "acknowledgements of Pulsar's messages, so use one, or leave argument 'acknowledge' out"
        )


class CopiedCheckpoint(SinkError):
    """The checkpoint belongs to another place."""

    @classmethod
    def of(cls, query_id: str, location: str, committed_from: str) -> Self:
        """Return the error for the checkpoint of a query at `location`, which has committed from another one."""
        return cls(
            f"the checkpoint at '{location}' is a copy: query {query_id} has committed from '{committed_from}', and "
            "two jobs on copies of one checkpoint would skip each other's rows; start this job with a new checkpoint, "
            f"or, if you moved it, set option 'checkpoint.moved.from' to '{committed_from}'"
        )


class MayComeTwice(SinkError):
    """Nobody knows whether a batch was written before. `batch_id` is its number."""

    def __init__(self, why: str, batch_id: int) -> None:
        self.batch_id = batch_id
        super().__init__(
            f"{why} To write it all the same, set option 'checkpoint.adopt.batch' to '{batch_id}': rows of batch "
            f"{batch_id} may then be there twice. The option allows this one batch, and no later one"
        )


class IdentityChanged(MayComeTwice):
    """An option that names the sink on the cluster was changed.

    `changes` has each option, its old value and its new one.
    """

    def __init__(self, location: str, changes: Sequence[tuple[str, str | None, str | None]], batch_id: int) -> None:
        told = " and ".join(_changed(*change) for change in changes)
        back = " and ".join(
            f"leave '{name}' out" if before is None else f"set '{name}' to '{before}'" for name, before, _ in changes
        )
        further = ""
        if any(name == "sink.name" for name, _, _ in changes):
            further = " (if this is a further sink, call write for it after the sinks that were there before)"
        super().__init__(
            f"since the query with the checkpoint at '{location}' has written, {told}: as it is now, the sink cannot "
            f"know whether batch {batch_id} was written before. To go on as before, {back}{further}.",
            batch_id,
        )


class RecordsForgotten(MayComeTwice):
    """The cluster has no record of what the sink has committed."""

    def __init__(self, name: str, batch_id: int) -> None:
        super().__init__(
            f"the cluster has forgotten what the sink '{name}' has committed: its records expired "
            "('offsets.retention.minutes'), or its groups or the topic with its replay markers were deleted, or this "
            f"is another cluster. The sink may have committed batch {batch_id} before. Look whether its rows are "
            "there: if they are, go on with a new checkpoint that begins behind them.",
            batch_id,
        )


class OlderCheckpoint(SinkError):
    """The sink has committed batches that the checkpoint does not know of, and the cluster has forgotten which."""

    def __init__(self, location: str, noted: int, shown: str) -> None:
        super().__init__(
            f"the checkpoint at '{location}' is older than what the sink has written: its note ends with batch "
            f"{noted}, and {shown}. Was it restored from a copy? It would write the batches in between once more: "
            "start the query with a new checkpoint that begins behind what is there"
        )


class UnknownPast(MayComeTwice):
    """The checkpoint is in the middle of its life, and this sink has never written from it."""

    def __init__(self, location: str, batch_id: int) -> None:
        super().__init__(
            f"the query with the checkpoint at '{location}' has come to batch {batch_id} without this sink: it wrote "
            "with another one before, format('kafka') for example. If that sink was stopped in the middle of batch "
            f"{batch_id}, it has written rows of it already.",
            batch_id,
        )


class ForeignRecords(SinkError):
    """The name that the user gave the job has records of another query."""


class HalfCommitted(SinkError):
    """Some transactions of a decided batch timed out and some did not."""


class RefusedWhilePickling(SinkError, pickle.PickleError):
    """The refusal of a writer while Spark pickles it.

    Of all errors there, Spark hands on only those of this class as they are.
    """


def _changed(name: str, before: str | None, now: str | None) -> str:
    if now is None:
        return f"option '{name}' was removed (it was '{before}')"
    return f"option '{name}' was changed " + (f"from '{before}' " if before is not None else "") + f"to '{now}'"
