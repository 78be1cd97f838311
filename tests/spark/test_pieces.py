"""The pure pieces of source and sink: hash, decision record, offset planning, options, checkpoint."""

import json
import subprocess
import sys

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType

from exacta.client.transactions import TopicPartition
from exacta.spark.arrow.partitioner import murmur2, partitions_of_keys
from exacta.spark.arrow.rows import check_read_columns, check_write_columns, read_schema
from exacta.spark.options import AtTime, OptionError, sink_options, source_options
from exacta.spark.sink import checkpoint, decision
from exacta.spark.sink.decision import Decision, DecisionEntry, UnreadableDecision
from exacta.spark.sink.one_task_per_partition import placed
from exacta.spark.source import planning
from exacta.spark.source.planning import DataLost, Range

# --- the hash ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "signed"),
    # From the tests of Apache Kafka's own murmur2.
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_of_known_keys(key, signed):
    assert murmur2(key) == signed & 0xFFFFFFFF


@given(st.lists(st.none() | st.binary(max_size=40)), st.integers(1, 50))
def test_a_column_is_hashed_like_its_keys(keys, partitions):
    array = pa.array([b"before", *keys], pa.binary()).slice(1)
    expected = [-1 if key is None else (murmur2(key) & 0x7FFFFFFF) % partitions for key in keys]
    assert partitions_of_keys(array, partitions).tolist() == expected


# --- the decision record ----------------------------------------------------------------------------------------------

entries = st.builds(
    DecisionEntry,
    task=st.integers(0, 2**32 - 1),
    attempt=st.integers(0, 2**16 - 1),
    producer_id=st.integers(0, 2**63 - 1),
    producer_epoch=st.integers(0, 2**15 - 1),
)


@given(st.lists(entries, max_size=900), st.text(max_size=1000), st.integers(0, 2**40))
def test_a_record_comes_back_from_pieces_that_fit(listed, location, batch_id):
    shown = decision.shown_location(location)
    made = Decision(batch_id, len(listed) + 3, "a query", shown, "0" * 32, tuple(listed), 7, "a name", "an application")
    pieces = decision.pack(made)
    assert all(len(piece.encode()) <= decision.MOST_BYTES for piece in pieces)
    assert decision.pieces_of(pieces[0]) == len(pieces)
    assert decision.origin_of(pieces[0]) == ("a query", shown, True, "a name", "an application")
    assert decision.unpack(made.offset, pieces) == made


def test_a_record_that_decides_nothing_is_not_taken_for_batch_0():
    made = Decision.none_yet("a query", "file:/a", "a name")
    (piece,) = decision.pack(made)
    assert decision.origin_of(piece) == ("a query", "file:/a", False, "a name", "")
    assert decision.unpack(made.offset, [piece]) == made
    assert (made.offset, made.batch_id, made.is_one) == (0, -1, False)
    # A version that knows only the first form refuses it.
    assert '"form":1' not in piece


@pytest.mark.parametrize("text", ["", "x", "[]", '{"form": 2}', '{"form": 1, "entries": "!"}', '{"form":1}'])
def test_a_damaged_record_is_not_guessed_about(text):
    with pytest.raises(UnreadableDecision):
        decision.unpack(1, [text])


# --- offsets ----------------------------------------------------------------------------------------------------------

A, B, C = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
positions = st.fixed_dictionaries({A: st.integers(0, 1000), B: st.integers(0, 1000), C: st.integers(0, 1000)})


@given(positions, positions, st.none() | st.integers(1, 500))
def test_a_batch_stays_between_its_start_and_what_there_is(start, sizes, limit):
    available = {partition: start[partition] + size for partition, size in sizes.items()}
    end = planning.limited(start, available, limit)
    taken = {partition: end[partition] - start[partition] for partition in start}
    assert all(0 <= taken[partition] <= sizes[partition] for partition in start)
    # Whoever has something gets on, and the limit is exceeded only by that.
    assert all(taken[partition] > 0 for partition in start if sizes[partition])
    if limit is None:
        assert end == available
    else:
        assert sum(taken.values()) <= limit + len(start)
        assert sum(taken.values()) >= min(limit, sum(sizes.values())) - len(start)


