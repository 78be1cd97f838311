"""One broker as a program meets it: it takes steps, and tells what came of them in words that both brokers share.

Message ids are each broker's own: a message is told by which one of the program's it is, as its payload says. Where a
command names a message, it uses the id that this broker has given in the receipt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import Message

from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.entries import parse_entry, walk_batch
from exacta.protocol.pulsar.message_ids import acknowledged, earliest, latest
from exacta.protocol.pulsar.session import COORDINATOR as COORDINATOR_NUMBER
from exacta.protocol.pulsar.session import Incoming, entry_of_values, error_of
from tests.differential.machine import Step
from tests.pulsar.differential.links import Link
from tests.pulsar.differential.steps import EARLIEST, IN_ORDER, LATEST, PLENTY

COORDINATOR = "persistent://pulsar/system/transaction_coordinator_assign-partition-0"
"""The topic whose owner is the coordinator with the number 0, the only one that is used."""
NOT_YET = ("ServiceNotReady", "MetadataError", "UnknownError", "TransactionCoordinatorNotFound")
"""The errors after which clients that connect ask again."""
SILENT = "no answer"
HANGS_UP = "hangs up"
"""The last thing that is told of a broker that has closed the connection."""
NOTHING = "nothing to do"


@dataclass
class Entry:
    """An entry that was sent; without an id where the broker has refused it."""

    number: int
    count: int
    publish_time_ms: int
    """The time is the broker's, so that the markers between entries are not out of order."""
    id: pb.MessageIdData | None = None


@dataclass
class Consumer:
    """A consumer that is open."""

    name: str
    number: int
    subscribe: pb.CommandSubscribe
    permits: int
    """The permits that it gets when it is opened."""
    is_active: bool = False
    """The broker's last word on whether it is active; a consumer believes that it waits until it is told something."""

    @property
    def kind(self) -> str:
        """The type of its subscription."""
        return pb.CommandSubscribe.SubType.Name(self.subscribe.sub_type)


@dataclass(frozen=True)
class Told:
    """The result of a step."""

    answer: str
    came: tuple[str, ...]

    def __str__(self) -> str:
        """Return it as a report has it."""
        return " | ".join((self.answer, *self.came))


@dataclass
class Transaction:
    """A transaction that was begun, and what it was told to belong to it."""

    id: int
    registered: set[str] = field(default_factory=set)


