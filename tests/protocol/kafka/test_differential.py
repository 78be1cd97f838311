"""Our codec against two others, for every message in every version: the same values give the same bytes, both ways."""

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from exacta.protocol.kafka.apis import OUR_OWN
from exacta.protocol.kafka.codec import decode, encode
from exacta.protocol.kafka.schema import Message
from tests.protocol.kafka.oracles import (
    kafka_python_class,
    kafka_python_values,
    kio_values,
    plain,
    read_kio,
    to_kafka_python,
    write_kio,
)
from tests.protocol.kafka.strategies import MESSAGES, message_id, messages
from tests.shares import share_of

EXAMPLES = settings(
    max_examples=3,  # times 384 messages
    derandomize=True,
    database=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)

# Versions of Apache Kafka 4.4 that neither of them has yet: ApiVersions (KIP-1242), TxnOffsetCommit (KIP-1319),
# DeleteGroups.
NEWER = {(18, 5), (28, 6), (42, 3)}
# Nobody else knows our own.
KNOWN_TO_OTHERS = [
    (cls, version)
    for cls, version in MESSAGES
    if cls.SCHEMA.key not in OUR_OWN and (cls.SCHEMA.key, version) not in NEWER
]

# KIP-848, which kafka-python does not speak.
KNOWN_TO_KAFKA_PYTHON = [(cls, version) for cls, version in KNOWN_TO_OTHERS if cls.SCHEMA.key not in (68, 69)]


@pytest.mark.parametrize(("cls", "version"), share_of(KNOWN_TO_KAFKA_PYTHON), ids=message_id)
def test_agrees_with_kafka_python(cls: type[Message], version: int) -> None:
    theirs = kafka_python_class(cls)

    @EXAMPLES
    @given(messages(cls, version, kafka_python_values))
    def agrees(message: Message) -> None:
        ours = b"".join(encode(message, version))
        assert bytes(to_kafka_python(message, theirs, version).encode(version=version)) == ours
        assert plain(theirs.decode(ours, version=version), cls, version) == plain(message, cls, version)
        assert decode(cls, version, ours) == message

    agrees()


@pytest.mark.parametrize(("cls", "version"), share_of(KNOWN_TO_OTHERS), ids=message_id)
def test_agrees_with_kio(cls: type[Message], version: int) -> None:
    @EXAMPLES
    @given(messages(cls, version, kio_values(cls, version)))
    def agrees(message: Message) -> None:
        ours = b"".join(encode(message, version))
        entity = read_kio(cls, version, ours)
        assert plain(entity, cls, version) == plain(message, cls, version)
        # kio leaves out tagged structures that equal their default; we send what is there.
        assert plain(decode(cls, version, write_kio(entity)), cls, version) == plain(message, cls, version)

    agrees()
