"""The values that driver and tasks tell each other. Spark pickles them, so they are plain."""

from collections.abc import Collection, Mapping

from msgspec import Struct

from exacta.client.transactions import Producer, TopicPartition


class Prepared(Struct, frozen=True, kw_only=True):
    """The facts that the tasks of a batch, and its commit, must know. They travel with the writer."""

    name: str  # the query's, on the cluster
    query_id: str
    driver: Producer
    marker: TopicPartition
    decided_batch: int  # -1: none yet
    committed_tasks: frozenset[int] | None  # None: all of the decided batch; else only these of it

    def is_committed_in_part(self, batch_id: int) -> bool:
        """Return whether some of a batch's tasks are committed and some are not. Then only tasks can write the rest."""
        return batch_id == self.decided_batch and self.committed_tasks is not None


class TaskResult(Struct, frozen=True, kw_only=True):
    """The report of a task about itself."""

    task: int
    attempt: int
    driver: Producer
    producer: Producer | None  # None: no rows, or its rows were committed already; the driver's own: of a shared one
    rows: int
    replayed: bool = False
    partly: bool = False  # of this batch, only some tasks are committed
    partitions: frozenset[TopicPartition] = frozenset()  # that the transaction must hold
    application: str = ""  # what Spark calls the job; empty: not known

    @property
    def shared(self) -> bool:
        """Return whether the rows are in the driver's own transaction."""
        return self.producer == self.driver


Written = Mapping[Producer, Collection[TopicPartition]]
"""The transactions of a batch, and the partitions that each must hold."""