@given(positions)
def test_offsets_come_back_from_json(start):
    assert planning.from_json(json.loads(json.dumps(planning.to_json(start)))) == start


def test_offsets_carry_topic_ids_where_others_pass_them_over():
    topic_id = bytes(range(240, 256))
    text = planning.id_as_text(topic_id)
    assert len(text) == 22
    assert planning.id_from_text(text) == topic_id
    assert planning.id_from_text("") is None
    stored = json.loads(json.dumps(planning.to_json({A: 5, C: 7}, {"t": text})))
    assert stored == {"t": {"0": 5}, "u": {"0": 7}, f"t#{text}": {}}
    assert planning.topic_ids_in(stored) == {"t": text}
    # As Spark's own connector, and whatever else goes by partition, reads it.
    assert {(topic, int(p)): at for topic, offsets in stored.items() for p, at in offsets.items()} == {A: 5, C: 7}
    assert planning.from_json(stored) == {A: 5, C: 7}
    # Of an older version: no ids.
    assert planning.topic_ids_in({"t": {"0": 5}}) == {}


def test_a_topic_is_replaced_where_it_has_another_id():
    assert planning.replaced({"t": "1", "u": "2", "v": "3"}, {"t": "1", "u": "4"}) == ["u"]
    assert planning.replaced({}, {"t": "1"}) == []


def sizes(parts):
    return [(part.partition, part.end - part.start) for part in parts]


def test_ranges_are_cut_as_sparks_connector_cuts_them():
    parts = [Range("t", 0, 0, 100), Range("t", 1, 50, 60), Range("t", 2, 0, 1)]
    cut = planning.sliced(parts, at_least=None, at_most_offsets=30)
    assert sizes(cut) == [(0, 25)] * 4 + [(1, 10), (2, 1)]
    # Small ones are left whole and do not count.
    cut = planning.sliced(parts, at_least=7, at_most_offsets=None)
    assert sizes(cut) == [(0, 20)] * 5 + [(1, 10), (2, 1)]
    assert sizes(planning.sliced(parts, at_least=3, at_most_offsets=None)) == sizes(parts)
    assert sizes(planning.sliced(parts, at_least=8, at_most_offsets=60))[0] == (0, 16)
    assert planning.sliced([], at_least=8, at_most_offsets=60) == []


@given(st.lists(st.integers(1, 1000), max_size=6), st.none() | st.integers(1, 40), st.none() | st.integers(1, 300))
def test_cutting_loses_and_doubles_nothing(counts, at_least, at_most):
    parts = [Range("t", index, 7, 7 + count, "id") for index, count in enumerate(counts)]
    cut = planning.sliced(parts, at_least=at_least, at_most_offsets=at_most)
    for part in parts:
        pieces = [piece for piece in cut if piece.partition == part.partition]
        assert [piece.start for piece in pieces] + [part.end] == [part.start] + [piece.end for piece in pieces]
        assert all(piece.start < piece.end and piece.topic_id == "id" for piece in pieces)
    if at_most is not None:
        assert all(piece.end - piece.start <= at_most for piece in cut)


def test_ranges_leave_out_what_is_empty_and_begin_new_partitions_where_they_begin():
    assert planning.ranges({A: 5, B: 7}, {A: 5, B: 9, C: 4}, {C: 2}) == [Range("t", 1, 7, 9), Range("u", 0, 2, 4)]


def test_what_is_gone_is_said():
    planning.check_not_behind({A: 5}, {A: 5, B: 1})
    with pytest.raises(DataLost, match="partition t-1 is gone"):
        planning.check_not_behind({B: 1}, {A: 5})
    with pytest.raises(DataLost, match="ends at offset 4, before offset 5"):
        planning.check_not_behind({A: 5}, {A: 4})


