"""The entries of a history. Each is one operation of one process, in the order in which they were recorded.

This module owns the shapes of the entries. Theory of operation. A transaction is up to three lines: `Begin` (all that
it will ever send, written before anything is sent), `CommitAsked` (written before the commit is asked for) and `End`
(what came of it). So a process that is killed leaves behind exactly what can be known of it: without `CommitAsked` its
transaction can never be committed; with it and without `End` the outcome is unknown. In Jepsen's words an outcome is
ok, fail or info (`UNKNOWN`): it was done, it was not done, nobody knows.

A message that a Pulsar client sends outside of a transaction is a transaction of one record here, whose commit is
asked for when it is sent. Its receipt is the answer.

Times are microseconds of one monotonic clock that all processes of a machine share, since the run began. An operation
before a request is stamped before the request is sent, and one after it when its answer is here; hence `a.end_us <
b.start_us` proves that `a` was over when `b` began, and equal times prove nothing.

Every value is sent once, to one partition, and names its transaction: `append-0.17/2`. The text after a blank is what
the workload wants to find again (`transfer`: the amount; `etl`: the record that it was made from).
"""

from enum import StrEnum
from typing import TypeAlias

import msgspec

FORMAT = 1
"""Raised when an older reader would misunderstand a history."""


class HistoryError(Exception):
    """A history cannot be read; the message is one line."""


class Workload(StrEnum):
    """The kinds of work that clients do."""

    APPEND = "append"
    TRANSFER = "transfer"
    ETL = "etl"


class Outcome(StrEnum):
    """The knowledge of a client about an operation that it asked for."""

    OK = "ok"
    FAIL = "fail"
    UNKNOWN = "unknown"


class Isolation(StrEnum):
    """The records that a reader wants to see: Kafka's by the names of `isolation.level`, and what Pulsar's get."""

    COMMITTED = "read_committed"
    UNCOMMITTED = "read_uncommitted"
    PULSAR = "pulsar"
    """Pulsar's clients get what is committed. They take part only if `Run.pulsar` says where."""

    @property
    def is_committed(self) -> bool:
        """Return whether such a reader may get only what is committed."""
        return self is not Isolation.UNCOMMITTED


class Line(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", omit_defaults=True):
    """Root of all lines."""


class Run(Line, frozen=True, kw_only=True, tag="run"):
    """The first line: what was run. `topics` has the number of partitions; `etl` is input, output and group."""

    format: int
    run: str
    version: str
    started: str
    cluster: str
    seed: int
    workloads: list[Workload]
    topics: dict[str, int]
    etl: tuple[str, str, str] | None = None
    options: dict[str, str] = {}
    pulsar: str = ""
    """The address of Pulsar's protocol, if Pulsar's clients take part."""
    sidecar: bool = False
    """The topics are Exacta's sidecar topics: transactions enter them whole, in the order of their commits."""

    @property
    def views(self) -> list[Isolation]:
        """Return what is read in this run."""
        return [each for each in Isolation if self.pulsar or each is not Isolation.PULSAR]

    def shows_committed_only(self, isolation: Isolation) -> bool:
        """Return whether such a reader may get only what is committed; on sidecar topics there is nothing else."""
        return self.sidecar or isolation.is_committed


class Init(Line, frozen=True, kw_only=True, tag="init"):
    """A producer took a transactional id for itself: the holder before is fenced."""

    process: str
    producer: str
    transactional_id: str
    start_us: int
    end_us: int
    outcome: Outcome
    error: str = ""


class Begin(Line, frozen=True, kw_only=True, tag="begin"):
    """A transaction begins. `records`: topic, partition, value of all that it will send, in order.

    A Pulsar transaction has no `transactional_id`.
    `sources`: for `etl`, topic, partition and offset of the record that each one is made from.
    """

    process: str
    producer: str
    transactional_id: str
    transaction: str
    at_us: int
    records: list[tuple[str, int, str]]
    sources: list[tuple[str, int, int]] = []


class CommitAsked(Line, frozen=True, kw_only=True, tag="commit"):
    """The client is about to ask for the commit."""

    process: str
    transaction: str
    at_us: int


class End(Line, frozen=True, kw_only=True, tag="end"):
    """The client's knowledge at the end of a transaction.

    `committing` tells whether the outcome is a commit's or an abort's.

    An abort may follow a commit that was asked for and refused; `error` is then what the commit was told.
    `offsets`: from the delivery reports, for each record of `Begin`; None where there was none.
    """

    process: str
    transaction: str
    at_us: int
    committing: bool
    outcome: Outcome
    offsets: list[int | None]
    error: str = ""


class Poll(Line, frozen=True, kw_only=True, tag="poll"):
    """The records that one poll returned of one partition, as offset and value.

    `session`: one reader reading a partition from its first offset on, without a gap; None where partitions come and
    go. `final`: read when everything was over. `transaction`: the poll was made inside of it.
    """

    process: str
    isolation: Isolation
    start_us: int
    end_us: int
    topic: str
    partition: int
    records: list[tuple[int, str]]
    session: str | None = None
    final: bool = False
    transaction: str | None = None


class Watermarks(Line, frozen=True, kw_only=True, tag="watermarks"):
    """Topic, partition, last stable offset and high watermark, as listed; `final`: after everything was over."""

    start_us: int
    end_us: int
    partitions: list[tuple[str, int, int, int]]
    final: bool = False


class ReadTo(Line, frozen=True, kw_only=True, tag="read-to"):
    """Up to where the final read of a partition came, exclusive; `whole`: that is its end.

    `process`: which attempt that was; what earlier ones got is no final read. (Histories of before have none.)
    """

    isolation: Isolation
    topic: str
    partition: int
    next_offset: int
    whole: bool
    process: str = ""


class GroupOffsets(Line, frozen=True, kw_only=True, tag="offsets"):
    """The committed offsets of the etl group when everything was over: topic, partition, next offset."""

    group: str
    partitions: list[tuple[str, int, int]]


BROKER_KILLED = "broker killed"
BROKER_RESTARTED = "broker restarted"
RESTART_COMMAND = "restart command"
NEVER_ENDED = "client did not end, killed"
"""Kinds of faults that are more than words to somebody."""


class Fault(Line, frozen=True, kw_only=True, tag="fault"):
    """A fault that was done to the cluster or to its clients, and its victim."""

    kind: str
    target: str
    start_us: int
    end_us: int
    outcome: Outcome = Outcome.OK
    error: str = ""


Op: TypeAlias = Run | Init | Begin | CommitAsked | End | Poll | Watermarks | ReadTo | GroupOffsets | Fault

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Op] = msgspec.json.Decoder(Op)


def encode(op: Op) -> bytes:
    """Return the line of an operation, with its newline."""
    return _encoder.encode(op) + b"\n"


def decode(line: bytes) -> Op:
    """Return the operation of a line; raises `msgspec.DecodeError`."""
    return _decoder.decode(line)
