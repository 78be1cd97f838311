"""A partition that holds all kinds of batches: each protocol's, plain, compressed, in transactions, opaque, compacted.

Keys are distinct, but for `AGAIN`: compaction leaves gaps where older messages with that key were, in the midst of
Kafka's batches and of Pulsar's.
"""

import itertools
import time
import uuid
from typing import NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

import exacta
from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.compression import compress
from exacta.protocol.pulsar.entries import build_batch, build_entry
from tests.one_log.clients import SECONDS
from tests.pulsar.wire import Wire, running

AGAIN = "again"
AHEAD_MS = 600_000
"""Times are so much ahead, so that no marker, which has the broker's time, is later than what comes behind it."""
STEP_MS = 1_000
"""Each batch is so much later than the one before."""
FAST = {"log_retention_check_interval_ms": 10, "log_cleaner_backoff_ms": 10, "log_segment_bytes": 1 << 20}
COMPACTED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.001", "segment.bytes": str(1 << 20)}
SET = AlterConfigOpType.SET
PATIENCE_S = 60.0


class Shown(NamedTuple):
    """A record that readers of committed data get."""

    offset: int
    key: bytes | None
    value: bytes
    time_ms: int
    """The timestamp that Kafka's readers are told."""
    publish_ms: int
    """The publish time that Pulsar's readers are told: the latest of the batch."""
    reason: str = ""
    """The reason why Kafka's readers get it as an opaque record, and Pulsar's own client gets nothing of it."""


def running_mixed(**options: object) -> exacta.Broker:
    """Return a broker that compacts as soon as it may, and serves both protocols."""
    return running(**{**FAST, **options})


