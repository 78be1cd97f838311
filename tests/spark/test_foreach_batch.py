"""`exacta.spark.write` decides these without Spark: its options, its memory, the job that it sends to the tasks."""

import pyarrow as pa
import pytest

from exacta.client.transactions import Producer, TopicPartition
from exacta.spark.foreach_batch import _told
from exacta.spark.options import OptionError, SinkOptions
from exacta.spark.options.foreach_batch import foreach_batch_options
from exacta.spark.sink.batch_sink import JOB_OPTION, Job, check_batch_options, job_of, name_of_job, without_checkpoint
from exacta.spark.sink.errors import SinkError
from exacta.spark.sink.messages import Prepared
from exacta.spark.sink.process_memory import SinkMemory, memory_of

MIB = 1024 * 1024
WRITERS = {"kafka.bootstrap.servers": "a:1", "topic": "x"}


def test_the_options_of_write_are_a_writers_and_a_few_more():
    wanted, writers = foreach_batch_options({**WRITERS, "Sink.Name": "late", "driver.rows": "0", "driver.bytes": "10"})
    assert (wanted.sink_name, wanted.driver_rows, wanted.driver_bytes, wanted.sink.topic) == ("late", 0, 10, "x")
    assert writers == WRITERS
    wanted, _ = foreach_batch_options(WRITERS)
    assert (wanted.sink_name, wanted.driver_rows) == (None, 5_000)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"driver.rows": "-1"}, "option 'driver.rows' must be a whole number, 0 or above, not '-1'"),
        ({"driver.bytes": "0"}, "option 'driver.bytes' must be a positive whole number"),
        ({"sink.name": " "}, "option 'sink.name' is empty"),
        *(
            ({"delivery.guarantee": "at-least-once", name: "5"}, f"option '{name}' has no effect with option 'delivery")
            for name in ("driver.rows", "driver.bytes")
        ),
        ({"sink.name": "x-manifest"}, "option 'sink.name' must not end in '-manifest'"),
        ({"sink.nam": "x"}, "does not know option 'sink.nam' for writing"),
    ],
)
def test_what_write_refuses(options, sentence):
    with pytest.raises(OptionError) as refused:
        foreach_batch_options({**WRITERS, **options})
    assert sentence in str(refused.value)


def write(memory, batch_id):
    with memory.writing(batch_id):
        pass


def test_two_calls_under_one_name_in_one_batch_are_refused():
    memory = SinkMemory("q", "run")
    write(memory, 0)
    with pytest.raises(SinkError, match=r"batch 0 was written to sink 'q' before, .* 'sink\.name'"):
        write(memory, 0)
    write(memory, 1)


def test_a_call_that_failed_may_be_repeated():
    memory = SinkMemory("q", "run")
    with pytest.raises(ZeroDivisionError), memory.writing(0):
        raise ZeroDivisionError
    write(memory, 0)


def test_a_batch_may_be_repeated_by_another_run_of_the_query():
    write(memory_of("q", "one"), 0)
    with pytest.raises(SinkError):
        write(memory_of("q", "one"), 0)
    write(memory_of("q", "two"), 0)
    write(memory_of("q.late", "two"), 0)


def test_after_a_large_batch_the_driver_does_not_ask_for_rows_until_a_small_one_came():
    memory = SinkMemory("q", None)
    assert memory.most_rows(100, 100 * 1024) == 100
    memory.wrote_by_tasks(101)
    assert memory.most_rows(100, 100 * 1024) == 0
    memory.wrote_by_tasks(100)
    assert memory.most_rows(100, 100 * 1024) == 100
    memory.saw(30, 30 * 2048, 1)  # bytes
    memory.wrote_alone(30)
    assert memory.most_rows(100, 100 * 1024) == 32  # a power of two, of the 50 that there is room for
    memory.wrote_by_tasks(33)
    assert memory.most_rows(100, 100 * 1024) == 0


def test_rows_come_without_their_numbers_where_few_are_expected():
    memory = SinkMemory("q", None)
    assert not memory.expects_less_than(100)  # of the first batch nothing is known
    memory.wrote_alone(25)
    assert memory.expects_less_than(100)
    memory.wrote_alone(26)
    assert not memory.expects_less_than(100)


def test_it_asks_for_less_after_spark_refused_to_send_what_it_asked_for():
    memory = SinkMemory("q", None)
    asked = [memory.most_rows(1000, MIB)]
    while asked[-1]:
        memory.was_too_much()
        asked.append(memory.most_rows(1000, MIB))
    assert asked == [1000, 64, 4, 0]


