"""What a scenario may ask of a client library: the part that confluent-kafka, aiokafka and kafka-python share.

Owns the vocabulary of the scenarios (records, isolation, the three classes of failure) and the shape of an adapter.
It hides spelling only, never behaviour: an adapter adds no retry and swallows no error, since what the library itself
makes of the broker's answers is what is being tested.

Calls block, with a deadline of `CALL_TIMEOUT_S`; only `Producer.send` returns at once, with a future. A producer and a
consumer belong to one thread at a time, as two of the libraries require.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

CALL_TIMEOUT_S = 120.0
"""Longest time that any one call may take: a broker killed and started again lies inside it (Kafka's takes seconds)."""

SESSION_TIMEOUT_MS = 6_000
"""Kafka's smallest allowed session time-out of a group member."""

HEARTBEAT_INTERVAL_MS = 200
"""Members learn of a rebalance by their heartbeats: often, so that tests do not wait for it."""

RETRY_BACKOFF_MS = 50
FETCH_MAX_WAIT_MS = 100

Made = TypeVar("Made")


class ClientError(Exception):
    """A call failed, and this is what the library says of it; its own exception is the cause."""


class FencedError(ClientError):
    """The library says that another producer has taken over: this one is finished."""


class AbortRequiredError(ClientError):
    """The library says that the transaction must be aborted, after which the producer may go on."""


class CallAgainError(ClientError):
    """The library has given up for now and says that the same call may be made again."""


class Isolation(StrEnum):
    """What a consumer sees of transactions."""

    COMMITTED = "read_committed"
    UNCOMMITTED = "read_uncommitted"


class GroupProtocol(StrEnum):
    """How members of a group agree on who reads what."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    """KIP-848."""


class TopicPartition(NamedTuple):
    """Name a partition."""

    topic: str
    partition: int = 0


@dataclass(frozen=True, kw_only=True)
class Record:
    """Hold a consumed record, in the same form from every library."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: tuple[tuple[str, bytes | None], ...] = field(default=())


class Producer(Protocol):
    """Produce, in transactions if it has a transactional id."""

    def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        partition: int,
        key: bytes | None = None,
        headers: Collection[tuple[str, bytes]] = (),
        timestamp_ms: int | None = None,
    ) -> "Future[int]":
        """Hand a record to the library; the future holds its offset, or a ClientError, at the latest after `flush`."""
        ...

    def flush(self) -> None:
        """Wait until every record sent so far is delivered or has failed."""
        ...

    def init_transactions(self) -> None:
        """Take the transactional id over."""
        ...

    def begin(self) -> None:
        """Begin a transaction."""
        ...

    def send_offsets(self, offsets: Mapping[TopicPartition, int], group: object) -> None:
        """Commit offsets inside the transaction for a group, as `Consumer.group_metadata` names it."""
        ...

    def commit(self) -> None:
        """Commit the transaction."""
        ...

    def abort(self) -> None:
        """Abort the transaction; raises CallAgainError where the library wants to be asked again."""
        ...

    def close(self) -> None:
        """Give sockets and threads back; never fails, and leaves an open transaction open."""
        ...


