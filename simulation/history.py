"""The history of a world: everything that its clients did and saw, which is all that the analysis knows.

Owns data only. A *writing* is what its client takes for one unit: a transaction, or the life of an idempotent producer.
Values name their writing, so that each reader knows whose they are; those of records with a key say it, and whether
they are tombstones.
"""

from bisect import bisect_right
from dataclasses import dataclass, field
from enum import Enum
from math import inf

from exacta.core.log.staging import is_provisional
from exacta.core.values.transaction_buffer import SIDECAR
from simulation.told import AccessTold, OffsetsTold, OptionsTold

KEY_SIGN, TOMBSTONE_SIGN = b"~", b"!"
Place = tuple[str, int]
"""Topic and partition."""


class Outcome(Enum):
    """The client's knowledge of a writing's end."""

    NO_COMMIT = "no commit was ever asked for"
    UNKNOWN = "a commit was asked for, and nobody heard"
    COMMITTED = "committed"
    PLAIN = "not a transaction"


@dataclass(slots=True)
class Writing:
    """One unit of writing; `order` is its values' place among all of one producer's."""

    name: str
    outcome: Outcome
    values: dict[bytes, Place] = field(default_factory=dict)
    """Everything that was sent, in order, acknowledged or not."""
    acknowledged: dict[bytes, int] = field(default_factory=dict)
    """Values, and the offsets that the broker told."""


@dataclass(slots=True)
class Poll:
    """One partition's share in one answer to a reader."""

    reader: str
    answer: str
    """Shares of the same answer have the same name."""
    committed: bool
    place: Place
    from_offset: int
    next_offset: int
    log_start: int
    high_watermark: int
    last_stable: int
    records: list[tuple[int, bytes]]


@dataclass(slots=True)
class Partition:
    """The contents of a partition when all is over."""

    log_start: int = 0
    records: list[tuple[int, bytes, int]] = field(default_factory=list)
    """Offset, value and producer id, whether visible or not."""
    markers: list[tuple[int, int]] = field(default_factory=list)
    """Offset and producer id."""
    committed: dict[int, bytes] = field(default_factory=dict)
    """The records that a reader of committed records gets."""


@dataclass(slots=True)
class Entered:
    """The staged records that have entered one partition, by the events of the journal."""

    runs: list[tuple[int, int]] = field(default_factory=list)
    """The first offset and the end of each transaction, in the order of the commits."""
    offsets: dict[int, int] = field(default_factory=dict)
    """The offset of each record by the provisional offset that its writer was told."""


@dataclass(slots=True)
class History:
    """Everything. Places that are not in `final` (topics made again) are not looked at."""

    writings: dict[str, Writing] = field(default_factory=dict)
    polls: list[Poll] = field(default_factory=list)
    final: dict[Place, Partition] = field(default_factory=dict)
    committed_offsets: dict[Place, int] = field(default_factory=dict)
    """The offsets of the pipelines' group, at the end."""
    pipeline_inputs: set[Place] = field(default_factory=set)
    written: dict[Place, Partition] = field(default_factory=dict)
    """Everything that was ever written into compacted places, as if nothing had been compacted."""
    by_pulsar: dict[Place, Poll] = field(default_factory=dict)
    """Everything that a Pulsar reader gets in the end."""
    buffers: dict[str, set[str]] = field(default_factory=dict)
    """All values that `transaction.buffer` may have had in a topic; it is `marker` where nothing is said."""
    few_handles: bool = False
    """True: so few transactions of Pulsar's clients may be open that some make room for others, or are refused."""
    may_be_full: bool = False
    """True: so little may be staged that a write may be refused for that."""
    disk_fills: bool = False
    """True: the disk has a size, so that a batch may be refused for want of room, and those behind it for that."""
    entered: dict[Place, Entered] = field(default_factory=dict)
    tombstones_stay: set[Place] = field(default_factory=set)
    """The compacted places whose tombstones are to be kept for longer than the world lasts."""
    refusals: list[str] = field(default_factory=list)
    """Answers that a client got and that nobody may get."""
    pushed: list[tuple[str, Place, int, bytes]] = field(default_factory=list)
    """The records that consumers of subscriptions got: whose, and from where."""
    pushed_uncommitted: list[tuple[str, Place, int, bytes]] = field(default_factory=list)
    """The same for consumers that read uncommitted messages."""
    joint: dict[str, bool] = field(default_factory=dict)
    """Says of each joint writing by its name whether what Pulsar's side has written of it was read in the end."""
    consumers: int = 1 << 40
    """The id of the last consumer that has connected without a front; those of fronts count from 1."""
    given: set[tuple[str, int]] = field(default_factory=set)
    """The ids that some client was told are its own: their kind and number."""

    retention_seconds: float = inf
    """Groups that nobody uses are forgotten after so long."""
    options: OptionsTold | None = None
    """The knowledge that an operator has of the broker's options, if there is one."""
    access: AccessTold | None = None
    """The knowledge that a keeper has of access rules and users, if there is one."""
    options_altered: int = 0
    """The number of times that the operator was told that options are altered."""
    offsets_told: dict[str, OffsetsTold] = field(default_factory=dict)
    """The knowledge that a client has of the offsets of groups that may expire."""
    topic_epochs: dict[Place, int] = field(default_factory=dict)
    """The highest epoch under which some client was told that it has a partition for itself."""

    def offset_of(self, place: Place, told: int) -> int | None:
        """Return the offset of a record whose writer was told this; None if it was staged, and has not entered."""
        if not is_provisional(told):
            return told
        entered = self.entered.get(place)
        return None if entered is None else entered.offsets.get(told)

    def end_of_run(self, place: Place, offset: int) -> int | None:
        """Return the last offset of the run of staged records that has entered there; None: it was not staged."""
        entered = self.entered.get(place)
        if entered is None:
            return None
        number = bisect_right(entered.runs, offset, key=lambda run: run[0]) - 1
        return entered.runs[number][1] - 1 if number >= 0 and offset < entered.runs[number][1] else None

    def stages(self, topic: str) -> bool:
        """Say whether what transactions write to a topic may be staged."""
        return SIDECAR in self.buffers.get(topic, ())

    def begin(self, name: str, outcome: Outcome) -> Writing:
        """Note a new writing."""
        assert name not in self.writings, name
        writing = self.writings[name] = Writing(name, outcome)
        return writing

    def given_out(self, kind: str, number: int) -> None:
        """Note that a client was given an id that nobody else may have had."""
        if (kind, number) in self.given:
            self.refusals.append(f"ids: {kind} id {number} is given out a second time")
        self.given.add((kind, number))


def value_of(writing: str, number: int) -> bytes:
    """Return the value of the record that has this number in a writing."""
    return f"{writing}:{number:04d}".encode()


def keyed(value: bytes, key: bytes, *, is_tombstone: bool) -> bytes:
    """Return what stands for a record with a key: that, too, and whether it says that the key is gone."""
    return value + KEY_SIGN + key + (TOMBSTONE_SIGN if is_tombstone else b"")


def key_of(value: bytes) -> tuple[bytes, bytes | None, bool]:
    """Take apart what `keyed` has made: the value, the key if there is one, whether it is a tombstone."""
    plain, sign, key = value.partition(KEY_SIGN)
    if not sign:
        return value, None, False
    is_tombstone = key.endswith(TOMBSTONE_SIGN)
    return plain, key.removesuffix(TOMBSTONE_SIGN), is_tombstone


def whose(value: bytes) -> str:
    """Return the name of the writing that a value is of."""
    return value.split(b"|")[0].rpartition(b":")[0].decode()
