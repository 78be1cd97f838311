"""The places of keys by the two ways of docs/how-to/keys-and-partitions.md, and those that clients have chosen.

Each client is held against `wanted`, so those that agree with it agree with each other.
"""

from collections import defaultdict
from collections.abc import Iterable

import mmh3
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka.partitioner import murmur2

from tests.pages.blocks import ROOT, Block, blocks_of

PAGE = ROOT / "docs/how-to/keys-and-partitions.md"
PARTITIONS = 5
"""No power of two: it shows whether the highest bit is masked before the remainder is taken."""
KEYS = [*(f"key-{number}" for number in range(25)), *("ü" * number + str(number) for number in range(1, 26))]
"""All lengths modulo 4, and bytes above 127."""
KAFKA, PULSAR = "As Kafka's clients do", "As Pulsar's clients can"
_HASHES = {KAFKA: murmur2, PULSAR: mmh3.hash}
SECONDS = 20


def wanted(way: str) -> dict[str, set[int]]:
    """Return the partition of each key."""
    return {key: {(_HASHES[way](key.encode()) & 0x7FFFFFFF) % PARTITIONS} for key in KEYS}


def create(bootstrap: str, topic: str) -> str:
    """Create the topic."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    [created] = admin.create_topics([NewTopic(topic, PARTITIONS, 1)]).values()
    created.result(SECONDS)
    return topic


def placed(bootstrap: str, topic: str, senders: Iterable[str]) -> dict[str, dict[str, set[int]]]:
    """Return where each sender's keys are; each has sent each key once, and its own name as the value."""
    left = len(KEYS) * len({*senders})
    found: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
        for _ in range(left):
            message = consumer.poll(SECONDS)
            assert message is not None
            assert message.error() is None, message.error()
            found[message.value().decode()][message.key().decode()].add(message.partition())
    finally:
        consumer.close()
    return {sender: dict(keys) for sender, keys in found.items()}


def printed(language: str, has: str) -> Block:
    """Return the page's one block in a language that has these words."""
    [block] = [each for each in blocks_of(PAGE) if each.language == language and has in each.text]
    return block
