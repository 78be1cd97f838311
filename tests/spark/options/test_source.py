"""A reader's options are parsed, and each mistake in them is named."""

import pytest

from exacta.spark.options import AtTime, OptionError, sink_options, source_options

SERVERS = {"kafka.bootstrap.servers": "a:1"}


def test_options_go_by_their_names_in_any_case():
    parsed = source_options({"KAFKA.BOOTSTRAP.SERVERS": "a:1", "Subscribe": "x, y,x", "startingoffsets": "Earliest"})
    assert (parsed.bootstrap, parsed.topics, parsed.starting) == ("a:1", ("x", "y"), "earliest")
    assert parsed.committed_only
    sink = sink_options({**SERVERS, "topic": "x", "checkpointlocation": "/c", "queryname": "q", "kafka.acks": "all"})
    assert (sink.topic, sink.checkpoint_location, sink.transaction_timeout_ms) == ("x", "/c", 900_000)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"subscribe": "x"}, "reading needs option 'kafka.bootstrap.servers'"),
        ({**SERVERS}, "exactly one of the options 'subscribe' (topics), 'subscribePattern' and"),
        ({**SERVERS, "subscribe": "x", "assign": '{"x": [0]}'}, "exactly one of the options"),
        ({**SERVERS, "subscribe": " , "}, "option 'subscribe' names no topic"),
        ({**SERVERS, "subscribe": "x", "subscribePattern": "y"}, "exactly one of the options"),
        ({**SERVERS, "subscribePattern": "a("}, "is not a regular expression of Python's `re`: missing )"),
        ({**SERVERS, "subscribe": "x", "endingOffsets": "latest"}, "is for batches: a stream has no use for it"),
        ({**SERVERS, "subscribe": "x", "endingTimestamp": "5"}, "is for batches"),
        ({**SERVERS, "subscribe": "x", "startingTimestamp": "now"}, "must be a time in ms since 1970, not 'now'"),
        ({**SERVERS, "subscribe": "x", "startingOffsetsByTimestamp": '{"x": 5}'}, "must be JSON like"),
        ({**SERVERS, "subscribe": "x", "startingOffsetsByTimestampStrategy": "latest"}, "needs 'startingTimestamp' or"),
        ({**SERVERS, "subscribe": "x", "maxTriggerDelay": "5m"}, "needs 'minOffsetsPerTrigger'"),
        (
            {**SERVERS, "subscribe": "x", "minOffsetsPerTrigger": "5", "maxTriggerDelay": "5 weeks"},
            "must be a time such as 500ms, 30s, 15m, 2h or 1d",
        ),
        (
            {**SERVERS, "subscribe": "x", "minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "4"},
            "'minOffsetsPerTrigger' (5) is above 'maxOffsetsPerTrigger' (4)",
        ),
        ({**SERVERS, "subscribe": "x", "minPartitions": "0"}, "'minPartitions' must be a positive whole number"),
        ({**SERVERS, "subscribe": "x", "kafka.group.id": "g"}, "name it in option 'commit.group.id'"),
        ({**SERVERS, "subscribe": "x", "kafka.enable.auto.commit": "false"}, "which keeps the offsets itself"),
        ({**SERVERS, "subscribe": "x", "kafka.value.deserializer": "y"}, "column 'value' has the bytes"),
        ({**SERVERS, "subscribe": "x", "kafka.interceptor.classes": "y"}, "names a class of Java, and no class of"),
        ({**SERVERS, "subscribe": "x", "kafka.exclude.internal.topics": "false"}, "can only be true, not 'false'"),
        ({**SERVERS, "subscribe": "x", "kafka.auto.offset.reset": "latest"}, "set option 'startingOffsets'"),
        ({**SERVERS, "subscribe": "x", "checkpointlocation": "/c"}, "it is an option of the writer"),
        ({**SERVERS, "subscribe": "x", "path": "y"}, "'path' ('y') has no effect: name topics in option 'subscribe'"),
        ({**SERVERS, "subscribe": "x", "startingOffset": "y"}, "did you mean 'startingOffsets'?"),
        ({**SERVERS, "subscribe": "x", "startingOffsets": "first"}, "must be earliest, latest or JSON like"),
        ({**SERVERS, "subscribe": "x", "startingOffsets": '{"x": 3}'}, "must be earliest, latest or JSON"),
        ({**SERVERS, "subscribe": "x", "startingOffsets": '{"x": {"0": -3}}'}, "an offset below -2"),
        ({**SERVERS, "subscribe": "x", "maxOffsetsPerTrigger": str(2**63)}, "can be 9223372036854775807 at most"),
        ({**SERVERS, "subscribe": "x", "minPartitions": str(2**31)}, "'minPartitions' can be 2147483647 at most"),
        ({**SERVERS, "subscribe": "x", "startingTimestamp": str(2**63)}, "can be 9223372036854775807 at most"),
        (
            {**SERVERS, "subscribe": "x", "startingOffsetsByTimestamp": f'{{"x": {{"0": {2**63}}}}}'},
            "holds a time above 9223372036854775807 ms",
        ),
        (
            {**SERVERS, "subscribe": "x", "minOffsetsPerTrigger": "5", "maxTriggerDelay": f"{2**63 // 1000 + 1}s"},
            "'maxTriggerDelay' can be",
        ),
        ({**SERVERS, "subscribe": "x", "maxOffsetsPerTrigger": "0"}, "must be a positive whole number, not '0'"),
        ({**SERVERS, "subscribe": "x", "failOnDataLoss": "yes"}, "must be true or false, not 'yes'"),
        ({**SERVERS, "assign": '{"x": ["0"]}'}, "must list whole numbers for topic 'x'"),
        ({**SERVERS, "assign": "{}"}, "option 'assign' names no topic"),
        ({**SERVERS, "assign": '{"x": []}'}, "option 'assign' names no partition of topic 'x'"),
        ({**SERVERS, "subscribe": "x", "startingOffsets": "{}"}, "option 'startingOffsets' names no topic"),
        ({**SERVERS, "subscribe": "x", "startingOffsets": '{"x": {}}'}, "names no partition of topic 'x'"),
        ({**SERVERS, "subscribe": "x", "startingOffsetsByTimestamp": "{}"}, "'startingOffsetsByTimestamp' names no"),
        ({"kafka.bootstrap.servers": "a", "subscribe": "x"}, "option 'kafka.bootstrap.servers': 'a' is not host:port"),
        ({**SERVERS, "subscribe": "x", "kafka.isolation.level": "any"}, "read_committed, read_uncommitted"),
        ({**SERVERS, "subscribe": "x", "schema.registry.url": "5"}, "'schema.registry.url' for reading; leave it out"),
        ({**SERVERS, "subscribe": "x", "kafka.isolation.leve": "5"}, "did you mean 'kafka.isolation.level'?"),
        ({**SERVERS, "subscribe": "x", "bootstrap.servers": "a:1"}, "did you mean 'kafka.bootstrap.servers'?"),
    ],
)
def test_what_a_reader_refuses(options, sentence):
    with pytest.raises(OptionError) as refused:
        source_options(options)
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"startingOffsets": "latest"}, "of a batch cannot be latest"),
        ({"startingOffsets": '{"x": {"0": -1}}'}, "of a batch cannot be latest"),
        ({"endingOffsets": "earliest"}, "cannot be earliest"),
        ({"endingOffsets": "{}"}, "option 'endingOffsets' names no topic"),
        ({"endingOffsets": '{"x": {"0": -2}}'}, "cannot be earliest"),
        ({"startingOffsets": '{"x": {"0": 5}}', "endingOffsets": '{"x": {"0": 4}}'}, "at offset 5 of x-0, behind 4"),
        ({"driver.rows": "5"}, "'driver.rows' is for streams: a batch has no use for it"),
        ({"commit.group.id": "g"}, "is for streams"),
    ],
)
def test_what_a_reader_of_a_batch_refuses(options, sentence):
    with pytest.raises(OptionError) as refused:
        source_options({**SERVERS, "subscribe": "x", **options}, batch=True)
    assert sentence in str(refused.value)


