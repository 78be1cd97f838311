"""The orders of a client process: one JSON object on its standard input."""

from enum import StrEnum

import msgspec

from exacta.verify.history import Isolation


class Role(StrEnum):
    """The part that a client process plays."""

    APPEND = "append"
    TRANSFER = "transfer"
    LOAD = "load"
    """A process that writes the input which etl transforms."""
    ETL = "etl"
    APPEND_PULSAR = "append-pulsar"
    """A process that sends messages by Pulsar's client."""
    LOAD_PULSAR = "load-pulsar"
    """A process that sends messages by Pulsar's client, which etl transforms."""
    TRANSFER_PULSAR = "transfer-pulsar"
    """A process that transfers amounts in Pulsar transactions."""
    TRANSFER_JOINT = "transfer-joint"
    """A process that takes an amount by Kafka's producer and gives it by Pulsar's side, in one joint transaction."""
    READER = "reader"
    FINAL = "final"

    @property
    def has_transactional_id(self) -> bool:
        """Return whether the process has a transactional id, of which something may be left open."""
        return self in (Role.APPEND, Role.TRANSFER, Role.LOAD, Role.ETL, Role.TRANSFER_JOINT)


class Spec(msgspec.Struct, frozen=True, kw_only=True):
    """One client. Settings with secrets travel in here, not on a command line that everybody can see."""

    role: Role
    process: str
    incarnation: int
    seed: str
    epoch_ns: int
    """The time at which the run began, by the monotonic clock of this machine."""
    client: dict[str, str]
    """librdkafka's settings: how the cluster is reached."""
    pulsar: str = ""
    """The address of Pulsar's protocol."""
    topics: dict[str, int] = {}
    """The topics that are written or read, and their partitions."""
    transactional_id: str = ""
    rate: float = 10.0
    """Transactions a second, at most."""
    isolation: Isolation = Isolation.COMMITTED
    group: str = ""
    source: str = ""
    """Return the topic that etl reads."""
    dawdle_chance: float = 0.0
    """The chance that a member of the group is so slow, in the midst of a transaction, that the group goes on without
    it."""
    until: dict[str, list[int]] = {}
    """The end offset of each partition, for the final read."""

    @property
    def name(self) -> str:
        """Return the text that the names of its transactions and sessions begin with."""
        return f"{self.process}.{self.incarnation}"
