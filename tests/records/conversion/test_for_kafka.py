"""What one fetch converts of several partitions: it is bounded, and none is left out for ever."""

from exacta.ports.record_format import Buffer
from exacta.protocol.pulsar.compression import compress
from exacta.protocol.pulsar.entries import build_batch, build_body
from exacta.protocol.pulsar.messages_pb2 import CompressionType, MessageMetadata, SingleMessageMetadata
from exacta.records.conversion.for_kafka import all_converted, plain_bytes
from tests.records.conversion.batches import in_the_log, kafka_batch, pulsar_entry, read_kafka


def growing(count: int = 100) -> bytes:
    """Return an entry that becomes many times as long: each record has the name of its producer."""
    metadata = MessageMetadata(producer_name="p" * 1_000, sequence_id=1, publish_time=1)
    return bytes(pulsar_entry(metadata, [(SingleMessageMetadata(payload_size=0), b"")] * count).batch)


def sizes(found: list[list[Buffer]]) -> list[int]:
    return [sum(map(len, each)) for each in found]


def test_many_partitions_take_no_more_than_their_rooms_and_one_batch() -> None:
    entry = growing()
    room = 3 * len(entry)
    found = all_converted([([entry], room)] * 200, zstd=False)
    whole = len(found[0][0])
    assert whole > 20 * room
    assert sum(sizes(found)) <= 200 * room + whole
    assert sizes(found)[:2] == [whole, whole]
    assert set(sizes(found)) == {whole, 0}


def test_the_first_batch_is_converted_whatever_its_size() -> None:
    entry = growing()
    assert all_converted([([entry, entry], 1), ([entry], 1)], zstd=True)[1:] == [[]]
    (first, _) = all_converted([([entry, entry], 1), ([entry], 1)], zstd=True)
    assert [len(read_kafka(bytes(each)).records) for each in first] == [100]


def test_a_partition_takes_the_room_that_others_leave_for_its_first_batch_only() -> None:
    small, entry = bytes(kafka_batch([(1, None, b"v", ())]).batch), growing()
    found = all_converted([([small], 1_000_000), ([entry, entry], 10)], zstd=True)
    assert [len(each) for each in found] == [1, 1]


def test_work_is_told_by_what_comes_out_of_a_decompression() -> None:
    metadata = MessageMetadata(producer_name="p", sequence_id=1, publish_time=1, num_messages_in_batch=1)
    metadata.compression, payload = CompressionType.ZSTD, build_batch([(SingleMessageMetadata(), bytes(1_000_000))])
    metadata.uncompressed_size = len(payload)
    bomb = bytes(in_the_log(build_body(metadata, compress(CompressionType.ZSTD, payload))).batch)
    assert len(bomb) < 300
    own = bytes(kafka_batch([(1, None, b"v", ())]).batch)
    assert plain_bytes([own, own + bomb]) == 2 * len(own) + len(bomb) + len(payload)
