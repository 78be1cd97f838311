"""The largest commands of Apache Pulsar's protocol that the limits allow.

They are sent over one connection in their order, since some open what others use. `setting_up` comes first.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from google.protobuf.message import Message

from exacta.protocol.pulsar import messages_pb2 as pb
from exacta.protocol.pulsar.entries import build_batch, build_entry
from exacta.protocol.pulsar.frames import build_entry_frame, build_frame

KIB, MIB = 1 << 10, 1 << 20
TOPIC, COMPACTED = "persistent://public/default/topic-0", "persistent://public/default/compacted"
ENTRIES, IN_BATCH = 20_000, 1_000
PRODUCER, KEYED, SHARED, TRANSACTION = 1, 2, 1, 0
PING = build_frame(pb.CommandPing())


class Command(NamedTuple):
    """One attack: the command's number, what it asks for, and its frames, given the ledger id of the topic."""

    type: int
    asks: str
    frames: Callable[[int], Iterable[bytes]]
    is_one_step: bool = False


TRIVIAL: dict[int, str] = {
    pb.BaseCommand.CONNECT: "comes once, and names nothing",
    pb.BaseCommand.AUTH_RESPONSE: "is one login, and ends the connection where none is asked for",
    pb.BaseCommand.PING: "names nothing",
    pb.BaseCommand.PONG: "names nothing",
    pb.BaseCommand.CLOSE_PRODUCER: "names one producer",
    pb.BaseCommand.CONSUMER_STATS: "names one consumer, and is answered with numbers",
    pb.BaseCommand.GET_LAST_MESSAGE_ID: "names one consumer, and is answered with two ids",
    pb.BaseCommand.TC_CLIENT_CONNECT_REQUEST: "names one coordinator",
    pb.BaseCommand.END_TXN: "names one transaction, which has at most 20,000 participants (EndTxn of Kafka has more)",
}
"""The commands whose largest form is no more work than any other, with the reasons."""


def send(messages: int, producer: int, sequence: int, *, is_keyed: bool = False) -> bytes:
    """Return the frame of a SEND, a batch where there are several messages."""
    metadata = pb.MessageMetadata(producer_name="p", sequence_id=sequence, publish_time=1)
    command = pb.CommandSend(producer_id=producer, sequence_id=sequence, num_messages=messages)
    payload = b"v"
    if messages > 1:
        metadata.num_messages_in_batch = messages
        metadata.highest_sequence_id = command.highest_sequence_id = sequence + messages - 1
        singles = [pb.SingleMessageMetadata() for _ in range(messages)]
        for number, each in enumerate(singles if is_keyed else ()):
            each.partition_key = b"%x" % number
        payload = build_batch((each, b"v") for each in singles)
    return b"".join(map(bytes, build_entry_frame(command, build_entry(metadata, payload))))


def setting_up(entries: int = ENTRIES) -> Iterable[bytes]:
    """Yield the frames that open a producer and write entries, the last ones in batches."""
    yield _open(PRODUCER, TOPIC)
    sequence = 0
    for number in range(entries):
        messages = 1 if number < entries - entries // 200 else IN_BATCH
        yield send(messages, PRODUCER, sequence)
        sequence += messages


def commands(entries: int = ENTRIES, many: int = 10_000, size: int = MIB) -> list[Command]:
    """Return the attacks. `many` commands are sent at once; `size` is the size of a command, in bytes."""
    t = pb.BaseCommand
    short, ids = size // 64, size // 12
    return [
        *_of_topics(many, short, size),
        Command(t.SEND, "SEND of one batch of 200,000 messages", lambda _: [send(10 * short, PRODUCER, 10**9)]),
        Command(
            t.SEND,
            "SEND of one batch of 160,000 messages with keys for compaction",
            lambda _: [_open(KEYED, COMPACTED), send(10 * short, KEYED, 0, is_keyed=True)],
        ),
        Command(t.SUBSCRIBE, "SUBSCRIBE", lambda _: [_subscribe(SHARED, "shared", pb.CommandSubscribe.Shared)]),
        Command(
            t.SUBSCRIBE,
            "SUBSCRIBE with 1 MiB of metadata",
            lambda _: [_subscribe(9, "large", pb.CommandSubscribe.Shared, metadata=_properties(short))],
        ),
        Command(
            t.SUBSCRIBE,
            f"SUBSCRIBE with {short:,} ranges of hashes",
            lambda _: [
                _subscribe(
                    10,
                    "ranges",
                    pb.CommandSubscribe.Key_Shared,
                    key_shared_meta=pb.KeySharedMeta(
                        key_shared_mode=pb.STICKY,
                        hash_ranges=[pb.IntRange(start=4 * each, end=4 * each) for each in range(short)],
                    ),
                )
            ],
            is_one_step=True,
        ),
        Command(
            t.FLOW,
            "FLOW for all entries",
            lambda _: [build_frame(pb.CommandFlow(consumer_id=SHARED, message_permits=2**31))],
        ),
        *_of_messages(entries, many, ids),
        *_of_transactions(many, short),
    ]


