"""Consumers on the broker that is turned by hand: what they send, and what is pushed to them."""

from typing import Any

from msgspec import Struct

from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.compression import decompress
from exacta.protocol.pulsar.entries import parse_entry, walk_batch
from exacta.protocol.pulsar.message_ids import earliest
from tests.pulsar.by_hand import Broker, Client, send_frame

EXCLUSIVE, SHARED, FAILOVER, KEY_SHARED = (
    pb.CommandSubscribe.Exclusive,
    pb.CommandSubscribe.Shared,
    pb.CommandSubscribe.Failover,
    pb.CommandSubscribe.Key_Shared,
)
TYPES = (EXCLUSIVE, SHARED, FAILOVER, KEY_SHARED)
EARLIEST = earliest()


class Pushed(Struct, frozen=True):
    """One entry as it was pushed."""

    command: pb.CommandMessage
    values: list[bytes]
    index: int | None
    """The index that the broker has put before it."""

    @property
    def offset(self) -> int:
        return self.command.message_id.entry_id

    @property
    def left(self) -> list[bytes]:
        """The messages that the ack set leaves."""
        words = self.command.ack_set
        bits = sum((word % 2**64) << (64 * number) for number, word in enumerate(words))
        return [value for index, value in enumerate(self.values) if not words or bits >> index & 1]


class ConsumerClient:
    """One client with a consumer, whose number is 1, and a producer, whose number is 0."""

    def __init__(
        self,
        broker: Broker,
        kind: Any = SHARED,
        *,
        topic: str = "t",
        subscription: str = "s",
        permits: int = 1000,
        **fields: Any,
    ) -> None:
        self.broker = broker
        self.client: Client = broker.connect()
        self.topic, self.subscription, self.kind = topic, subscription, kind
        self.others: list[Any] = []
        """The commands that have come since the last look and are no messages."""
        self.opened = self.subscribe(permits, **fields)

    def subscribe(self, permits: int = 1000, **fields: Any) -> Any:
        """Open the consumer, from the first message on where its subscription is new; return the answer."""
        fields.setdefault("initial_position", pb.CommandSubscribe.Earliest)
        command = pb.CommandSubscribe(
            topic=self.topic, subscription=self.subscription, sub_type=self.kind, consumer_id=1, request_id=1, **fields
        )
        self.client.send(command)
        self.broker.settle()
        [answer, *self.others] = self.client.answers()
        if isinstance(answer, pb.CommandSuccess) and permits:
            self.permit(permits)
        return answer

    def permit(self, permits: int) -> None:
        self.client.send(pb.CommandFlow(consumer_id=1, message_permits=permits))
        self.broker.settle()

    def ask(self, command: Any) -> Any:
        return self.client.ask(command)

    def pushed(self) -> list[Pushed]:
        """Return the entries that were pushed since the last look."""
        found = []
        for frame, command in self.client.frames():
            if isinstance(command, pb.CommandMessage):
                assert frame.entry is not None
                entry = parse_entry(frame.entry)
                values = [bytes(entry.payload)]
                if entry.is_batch:
                    size = entry.metadata.uncompressed_size if entry.is_compressed else len(entry.payload)
                    plain = decompress(entry.metadata.compression, entry.payload, size)
                    values = [bytes(each.payload) for each in walk_batch(plain, entry.message_count)]
                index = None if frame.broker_entry is None else frame.broker_entry.index
                found.append(Pushed(command, values, index))
            else:
                self.others.append(command)
        return found

    def values(self) -> list[bytes]:
        """Return the messages that were pushed since the last look, and are left."""
        return [value for each in self.pushed() for value in each.left]

    def told(self) -> list[Any]:
        """Return what came beside messages since the last look; messages are passed over."""
        self.pushed()
        told, self.others = self.others, []
        return told

    def acknowledge(
        self,
        *ids: pb.MessageIdData,
        cumulative: bool = False,
        transaction: int | None = None,
        request_id: int | None = 7,
    ) -> Any:
        """Acknowledge; return the answer, None where none is wanted."""
        command = pb.CommandAck(
            consumer_id=1,
            ack_type=pb.CommandAck.Cumulative if cumulative else pb.CommandAck.Individual,
            message_id=ids,
        )
        if transaction is not None:
            command.txnid_least_bits, command.txnid_most_bits = transaction, 0
        if request_id is None:
            self.client.send(command)
            self.broker.settle()
            return None
        command.request_id = request_id
        return self.answer_to(command)

    def answer_to(self, command: Any) -> Any:
        """Send a command; return its answer, among messages that may be pushed."""
        self.client.send(command)
        self.broker.settle()
        frames = self.client.frames(peek=True)
        [answer] = [each for _, each in frames if not isinstance(each, pb.CommandMessage)]
        self.client.drop(answer)
        return answer

    def redeliver(self, *ids: pb.MessageIdData, epoch: int = 0) -> None:
        self.client.send(
            pb.CommandRedeliverUnacknowledgedMessages(consumer_id=1, message_ids=ids, consumer_epoch=epoch)
        )
        self.broker.settle()

    def last_message(self) -> Any:
        return self.ask(pb.CommandGetLastMessageId(consumer_id=1, request_id=9))

    # --- producing ----------------------------------------------------------------------------------------------------

    def begin(self, timeout_ms: int = 60_000) -> int:
        """Begin a transaction; return its number."""
        answer = self.answer_to(pb.CommandNewTxn(request_id=1, txn_ttl_millis=timeout_ms, tc_id=0))
        least: int = answer.txnid_least_bits
        return least

    def end(self, transaction: int, action: Any = pb.COMMIT) -> Any:
        return self.answer_to(
            pb.CommandEndTxn(request_id=1, txnid_least_bits=transaction, txnid_most_bits=0, txn_action=action)
        )

    def abort(self, transaction: int) -> Any:
        return self.end(transaction, pb.ABORT)


def producer_of(broker: Broker, topic: str = "t") -> Client:
    """Return a client with a producer of the number 0."""
    client = broker.connect()
    client.ask(pb.CommandProducer(topic=topic, producer_id=0, request_id=1))
    return client


def produce(client: Client, *entries: tuple[bytes, ...] | bytes, transaction: int | None = None) -> None:
    """Send entries, a batch where one is a tuple."""
    for number, entry in enumerate(entries):
        values = entry if isinstance(entry, tuple) else (entry,)
        client.send_bytes(send_frame(*values, sequence=100 * number, transaction=transaction))
    client._broker.settle()
    receipts = client.answers()
    assert [type(each) for each in receipts] == [pb.CommandSendReceipt] * len(entries), receipts


def message_id(ledger: int, entry: int, *ack_set: int) -> pb.MessageIdData:
    return pb.MessageIdData(ledger_id=ledger, entry_id=entry, ack_set=ack_set)
