"""A topic: its name, its partitions' ids and its own configurations."""

from msgspec import Struct, field

from exacta.core.ids import PartitionId, TransactionId
from exacta.core.values.transaction_buffer import TRANSACTION_BUFFER


class Topic(Struct, array_like=True):
    """A topic. Its first partitions' ids follow one another, those of partitions added later are in `added`."""

    topic: str
    topic_id: bytes
    first_partition_id: PartitionId
    created_count: int
    """The number of partitions that it was created with."""
    configs: dict[str, str]
    added: list[PartitionId] = field(default_factory=list)
    buffers: list[tuple[TransactionId, str]] = field(default_factory=list)
    """The value of `transaction.buffer` for transactions up to each of these, which may be open; empty: not set."""

    @property
    def partition_count(self) -> int:
        """Return how many partitions there are now."""
        return self.created_count + len(self.added)

    @property
    def partition_ids(self) -> list[PartitionId]:
        """Return the ids of all partitions, in the order of their indexes."""
        first = self.first_partition_id
        return [*map(PartitionId, range(first, first + self.created_count)), *self.added]

    def partition_id(self, index: int) -> PartitionId | None:
        """Return the id of a partition; None if there is none of this index."""
        if 0 <= index < self.created_count:
            return PartitionId(self.first_partition_id + index)
        if 0 <= index < self.partition_count:
            return self.added[index - self.created_count]
        return None

    def set_configs(self, configs: dict[str, str], last_open: TransactionId) -> None:
        """Replace the configurations; open transactions, up to `last_open` (-1: none), keep their buffer."""
        before = self.configs.get(TRANSACTION_BUFFER, "")
        if last_open < 0:
            self.buffers = []
        elif configs.get(TRANSACTION_BUFFER, "") != before and (not self.buffers or self.buffers[-1][0] < last_open):
            self.buffers.append((last_open, before))
        self.configs = configs

    def buffer_of(self, transaction_id: TransactionId) -> str:
        """Return the value of `transaction.buffer` that holds for a transaction; empty: the cluster's default."""
        for last, value in self.buffers:
            if transaction_id <= last:
                return value
        return self.configs.get(TRANSACTION_BUFFER, "")