class Side:
    """A broker in the course of one program."""

    def __init__(self, link: Link, topic: str) -> None:
        """Create the topic, and open its producer."""
        self.link = link
        self.session = link.session
        self.short_name = f"{topic}-partition-0"
        self.topic = f"persistent://public/default/{self.short_name}"
        self.entries: list[Entry] = []
        self.consumers: dict[str, Consumer] = {}
        self.transactions: dict[str, Transaction] = {}
        self._numbers = 0
        self._has_failed_over = False
        self._active: set[str] = set()
        """The consumers that were active before the step."""
        self._gone: list[Consumer] = []
        """The consumers that were closed with their connection."""
        link.create(self.short_name)
        for name in (self.topic, COORDINATOR):
            self.ask(pb.CommandLookupTopic(topic=name))
        self.until_taken(lambda: self.ask(pb.CommandTcClientConnectRequest(tc_id=0)), "coordinator")
        self.open_producer()
        self._keep_everything()

    def _keep_everything(self) -> None:
        """Create a subscription that acknowledges nothing: without one, Apache Pulsar removes what all have done."""
        keep = pb.CommandSubscribe(
            subscription="keep",
            sub_type=pb.CommandSubscribe.Exclusive,
            initial_position=pb.CommandSubscribe.Earliest,
        )
        assert self.subscribe("keeper", keep, permits=0) == "ok"
        number = self.consumers.pop("keeper").number
        self.ask(pb.CommandCloseConsumer(consumer_id=number))

    def open_producer(self) -> None:
        """Open the producer, which has the number 0."""
        self.until_taken(lambda: self.link.ask(self.session.open_producer(self.topic)), "producer")

    # --- commands -----------------------------------------------------------------------------------------------------

    def tell(self, command: Message) -> None:
        """Send a command that has no answer."""
        self.link.tell(self.session.tell(command))

    def ask(self, command: Message) -> Any:
        """Send a request and return its answer."""
        return self.link.ask(self.session.request(command))

    def until_taken(self, ask: Callable[[], Any], what: str) -> str:
        """Ask again while the broker is not ready, as clients do; return the answer."""
        for _ in range(100):
            answer = told(ask())
            if answer not in NOT_YET:
                return answer
            self.link.pass_time(0.05)
        raise AssertionError(f"the {what} is never ready: {answer}")

    def run(self, step: Step) -> Told:
        """Take a step; return the answer, and what came beside it."""
        from tests.pulsar.differential.commands import HOW

        self._has_failed_over = False
        self._active = {each.name for each in self.consumers.values() if each.is_active}
        try:
            answer = HOW[type(step)](self, step)
        except TimeoutError:
            answer = SILENT
        came = self._came()
        return Told(answer, tuple(came))

    def subscribe(self, name: str, command: pb.CommandSubscribe, permits: int = PLENTY) -> str:
        """Open a consumer, and permit it so many messages."""
        self._numbers += 1
        command.consumer_id = self._numbers
        command.consumer_name = name
        command.topic = self.topic
        answer = self.until_taken(lambda: self.ask(command), "consumer")
        if answer == "ok":
            self.consumers[name] = Consumer(name, command.consumer_id, command, permits)
            if permits:
                self.tell(pb.CommandFlow(consumer_id=command.consumer_id, message_permits=permits))
            self.note_failover(self.consumers[name])
        return answer

    def reload(self) -> None:
        """Let the broker read its disk again; what is gone with the connection is opened again, as by clients."""
        if not self.link.reload(self.short_name):
            return
        self._gone = sorted(self.consumers.values(), key=lambda each: each.name)
        self.consumers.clear()
        self.open_producer()

    def note_failover(self, consumer: Consumer) -> None:
        """Remember that another consumer may be active now."""
        self._has_failed_over = self._has_failed_over or consumer.kind == "Failover"

    def send(self, count: int, transaction: Transaction | None) -> str:
        """Send an entry of so many messages."""
        number = len(self.entries)
        entry = Entry(number, count, self.link.now_ms())
        self.entries.append(entry)
        fields: dict[str, Any] = {"partition_key": b"k%d" % (number % 3)}
        least = None if transaction is None else transaction.id
        if transaction is not None:
            fields |= {"txnid_most_bits": COORDINATOR_NUMBER, "txnid_least_bits": least}
        values = [payload(number, index) for index in range(count)]
        data = entry_of_values(values, number, entry.publish_time_ms, producer="p", **fields)
        answer = self.link.ask(self.session.send(data, number, count, transaction=least))
        if isinstance(answer, pb.CommandSendError):
            return told(answer)
        entry.id = pb.MessageIdData()
        entry.id.CopyFrom(answer.message_id)
        return "ok"

    def message_id(self, number: int, index: int | None = None) -> pb.MessageIdData | None:
        """Return the id of an entry, or of a message of its batch; None where there is none."""
        if number == EARLIEST:
            return earliest()
        if number == LATEST:
            return latest()
        if number >= len(self.entries) or self.entries[number].id is None:
            return None
        entry = self.entries[number]
        if index is not None and index >= entry.count:
            return None
        found = pb.MessageIdData()
        assert entry.id is not None
        found.CopyFrom(entry.id)
        return found

    def closed(self) -> None:
        """Hang up."""
        self.link.close()

    # --- what came ----------------------------------------------------------------------------------------------------

    def _came(self) -> list[str]:
        """Return what has come beside the answer; a consumer that the broker has closed is opened again."""
        events: list[str] = []
        deliveries: list[tuple[str, str]] = []
        while (frames := self.link.settle(fails_over=self._has_failed_over)) or self._gone:
            self._has_failed_over = False
            gone, self._gone = self._gone, []
            gone += self._sort_out(frames, events, deliveries)
            for consumer in gone:
                answer = self.subscribe(consumer.name, consumer.subscribe, consumer.permits)
                events.append(f"{consumer.name} closed" if answer == "ok" else f"{consumer.name} closed, {answer}")
        changed = (each for each in self.consumers.values() if each.is_active != (each.name in self._active))
        events.extend(f"{each.name} {'is active' if each.is_active else 'waits'}" for each in changed)
        deliveries.sort(key=lambda each: each if each[0].startswith("~") else (each[0], ""))
        return [*sorted(events), *(f"{name.removeprefix('~')} {what}" for name, what in deliveries)]

    def _sort_out(self, frames: list[Incoming], events: list[str], deliveries: list[tuple[str, str]]) -> list[Consumer]:
        by_number = {each.number: each for each in self.consumers.values()}
        gone: list[Consumer] = []
        producer_is_gone = False
        for received in frames:
            command = received.command
            if isinstance(command, pb.CommandCloseProducer):
                producer_is_gone = True
                continue
            consumer = by_number.get(getattr(command, "consumer_id", -1))
            if consumer is None:
                if not isinstance(command, pb.CommandCloseConsumer | pb.CommandActiveConsumerChange):
                    events.append(f"unasked {type(command).__name__}")
            elif isinstance(command, pb.CommandMessage):
                name = consumer.name if consumer.kind in IN_ORDER else f"~{consumer.name}"
                deliveries.append((name, self._described(received)))
            elif isinstance(command, pb.CommandActiveConsumerChange):
                consumer.is_active = command.is_active
            elif isinstance(command, pb.CommandCloseConsumer):
                gone.append(self.consumers.pop(consumer.name))
            else:
                events.append(f"{consumer.name} {type(command).__name__}")
        if producer_is_gone:
            self.open_producer()
        return sorted(gone, key=lambda each: each.name)

    def _described(self, received: Incoming) -> str:
        """Return which messages of which entry were delivered, and the how many-th time it is."""
        command = received.command
        assert received.entry is not None
        entry = parse_entry(received.entry)
        if entry.is_batch:
            texts = [bytes(each.payload) for each in walk_batch(entry.payload, entry.message_count)]
        else:
            texts = [bytes(entry.payload)]
        number = int(texts[0].split(b".")[0])
        sent = self.entries[number]
        words = f"{number}"
        if texts != [payload(number, index) for index in range(sent.count)]:
            words += " (not as sent)"
        if sent.id is not None and not is_same(sent.id, command.message_id):
            words += " (another id)"
        if command.ack_set:
            done = {each for run in acknowledged(0, sent.count, command.ack_set) for each in run}
            words += f"[{','.join(str(index) for index in range(sent.count) if index not in done)}]"
        if command.redelivery_count:
            words += f" again {command.redelivery_count}"
        return words


def told(answer: Any) -> str:
    """Return "ok", or the name of the error that an answer brings."""
    error = error_of(answer)
    return "ok" if error is None else pb.ServerError.Name(error)


def is_same(one: pb.MessageIdData, other: pb.MessageIdData) -> bool:
    """Return whether two ids name the same entry."""
    return (one.ledger_id, one.entry_id) == (other.ledger_id, other.entry_id)


def payload(number: int, index: int) -> bytes:
    """Return the payload by which a message is known."""
    return b"%d.%d" % (number, index)


def ack_set_without(count: int, done: Iterable[int]) -> list[int]:
    """Return the ack set in which these messages are acknowledged; none if all are, as clients have it."""
    bits = ((1 << count) - 1) & ~sum(1 << index for index in done)
    return [bits] if bits else []