def test_a_new_partition_that_has_lost_its_beginning_is_lost_data():
    planning.check_from_the_start({A: 0, B: 0})
    with pytest.raises(DataLost, match="partition t-1 is new to the query and begins at offset 7, not at 0"):
        planning.check_from_the_start({A: 0, B: 7})


# --- options ----------------------------------------------------------------------------------------------------------

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
        (
            {**SERVERS, "subscribe": "x", "kafka.schema.registry.url": "5"},
            "'kafka.schema.registry.url' for reading; leave it out",
        ),
        ({**SERVERS, "subscribe": "x", "kafka.max.poll.record": "5"}, "did you mean 'kafka.max.poll.records'?"),
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


def schema_of(columns):
    types = {"string": StringType(), "binary": BinaryType(), "int": IntegerType()}
    return StructType([StructField(name, types[kind]) for name, kind in columns.items()])


def test_what_spark_adds_by_itself_is_no_mistake():
    by_spark = {"queryName": "q", "path": "file:/warehouse/orders"}
    assert source_options({**SERVERS, "subscribe": "x", **by_spark}).topics == ("x",)
    at_least_once = {
        "delivery.guarantee": "at-least-once",
        "checkpointLocation": "/c",
        "kafka.delivery.timeout.ms": "5",
    }
    assert not sink_options({**SERVERS, "topic": "x", **by_spark, **at_least_once}).exactly_once


@pytest.mark.parametrize(
    ("columns", "topic", "sentence"),
    [
        ({"key": "string"}, "t", "needs a column 'value'"),
        ({"value": "string"}, None, "set option 'topic', or give every row one"),
        ({"value": "int"}, "t", "must be of type string or binary, not int"),
        ({"value": "string", "valeu": "string"}, "t", "column 'valeu' cannot be written"),
        ({"value": "string", "Value": "string"}, "t", "there are two columns 'value'"),
        ({"value": "string", "headers": "string"}, "t", "column 'headers' must be of type array<struct<"),
    ],
)
def test_columns_that_cannot_be_written(columns, topic, sentence):
    with pytest.raises(OptionError) as refused:
        check_write_columns(schema_of(columns), topic)
    assert sentence in str(refused.value)


def test_columns_go_by_their_names_in_any_case():
    check_write_columns(schema_of({"Value": "string", "KEY": "binary", "Topic": "string", "Partition": "int"}), None)


@pytest.mark.parametrize(
    ("columns", "include_headers", "sentence"),
    [
        ({"value": "binary", "size": "int"}, False, "there is no column 'size' to read; the columns are: key, value"),
        ({"value": "string"}, False, "column 'value' is binary, not string: read it as it is, and cast it"),
        ({"value": "binary", "VALUE": "binary"}, False, "column 'value' is in the schema twice"),
        ({}, False, "the schema has no columns"),
        ({"value": "binary"}, True, "adds column 'headers', which the schema leaves out"),
    ],
)
def test_columns_that_cannot_be_read(columns, include_headers, sentence):
    with pytest.raises(OptionError) as refused:
        check_read_columns(schema_of(columns), include_headers=include_headers)
    assert sentence in str(refused.value)


@pytest.mark.parametrize("include_headers", [False, True])
def test_columns_that_can_be_read(include_headers):
    check_read_columns(read_schema(include_headers=include_headers), include_headers=include_headers)
    check_read_columns(schema_of({"Partition": "int", "value": "binary"}), include_headers=False)


# --- the checkpoint ---------------------------------------------------------------------------------------------------


def test_the_query_id_is_read_where_spark_writes_it(tmp_path):
    (tmp_path / "metadata").write_text('{"id":"0aa1"}')
    assert checkpoint.Checkpoint(str(tmp_path)).query_id() == "0aa1"
    assert checkpoint.Checkpoint(tmp_path.as_uri()).query_id() == "0aa1"
    with pytest.raises(checkpoint.CheckpointUnreadable, match="could not be read from the checkpoint at"):
        checkpoint.Checkpoint(str(tmp_path / "none")).query_id()


