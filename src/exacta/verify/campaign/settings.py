"""The settings of a run."""

from pathlib import Path

from msgspec import Struct

from exacta.verify.history import Workload

SIDECAR = "sidecar"
"""The value of `transaction.buffer` for topics into which transactions enter whole, in the order of their commits."""
TRANSACTION_BUFFERS = ("marker", SIDECAR)


class CampaignSettings(Struct, frozen=True, kw_only=True):
    """One run. Intervals are means, in seconds."""

    workloads: tuple[Workload, ...] = tuple(Workload)
    duration_s: float = 60.0
    most_commits: int | None = None
    """End early when this many transactions are committed, some of each kind of client, and `least_faults` faults are
    over."""
    least_faults: int = 0
    producers: int = 2
    rate: float = 10.0
    partitions: int = 3
    replication_factor: int = -1
    transaction_buffer: str = ""
    """The topics' `transaction.buffer`, which only Exacta has; empty: it is not set."""
    seed: int
    kill_clients_every_s: float = 5.0
    """0: never."""
    restart_command: str | None = None
    kill: str | None = None
    """A process id, or a file that has one, of a broker that is to be killed."""
    restart_every_s: float = 20.0
    pulsar_url: str = ""
    """The address of Pulsar's protocol, if Pulsar's clients are to take part."""
    dawdle_chance: float = 1 / 200
    """The chance that a member of the etl group is slow, if there are several members."""
    keep_topics: bool = False
    directory: Path
    """The directory for the history and for the output of the processes. It is made once the cluster has answered."""


class CampaignError(Exception):
    """The run cannot begin, or cannot go on; the message is one line."""
