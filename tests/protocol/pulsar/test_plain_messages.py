"""Metadata that are written by hand are those that `protobuf` writes."""

from hypothesis import given
from hypothesis import strategies as st

from exacta.protocol.pulsar.entries import build_batch, build_body
from exacta.protocol.pulsar.messages_pb2 import MessageMetadata, Property, SingleMessageMetadata
from exacta.protocol.pulsar.plain_messages import batched_head, single_head

numbers = st.integers(0, (1 << 64) - 1) | st.integers(0, 1 << 15)
texts = st.binary(max_size=200)
properties = st.lists(st.tuples(texts, texts), max_size=3)


def fields(told: list[tuple[bytes, bytes]], key: bytes | None, event_time: int, sequence_id: int) -> dict[str, object]:
    found: dict[str, object] = {
        "properties": [Property(key=name, value=value) for name, value in told],
        "sequence_id": sequence_id,
    }
    if key is not None:
        found["partition_key"] = key
    if event_time:
        found["event_time"] = event_time
    return found


@given(properties, st.none() | texts, st.binary(max_size=300), numbers, numbers)
def test_of_a_batch(
    told: list[tuple[bytes, bytes]], key: bytes | None, payload: bytes, event_time: int, sequence_id: int
) -> None:
    metadata = SingleMessageMetadata(payload_size=0, **fields(told, key, event_time, sequence_id))  # type: ignore[arg-type]
    expected = build_batch([(metadata, payload)])
    assert batched_head(told, key, len(payload), event_time, sequence_id) + payload == expected


@given(st.text(max_size=9), properties, st.none() | texts, numbers, numbers, numbers)
def test_alone(
    producer: str,
    told: list[tuple[bytes, bytes]],
    key: bytes | None,
    publish_time: int,
    event_time: int,
    sequence_id: int,
) -> None:
    metadata = MessageMetadata(
        producer_name=producer,
        publish_time=publish_time,
        **fields(told, key, event_time, sequence_id),  # type: ignore[arg-type]
    )
    head = single_head(producer.encode(), sequence_id, publish_time, told, key, event_time)
    assert head == build_body(metadata, b"")
