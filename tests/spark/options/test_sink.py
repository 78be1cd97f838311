"""A writer's options are parsed, and each mistake in them is named."""

import pytest

from exacta.spark.options import OptionError, sink_options, source_options

SERVERS = {"kafka.bootstrap.servers": "a:1"}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"topic": "x"}, "writing needs option 'kafka.bootstrap.servers'"),
        ({**SERVERS}, "set option 'topic'; or, where rows name their topics in a column 'topic', set option 'transac"),
        ({**SERVERS, "kafka.transactional.id": "a"}, "set option 'transactional.id.prefix'"),
        ({**SERVERS, "kafka.key.serializer": "a"}, "give column 'key' its bytes in the query"),
        ({**SERVERS, "kafka.partitioner.class": "a"}, "give the rows a column 'partition'"),
        ({**SERVERS, "kafka.config.providers": "file"}, "would be taken as they stand"),
        ({**SERVERS, "transactional.id.prefix": "a" * 250}, "must not be longer than 249 characters, not 250"),
        ({**SERVERS, "transactional.id.prefix": "a-manifest"}, "must not end in '-manifest'"),
        ({**SERVERS, "topic": " "}, "option 'topic' is empty"),
        ({**SERVERS, "path": "x"}, "option 'path' ('x') has no effect: name topics in option 'topic'"),
        (
            {**SERVERS, "transaction.scope": "batch", "Replay.Deterministic": "true"},
            "option 'replay.deterministic' has no effect with option 'transaction.scope' batch",
        ),
        *(
            ({**SERVERS, "delivery.guarantee": "at-least-once", name: value}, f"option '{name}' has no effect with")
            for name, value in {
                "transaction.scope": "task",
                "transactional.id.prefix": "a",
                "transaction.marker.topic": "a",
                "kafka.transaction.timeout.ms": "5",
                "replay.deterministic": "false",
                "checkpoint.moved.from": "/c",
            }.items()
        ),
        (
            {**SERVERS, "kafka.transaction.timeout.ms": "9999999999"},
            "option 'kafka.transaction.timeout.ms' can be 2147483647 at most, not 9999999999",
        ),
        ({**SERVERS, "kafka.batch.size": "9" * 5000}, "'kafka.batch.size' can be 2147483647 at most"),
        ({**SERVERS, "kafka.batch.size": "²"}, "must be a positive whole number, not '²'"),
        ({**SERVERS, "kafka.acks": "1"}, "option 'kafka.acks' can only be all or -1"),
        ({**SERVERS, "kafka.enable.idempotence": "false"}, "can only be true"),
        ({**SERVERS, "kafka.compression.type": "brotli"}, "must be one of none, gzip, snappy, lz4, zstd"),
    ],
)
def test_what_a_writer_refuses(options, sentence):
    with pytest.raises(OptionError) as refused:
        sink_options(options)
    assert sentence in str(refused.value)


def test_what_spark_adds_by_itself_is_no_mistake():
    by_spark = {"queryName": "q", "path": "file:/warehouse/orders"}
    assert source_options({**SERVERS, "subscribe": "x", **by_spark}).topics == ("x",)
    at_least_once = {
        "delivery.guarantee": "at-least-once",
        "checkpointLocation": "/c",
        "kafka.delivery.timeout.ms": "5",
    }
    assert not sink_options({**SERVERS, "topic": "x", **by_spark, **at_least_once}).exactly_once
