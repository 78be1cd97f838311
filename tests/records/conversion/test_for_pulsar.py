"""What a read for a client of Pulsar's costs is told before it is done."""

import pytest

from exacta.protocol.kafka.records import HEADER_SIZE
from exacta.protocol.pulsar.compression import compress
from exacta.protocol.pulsar.entries import build_body
from exacta.protocol.pulsar.messages_pb2 import CompressionType, MessageMetadata
from exacta.records.conversion.for_pulsar import plain_bytes
from tests.records.conversion.batches import in_the_log, kafka_batch

SHORT = 64 << 10


@pytest.mark.parametrize("codec", range(5))
def test_a_batch_of_kafkas_is_as_long_as_what_comes_out_of_it(codec: int) -> None:
    def record(size: int) -> list[tuple[int, bytes | None, bytes | None, tuple[()]]]:
        return [(1, None, bytes(size), ())]

    plain = len(kafka_batch(record(1_000)).batch)
    assert plain_bytes(kafka_batch(record(1_000), codec=codec), SHORT) == plain
    assert plain_bytes(kafka_batch(record(10_000_000), codec=codec), SHORT) > SHORT
    damaged = kafka_batch(record(1_000), codec=codec)
    damaged = damaged._replace(batch=bytes(damaged.batch[:HEADER_SIZE]) + b"\xff" * 20)
    assert plain_bytes(damaged, SHORT) == (HEADER_SIZE + 20 if codec == 0 else SHORT + 1)


def test_an_entry_of_pulsars_is_as_long_as_it_says() -> None:
    metadata = MessageMetadata(producer_name="p", sequence_id=1, publish_time=1)
    metadata.compression, metadata.uncompressed_size = CompressionType.LZ4, 10_000_000
    entry = in_the_log(build_body(metadata, compress(CompressionType.LZ4, bytes(10_000_000)))[:100])
    assert plain_bytes(entry, SHORT) == len(entry.batch) + 10_000_000