def test_counts_of_offsets_are_longs_as_with_sparks_connector():
    longs = {"maxOffsetsPerTrigger": str(2**63 - 1), "maxRecordsPerPartition": f"00{2**40}"}
    parsed = source_options({**SERVERS, "subscribe": "x", **longs})
    assert (parsed.max_offsets_per_trigger, parsed.max_records_per_partition) == (2**63 - 1, 2**40)


def test_a_time_wins_over_times_and_these_over_offsets():
    times = {"startingOffsetsByTimestamp": '{"x": {"0": 7}}', "startingOffsets": "earliest"}
    assert source_options({**SERVERS, "subscribe": "x", **times}).starting == AtTime(
        "startingOffsetsByTimestamp", {"x": {0: 7}}
    )
    assert source_options({**SERVERS, "subscribe": "x", **times, "startingTimestamp": "9"}).starting == AtTime(
        "startingTimestamp", 9
    )
    batch = source_options({**SERVERS, "subscribe": "x", "endingTimestamp": "0", "endingOffsets": "latest"}, batch=True)
    assert (batch.starting, batch.ending) == ("earliest", AtTime("endingTimestamp", 0))


@pytest.mark.parametrize(
    ("text", "ms"),
    [("250", 250), ("250ms", 250), ("3 s", 3_000), ("15m", 900_000), ("2min", 120_000), ("1d", 86_400_000)],
)
def test_times_as_spark_writes_them(text, ms):
    options = {**SERVERS, "subscribe": "x", "minOffsetsPerTrigger": "5", "maxTriggerDelay": text}
    assert source_options(options).max_trigger_delay_ms == ms