def _of_topics(many: int, short: int, size: int) -> list[Command]:
    t = pb.BaseCommand
    listed = pb.CommandGetTopicsOfNamespace
    schema = pb.Schema(name="s", type=pb.Schema.Json, schema_data=bytes(size - KIB))
    return [
        Command(
            t.LOOKUP,
            f"{many:,} LOOKUPs",
            lambda _: [build_frame(pb.CommandLookupTopic(topic=TOPIC, request_id=each)) for each in range(many)],
        ),
        Command(
            t.PARTITIONED_METADATA,
            f"{many:,} PARTITIONED_METADATAs",
            lambda _: [
                build_frame(pb.CommandPartitionedTopicMetadata(topic=TOPIC, request_id=each)) for each in range(many)
            ],
        ),
        Command(
            t.GET_TOPICS_OF_NAMESPACE,
            "GET_TOPICS_OF_NAMESPACE of all topics",
            lambda _: [build_frame(listed(request_id=1, namespace="public/default"))],
        ),
        Command(
            t.GET_TOPICS_OF_NAMESPACE,
            "GET_TOPICS_OF_NAMESPACE by a pattern",
            lambda _: [build_frame(listed(request_id=1, namespace="public/default", topics_pattern=".*(0|1)"))],
        ),
        Command(
            t.GET_SCHEMA,
            f"{many:,} GET_SCHEMAs",
            lambda _: [build_frame(pb.CommandGetSchema(topic=TOPIC, request_id=each)) for each in range(many)],
        ),
        Command(
            t.GET_OR_CREATE_SCHEMA,
            "GET_OR_CREATE_SCHEMA of 1 MiB",
            lambda _: [build_frame(pb.CommandGetOrCreateSchema(topic=TOPIC, request_id=1, schema=schema))],
        ),
        Command(
            t.PRODUCER,
            "PRODUCER with 1 MiB of metadata",
            lambda _: [
                build_frame(pb.CommandProducer(topic=TOPIC, producer_id=3, request_id=1, metadata=_properties(short)))
            ],
        ),
    ]


def _of_messages(entries: int, many: int, ids: int) -> list[Command]:
    t = pb.BaseCommand
    batches = entries // 200
    singles = entries - batches
    return [
        Command(
            t.REDELIVER_UNACKNOWLEDGED_MESSAGES,
            "REDELIVER_UNACKNOWLEDGED_MESSAGES of a command of ids",
            lambda ledger: [
                build_frame(
                    pb.CommandRedeliverUnacknowledgedMessages(
                        consumer_id=SHARED, message_ids=[_id(ledger, each) for each in range(ids)]
                    )
                )
            ],
        ),
        Command(
            t.REDELIVER_UNACKNOWLEDGED_MESSAGES,
            "REDELIVER_UNACKNOWLEDGED_MESSAGES of all",
            lambda _: [build_frame(pb.CommandRedeliverUnacknowledgedMessages(consumer_id=SHARED))],
        ),
        Command(
            t.ACK,
            f"ACK of {batches} batches, of which each second message is acknowledged",
            lambda ledger: [_ack([_id(ledger, singles + each * IN_BATCH, ack_set=True) for each in range(batches)])],
            is_one_step=True,
        ),
        Command(
            t.ACK,
            f"ACK of {entries // 2:,} entries that do not adjoin",
            lambda ledger: [_ack([_id(ledger, each) for each in range(0, singles, 2)])],
            is_one_step=True,
        ),
        Command(
            t.ACK,
            f"ACK of {singles:,} entries that adjoin",
            lambda ledger: [_ack([_id(ledger, each) for each in range(singles)])],
            is_one_step=True,
        ),
        Command(
            t.ACK,
            f"{many:,} ACKs",
            lambda ledger: [_ack([_id(ledger, each)], each) for each in range(many)],
        ),
        *_of_consumers(entries),
    ]