class Consumer(Protocol):
    """Consume, alone or as a member of a group; nothing is committed unless told."""

    def subscribe(self, topics: Collection[str]) -> None:
        """Join the group for these topics; in the consumer protocol, one that begins with ^ is a pattern."""
        ...

    def assign(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Read these partitions from these offsets, without group management."""
        ...

    def poll(self, timeout_s: float) -> list[Record]:
        """Return what arrives first, or nothing after the time-out; serves group membership meanwhile."""
        ...

    def group_metadata(self) -> object:
        """Return what names the group in a transaction, as it is now; with member and generation where possible."""
        ...

    def assignment(self) -> set[TopicPartition]:
        """Return the partitions that this member owns now."""
        ...

    def position(self, partition: TopicPartition) -> int:
        """Return the offset that comes next, past markers and aborted records that were skipped at the end."""
        ...

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit these offsets for the group and wait for the answer."""
        ...

    def committed(self, partition: TopicPartition, timeout_s: float = CALL_TIMEOUT_S) -> int | None:
        """Ask the broker for the group's offset; None if there is none, ClientError when the time is over."""
        ...

    def close(self) -> None:
        """Leave the group; give sockets and threads back."""
        ...


def record_of(found: Any) -> Record:
    """Make a record of one of aiokafka or kafka-python, which name its parts alike."""
    return Record(
        topic=found.topic,
        partition=found.partition,
        offset=found.offset,
        key=found.key,
        value=found.value,
        timestamp_ms=found.timestamp,
        headers=tuple((name, value) for name, value in found.headers),
    )


@dataclass(frozen=True, kw_only=True)
class Producing:
    """What a scenario wants of a producer, which is idempotent."""

    transactional_id: str | None = None
    transaction_timeout_ms: int = 60_000
    batch_bytes: int | None = None
    compression: str | None = None

    def settings(self) -> dict[str, object]:
        """Return it as the settings that most libraries share."""
        timeout_ms = None if self.transactional_id is None else self.transaction_timeout_ms
        return _given(
            {
                "compression.type": self.compression,
                "batch.size": self.batch_bytes,
                "transactional.id": self.transactional_id,
                "transaction.timeout.ms": timeout_ms,
            }
        )


@dataclass(frozen=True, kw_only=True)
class Consuming:
    """What a scenario wants of a consumer.

    It begins at the start of a partition where its group has no offset. With an instance id it is a static member
    (KIP-345).
    """

    group_id: str | None = None
    isolation: Isolation = Isolation.COMMITTED
    instance_id: str | None = None
    protocol: GroupProtocol = GroupProtocol.CLASSIC

    def settings(self) -> dict[str, object]:
        """Return it as the settings that most libraries share."""
        is_classic = self.protocol is GroupProtocol.CLASSIC  # in the other, the broker says these
        return _given(
            {
                "group.id": self.group_id,
                "group.instance.id": self.instance_id,
                "isolation.level": self.isolation.value,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": SESSION_TIMEOUT_MS if is_classic else None,
                "heartbeat.interval.ms": HEARTBEAT_INTERVAL_MS if is_classic else None,
            }
        )


def _given(settings: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in settings.items() if value is not None}


def underscored(settings: Mapping[str, object]) -> dict[str, Any]:
    """Return settings as the libraries in pure Python name them."""
    return {name.replace(".", "_"): value for name, value in settings.items()}


def translated_by(translating: Callable[[], Any]) -> Callable[[type[Made]], type[Made]]:
    """Let the public methods of a class raise errors in the words of the scenarios: each runs in `translating`."""

    def decorate(made: type[Made]) -> type[Made]:
        for name, method in list(vars(made).items()):
            if callable(method) and not name.startswith("_"):
                setattr(made, name, translating()(method))
        return made

    return decorate


class Client(ABC):
    """Make producers and consumers of one library, and end what is left of them."""

    name: ClassVar[str]
    logger: ClassVar[str]
    """Where the library logs."""
    compressions: ClassVar[tuple[str, ...]]
    """The codecs that the library has without further packages."""
    sends_group_metadata: ClassVar[bool]
    """Whether send_offsets names member and generation (KIP-447)."""
    registers_by_writing: ClassVar[bool]
    """Whether it leaves it to its writes to register partitions and groups (version 2 of transactions, KIP-890)."""
    waits_for_stable_offsets: ClassVar[bool]
    """Whether a read_committed consumer asks for stable offsets only (OffsetFetch with require_stable)."""
    speaks_consumer_protocol: ClassVar[bool]
    """Whether its members can speak the consumer protocol (KIP-848)."""
    joins_again_when_fenced: ClassVar[bool]
    """Whether a static member joins again by itself when another one has its instance id, and so fences that one."""

    def __init__(self) -> None:
        """Start with nothing open."""
        self._opened: list[Producer | Consumer] = []

    @abstractmethod
    def new_producer(self, bootstrap: str, wanted: Producing) -> Producer:
        """Make a producer."""

    @abstractmethod
    def new_consumer(self, bootstrap: str, wanted: Consuming) -> Consumer:
        """Make a consumer."""

    def producer(self, bootstrap: str, **wanted: Any) -> Producer:
        """Make a producer as the fields of `Producing` say."""
        self._opened.append(made := self.new_producer(bootstrap, Producing(**wanted)))
        return made

    def consumer(self, bootstrap: str, **wanted: Any) -> Consumer:
        """Make a consumer as the fields of `Consuming` say."""
        self._opened.append(made := self.new_consumer(bootstrap, Consuming(**wanted)))
        return made

    def close(self) -> None:
        """Close what the scenario has left open, the youngest first."""
        while self._opened:
            self._opened.pop().close()