class MixedTopic:
    """The one partition of a topic, written by both protocols' clients."""

    def __init__(self, broker: exacta.Broker, topic: str) -> None:
        self.broker, self.topic = broker, topic
        self.shown: list[Shown] = []
        self.end = 0
        """The next offset."""
        self.is_compacted = False
        self._now_ms = int(time.time() * 1000) + AHEAD_MS
        self._numbers = itertools.count()
        self._sequence = 0
        self._wire = Wire(broker.pulsar_url)
        self._admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        [made] = self._admin.create_topics([NewTopic(topic, 1, config={"retention.ms": "-1"})]).values()
        made.result(SECONDS)
        self._wire.open_producer(topic)

    def close(self) -> None:
        """Close the connection of Pulsar's side."""
        self._wire.close()

    def write_everything(self) -> None:
        """Write some of each kind."""
        for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
            self.kafka(5, codec=codec)
            self.pulsar(5, codec=codec.upper().replace("GZIP", "ZLIB"))
            self.pulsar(1, batch=False)
        for commit in (True, False, True):
            self.kafka_transaction(3, commit=commit)
            self.pulsar_transaction(3, commit=commit)
        self.opaque(
            "chunk", pb.MessageMetadata(uuid="u", num_chunks_from_msg=2, chunk_id=0, total_chunk_msg_size=1_000)
        )
        self.opaque("encrypted", pb.MessageMetadata(encryption_keys=[pb.EncryptionKeys(key="k", value=b"v")]))
        self.kafka(4, codec="zstd")
        self.pulsar(4)

    def messages(self, count: int) -> list[tuple[str, bytes]]:
        """Return keys and values of new messages: the second of three or more has the key that comes again."""
        numbers = [next(self._numbers) for _ in range(count)]
        keys = [AGAIN if count > 2 and place == 1 else f"k{number}" for place, number in enumerate(numbers)]
        return [(key, b"%d " % number * 10) for key, number in zip(keys, numbers, strict=True)]

    # --- Kafka's ------------------------------------------------------------------------------------------------------

    def kafka(self, count: int, codec: str = "none") -> None:
        """Write one Kafka batch, whose records are some milliseconds apart."""
        settings = {"bootstrap.servers": self.broker.bootstrap_servers, "linger.ms": 200, "compression.type": codec}
        self._produce(Producer(settings), count, visible=True)

    def kafka_transaction(self, count: int, *, commit: bool) -> None:
        """Write a batch in a Kafka transaction."""
        settings = {"bootstrap.servers": self.broker.bootstrap_servers, "transactional.id": uuid.uuid4().hex}
        producer = Producer({**settings, "linger.ms": 200})
        producer.init_transactions(SECONDS)
        producer.begin_transaction()
        self._produce(producer, count, visible=commit)
        (producer.commit_transaction if commit else producer.abort_transaction)(SECONDS)
        self.end += 1

    def _produce(self, producer: Producer, count: int, *, visible: bool) -> None:
        self._now_ms += STEP_MS
        messages = self.messages(count)
        times = [self._now_ms + place for place in range(count)]
        offsets: list[int] = []
        for (key, value), time_ms in zip(messages, times, strict=True):
            producer.produce(
                self.topic,
                value,
                key,
                partition=0,
                timestamp=time_ms,
                on_delivery=lambda _, message: offsets.append(message.offset()),
            )
        assert producer.flush(SECONDS) == 0
        assert offsets == list(range(self.end, self.end + count)), "one batch"
        self._note(messages, times, visible=visible)

    # --- Pulsar's -----------------------------------------------------------------------------------------------------

    def pulsar(self, count: int, codec: str = "NONE", *, batch: bool = True, transaction: int | None = None) -> None:
        """Write a Pulsar entry."""
        self._now_ms += STEP_MS
        messages = self.messages(count)
        metadata = pb.MessageMetadata(compression=codec)
        if batch:
            metadata.num_messages_in_batch = count
            payload = build_batch(
                (pb.SingleMessageMetadata(partition_key=key.encode()), value) for key, value in messages
            )
        else:
            [(key, payload)] = messages
            metadata.partition_key = key.encode()
        if codec != "NONE":
            metadata.uncompressed_size = len(payload)
        self._send(metadata, compress(metadata.compression, payload), count, transaction)
        self._note(messages, [self._now_ms] * count, visible=transaction is None)

    def pulsar_transaction(self, count: int, *, commit: bool) -> None:
        """Write a batch in a Pulsar transaction."""
        least = self._wire.begin().txnid_least_bits
        before = len(self.shown)
        self.pulsar(count, transaction=least)
        first, messages = self.end - count, self._last
        assert not self._wire.end(least, pb.COMMIT if commit else pb.ABORT).HasField("error")
        if commit:
            self.end = first
            self._note(messages, [self._now_ms] * count, visible=True)
        assert len(self.shown) == before + commit * count
        self.end += 1

    def opaque(self, reason: str, metadata: pb.MessageMetadata) -> None:
        """Write a message that the broker cannot open."""
        self._now_ms += STEP_MS
        [(key, value)] = self.messages(1)
        metadata.partition_key = key.encode()
        self._send(metadata, value, 1, None)
        self._note([(key, value)], [self._now_ms], visible=True)
        self.shown[-1] = self.shown[-1]._replace(reason=reason)

    def _send(self, metadata: pb.MessageMetadata, payload: bytes, count: int, transaction: int | None) -> None:
        metadata.producer_name, metadata.sequence_id, metadata.publish_time = "p", self._sequence, self._now_ms
        entry = build_entry(metadata, payload)
        receipt = self._wire.ask(self._wire.session.send(entry, self._sequence, count, transaction=transaction))
        self._sequence += count
        assert isinstance(receipt, pb.CommandSendReceipt), receipt
        assert receipt.message_id.entry_id == self.end

    # --- both ---------------------------------------------------------------------------------------------------------

    def _note(self, messages: list[tuple[str, bytes]], times: list[int], *, visible: bool) -> None:
        self._last = messages
        for place, ((key, value), time_ms) in enumerate(zip(messages, times, strict=True)):
            if visible:
                found = Shown(self.end + place, key.encode(), value, time_ms, max(times))
                self.shown.append(found)
        self.end += len(messages)

    def compact(self) -> None:
        """Let the topic be compacted from now on, and wait until only the last message of each key is left.

        A topic that is compacted from the beginning takes no chunks. Long messages behind the end make segments end.
        Each has a key of its own: a later compaction would take away what tests count there.
        """
        entries = [ConfigEntry(name, value, incremental_operation=SET) for name, value in COMPACTED.items()]
        resource = ConfigResource(ConfigResource.Type.TOPIC, self.topic, incremental_configs=entries)
        self._admin.incremental_alter_configs([resource])[resource].result(SECONDS)
        self.is_compacted = True
        last = {each.key: each for each in self.shown}
        self.shown = [each for each in self.shown if last[each.key] is each]
        deadline = time.monotonic() + PATIENCE_S
        producer = Producer({"bootstrap.servers": self.broker.bootstrap_servers})
        behind = itertools.count()
        while len(found := self._offsets()) > len(self.shown):
            producer.produce(self.topic, bytes(900_000), b"on %d" % next(behind), partition=0)
            producer.flush(SECONDS)
            assert time.monotonic() < deadline, f"{len(found)} records are left, and {len(self.shown)} keys"
        assert found == [each.offset for each in self.shown]

    def _offsets(self) -> list[int]:
        """Return the offsets before the end that a reader of committed records gets."""
        settings = {"bootstrap.servers": self.broker.bootstrap_servers, "group.id": "c", "enable.partition.eof": True}
        consumer = Consumer({**settings, "enable.auto.commit": False})
        try:
            consumer.assign([TopicPartition(self.topic, 0, 0)])
            found: list[int] = []
            while (message := consumer.poll(SECONDS)) is not None and message.error() is None:
                found.append(message.offset())
            assert message is not None
            return [offset for offset in found if offset < self.end]
        finally:
            consumer.close()