def _of_consumers(entries: int) -> list[Command]:
    t = pb.BaseCommand
    singles = entries - entries // 200
    return [
        Command(
            t.SEEK,
            "SEEK into a batch",
            lambda ledger: [
                build_frame(
                    pb.CommandSeek(consumer_id=SHARED, request_id=1, message_id=_id(ledger, singles, ack_set=True))
                )
            ],
        ),
        Command(
            t.SEEK,
            "SEEK to the beginning, by time, with all entries delivered",
            lambda _: [
                _subscribe(SHARED, "shared", pb.CommandSubscribe.Shared),
                build_frame(pb.CommandFlow(consumer_id=SHARED, message_permits=2**31)),
                build_frame(pb.CommandSeek(consumer_id=SHARED, request_id=1, message_publish_time=1)),
            ],
        ),
        Command(
            t.CLOSE_CONSUMER,
            "CLOSE_CONSUMER with all entries delivered",
            lambda _: [
                _subscribe(SHARED, "shared", pb.CommandSubscribe.Shared),
                build_frame(pb.CommandFlow(consumer_id=SHARED, message_permits=2**31)),
                build_frame(pb.CommandCloseConsumer(consumer_id=SHARED, request_id=1)),
            ],
        ),
        Command(
            t.UNSUBSCRIBE,
            "UNSUBSCRIBE with all entries delivered",
            lambda _: [
                _subscribe(SHARED, "shared", pb.CommandSubscribe.Shared),
                build_frame(pb.CommandFlow(consumer_id=SHARED, message_permits=2**31)),
                build_frame(pb.CommandUnsubscribe(consumer_id=SHARED, request_id=1)),
            ],
        ),
    ]


def _of_transactions(many: int, short: int) -> list[Command]:
    t = pb.BaseCommand
    topics = [f"persistent://public/default/topic-{each}" for each in range(min(short, 10_000))]
    subscriptions = [pb.Subscription(topic=topic, subscription="s") for topic in topics]
    return [
        Command(
            t.NEW_TXN,
            f"{many:,} NEW_TXNs",
            lambda _: [
                build_frame(pb.CommandNewTxn(request_id=each, txn_ttl_millis=60_000, tc_id=0)) for each in range(many)
            ],
        ),
        Command(
            t.ADD_PARTITION_TO_TXN,
            f"ADD_PARTITION_TO_TXN of {len(topics):,} topics",
            lambda _: [
                build_frame(pb.CommandAddPartitionToTxn(request_id=1, txnid_least_bits=TRANSACTION, partitions=topics))
            ],
        ),
        Command(
            t.ADD_SUBSCRIPTION_TO_TXN,
            f"ADD_SUBSCRIPTION_TO_TXN of {len(topics):,} subscriptions",
            lambda _: [
                build_frame(
                    pb.CommandAddSubscriptionToTxn(
                        request_id=1, txnid_least_bits=TRANSACTION, subscription=subscriptions
                    )
                )
            ],
        ),
    ]


def _open(number: int, topic: str) -> bytes:
    return build_frame(pb.CommandProducer(topic=topic, producer_id=number, request_id=number))


def _subscribe(number: int, name: str, kind: "pb.CommandSubscribe.SubType", **fields: object) -> bytes:
    command: Message = pb.CommandSubscribe(
        topic=TOPIC,
        subscription=name,
        sub_type=kind,
        consumer_id=number,
        request_id=number,
        initial_position=pb.CommandSubscribe.Earliest,
        **fields,  # type: ignore[arg-type]
    )
    return build_frame(command)


def _properties(count: int) -> list[pb.KeyValue]:
    return [pb.KeyValue(key=f"key-{each}", value="v" * 40) for each in range(count)]


def _id(ledger: int, entry: int, *, ack_set: bool = False) -> pb.MessageIdData:
    each_second = [0x5555_5555_5555_5555] * (IN_BATCH // 64 + 1)
    return pb.MessageIdData(ledger_id=ledger, entry_id=entry, ack_set=each_second if ack_set else ())


def _ack(ids: list[pb.MessageIdData], request_id: int = 1) -> bytes:
    return build_frame(
        pb.CommandAck(consumer_id=SHARED, ack_type=pb.CommandAck.Individual, message_id=ids, request_id=request_id)
    )