@pytest.mark.parametrize(("size", "partitions"), [(100, 4), (10_000, 200), (10_000, 4000), (MIB, 2)])
def test_what_the_driver_is_sent_has_a_bound(size, partitions):
    memory = SinkMemory("q", None)
    for assumed in (1024, size):
        memory.expect(lambda: partitions)
        most = memory.most_of_each(memory.most_rows(5_000, 16 * MIB), 16 * MIB)
        # The one row more of each partition that shows that it was cut is not in the share.
        assert most == 1 or most * partitions * assumed <= 16 * MIB
        memory.saw(100, 100 * size, partitions)


def test_a_partition_may_send_the_whole_batch_where_rows_are_small():
    memory = SinkMemory("q", None)
    memory.expect(lambda: 3)
    assert memory.most_of_each(memory.most_rows(5_000, 16 * MIB), 16 * MIB) == 5_000


def test_one_huge_row_is_forgotten():
    memory = SinkMemory("q", None)
    memory.saw(1, 20 * MIB, 1)
    memory.wrote_by_tasks(1)
    batches = 0
    while memory.most_rows(5_000, 16 * MIB) < 5:
        memory.wrote_by_tasks(5)
        batches += 1
    assert 20 <= batches < 60  # not at once: a batch that the driver asks for in vain is computed twice
    memory.saw(5, 500, 1)
    assert memory.most_rows(5_000, 16 * MIB) == 5_000


def test_batches_that_lie_in_few_partitions_are_not_asked_for_each_time():
    memory = SinkMemory("q", None)
    asked = 0
    for _ in range(100):
        most = memory.most_rows(5_000, 16 * MIB)
        asked += most > 0
        memory.wrote_by_tasks(10, asked=most)
    assert asked == 5


def test_small_rows_are_not_taken_for_smaller_with_time():
    memory = SinkMemory("q", None)
    memory.saw(10, 10 * 100, 1)
    for _ in range(100):
        memory.wrote_by_tasks(1)
    assert memory.most_rows(5_000, 10_000) == 64


@pytest.mark.parametrize(
    ("numbers", "cut", "partitions"),
    [([], False, 0), ([0, 1], False, 1), ([0, 1, 2], True, 1), ([0, 7 << 33, (7 << 33) + 1], False, 8)],
)
def test_what_the_numbers_of_rows_tell(numbers, cut, partitions):
    table = pa.table({"value": ["x"] * len(numbers), "number": pa.array(numbers, pa.int64())})
    collected = _told(table, 2)
    assert (collected.cut, collected.partitions) == (cut, partitions)
    assert collected.table.column_names == ["value"]


@pytest.mark.parametrize("committed_tasks", [None, frozenset({1, 2})])
def test_a_job_comes_back_from_its_option(committed_tasks):
    prepared = Prepared(
        name="q.late",
        query_id="q",
        driver=Producer("q.late-driver", 2**40, 7),
        marker=TopicPartition("x", 0),
        decided_batch=4,
        committed_tasks=committed_tasks,
    )
    job = Job(prepared=prepared, batch_id=5, location="file:/c", reads="ab")
    assert job_of({**WRITERS, JOB_OPTION.upper(): job.to_option()}) == job
    assert job_of(WRITERS) is None


def test_what_a_batch_keeps_of_the_options_of_a_stream():
    given = {**WRITERS, "checkpointlocation": "/c", "checkpoint.moved.from": "/d", "replay.deterministic": "true"}
    check_batch_options(without_checkpoint(given), overwrite=False)
    assert without_checkpoint(given) == WRITERS


def test_no_two_jobs_have_one_name():
    options = SinkOptions(bootstrap="a:1", name="nightly")
    assert name_of_job(options) != name_of_job(options)
    assert name_of_job(options).startswith("nightly-")


@pytest.mark.parametrize(
    ("options", "overwrite", "sentence"),
    [
        ({}, True, 'a topic cannot be overwritten: use mode("append")'),
        ({"checkpointlocation": "/c"}, False, "option 'checkpointLocation' has no effect on a batch"),
        ({"replay.deterministic": "true"}, False, "option 'replay.deterministic' has no effect on a batch"),
    ],
)
def test_what_a_batch_job_refuses(options, overwrite, sentence):
    check_batch_options(WRITERS, overwrite=False)
    with pytest.raises(OptionError) as refused:
        check_batch_options({**WRITERS, **options}, overwrite=overwrite)
    assert sentence in str(refused.value)