def test_the_current_batch_is_the_last_that_spark_has_planned(tmp_path):
    found = checkpoint.Checkpoint(str(tmp_path))
    assert found.current_batch() == 0
    (tmp_path / "offsets").mkdir()
    for name in ("9", "10", ".10.crc", ".11.tmp", "x"):
        (tmp_path / "offsets" / name).touch()
    assert found.current_batch() == 10


def test_what_a_batch_reads_is_told_by_its_offsets_and_its_watermark(tmp_path):
    found = checkpoint.Checkpoint(str(tmp_path))

    def written(offsets, watermark_ms=5, planned_ms=7):
        (tmp_path / "offsets").mkdir(exist_ok=True)
        metadata = f'{{"batchWatermarkMs":{watermark_ms},"batchTimestampMs":{planned_ms},"conf":{{}}}}'
        (tmp_path / "offsets" / "3").write_text(f"v1\n{metadata}\n{offsets}")
        return found.digest_of_batch(3)

    one = written('{"t":{"0":4}}')
    assert one == written('{"t":{"0":4}}', planned_ms=8)
    assert len({one, written('{"t":{"0":5}}'), written('{"t":{"0":4}}', watermark_ms=6), written("a\nb")}) == 4
    with pytest.raises(checkpoint.CheckpointUnreadable, match="what batch 4 reads could not be read"):
        found.digest_of_batch(4)
    (tmp_path / "offsets" / "4").write_text("v1\n{}\n1")
    with pytest.raises(checkpoint.CheckpointUnreadable):
        found.digest_of_batch(4)


def test_a_place_with_signs_of_an_address_in_its_name_is_found(tmp_path):
    """Spark tells the path of a checkpoint as it is, with nothing quoted."""
    odd = tmp_path / "a#b?c d"
    odd.mkdir()
    (odd / "metadata").write_text('{"id":"0aa1"}')
    assert checkpoint.Checkpoint(f"file:{odd}").query_id() == "0aa1"
    assert checkpoint.Checkpoint(str(odd)).query_id() == "0aa1"


def test_one_place_has_one_name(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    names = {
        checkpoint.canonical_location(location)
        for location in (
            str(tmp_path / "real"),
            f"{tmp_path}/real/",
            f"{tmp_path}/./link",
            (tmp_path / "real").as_uri(),
            f"file:{tmp_path}/real",
        )
    }
    assert len(names) == 1
    assert checkpoint.canonical_location("s3://bucket/a/") == "s3://bucket/a"


# --- imports ----------------------------------------------------------------------------------------------------------


def test_a_worker_loads_neither_the_broker_nor_its_event_loop():
    code = (
        "import sys, pyspark_exacta, exacta.spark.sink.task, exacta.spark.source.reading\n"
        "print(sorted(name for name in sys.modules if name.startswith(('exacta.core', 'exacta.engine', 'exacta.kafka', "
        "'exacta.adapters', 'exacta.server.server', 'uvloop', 'typer', 'rich', 'confluent_kafka'))))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"


def test_rows_are_placed_as_the_java_client_does_or_by_their_value():
    keys, values = [b"a", None, None, b"a", None], [b"1", b"1", b"2", b"2", None]
    batch = pa.RecordBatch.from_pydict({"key": pa.array(keys), "Value": pa.array(values)})
    found = placed(batch, 7)
    assert found.schema.names == ["key", "Value", "partition"]
    by_key, one, two = (murmur2(text) % 2**31 % 7 for text in (b"a", b"1", b"2"))
    assert found.column(2).to_pylist() == [by_key, one, two, by_key, 0]


def test_a_row_that_names_its_partition_keeps_it():
    columns = {"partition": pa.array([3, None], pa.int32()), "value": pa.array(["x", "y"])}
    found = placed(pa.RecordBatch.from_pydict(columns), 5)
    assert found.schema.names == ["value", "partition"]
    assert found.column(1).to_pylist() == [3, murmur2(b"y") % 2**31 % 5]
