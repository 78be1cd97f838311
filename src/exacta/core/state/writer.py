"""A named writer, over all partitions."""

from msgspec import Struct, field

from exacta.core.ids import NO_PRINCIPAL, PartitionId, PrincipalName, WriterId


class KnownWriter(Struct, array_like=True):
    """A writer whose name has a number; its sequences are in the partitions (`Partition.named_sequences`)."""

    writer_id: WriterId
    name: str
    last_append_ms: int
    partitions: set[PartitionId] = field(default_factory=set)
    """The partitions that know a sequence of the writer."""
    principal: PrincipalName = NO_PRINCIPAL
    """The principal of the client that wrote under the name first."""
