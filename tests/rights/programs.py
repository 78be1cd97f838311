"""What the page says of Exacta's own clients in Python and Spark, as functions that raise what these raise.

Source and sink are called as Spark calls them, without a virtual machine. `tests/spark/test_secured.py` has real ones.
"""

import asyncio
import itertools
import json
import logging
import pickle
from collections.abc import Callable, Iterator
from contextlib import aclosing, closing, contextmanager
from types import SimpleNamespace
from typing import Any, cast

import aiokafka
import pulsar
import pyarrow as pa
import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from pyspark.sql.types import StringType, StructField, StructType
from typer.testing import CliRunner

import exacta
import exacta.spark
from exacta.cli.app import app
from exacta.spark import write
from exacta.spark.arrow.rows import read_schema
from exacta.spark.datasource import ExactaDataSource
from exacta.spark.options import source_options
from exacta.spark.source.source import ExactaStreamReader
from tests.rights.kafka_clients import FROM_START, GROUP, KEYWORDS, QUICK, Refused, started
from tests.rights.place import SECONDS, Place
from tests.spark.foreach_batch_by_hand import Frame, Spark, restarted

Task = Callable[[Place], object]
ROWS = StructType([StructField("value", StringType())])
_numbers = itertools.count()

# --- Python programs --------------------------------------------------------------------------------------------------


def exactly_once(place: Place) -> None:
    producer = Producer(place.librdkafka | QUICK | {"transactional.id": "job-1"})
    producer.init_transactions(SECONDS)
    reports: list[str] = []
    with closing(Consumer(place.librdkafka | QUICK | GROUP)) as consumer:
        consumer.subscribe(["orders"])
        try:
            with exacta.exactly_once(consumer, producer) as transaction:
                messages = transaction.consume(1, SECONDS)
                assert messages
                producer.produce("copy", messages[0].value(), on_delivery=lambda error, _: reports.append(str(error)))
            assert transaction.committed
        except KafkaException as error:  # which says no more than that there is a report, where a write is refused
            raise Refused(f"{error} {reports}") from error


def exactly_once_by_aiokafka(place: Place) -> None:
    def producer_of(partition: Any) -> aiokafka.AIOKafkaProducer:
        return aiokafka.AIOKafkaProducer(**place.python, **KEYWORDS, transactional_id=f"job-{partition.partition}")

    async def work() -> None:
        async with (
            started(
                aiokafka.AIOKafkaConsumer(
                    "orders", **place.python, **KEYWORDS, **FROM_START, isolation_level="read_committed"
                )
            ) as consumer,
            aclosing(exacta.exactly_once(consumer, producer_of)) as once,
        ):
            async with once as transaction:
                messages = await transaction.consume(1, SECONDS)
                assert messages
                await transaction.send("copy", messages[0].value)
            assert transaction.committed

    asyncio.run(asyncio.wait_for(work(), SECONDS))


def two_phase(place: Place, *, with_offsets: bool = False) -> None:
    config = {name.removeprefix("kafka."): value for name, value in place.spark.items()}
    database = exacta.Sqlite(str(place.folder / "shop.db"))
    with (
        exacta.two_phase(
            config.pop("bootstrap.servers"), transactional_id="job-1", database=database, config=config
        ) as both,
        both.transaction() as transaction,
    ):
        transaction.execute("CREATE TABLE IF NOT EXISTS orders (number INTEGER)")
        transaction.produce("copy", b"x")
        if with_offsets:
            transaction.send_offsets("billing", {("orders", 0): 2})


# --- Spark ------------------------------------------------------------------------------------------------------------


def options(place: Place, **more: str) -> dict[str, str]:
    return place.spark | {name.replace("__", "."): value for name, value in more.items()}


@contextmanager
def warnings_of_spark() -> Iterator[list[str]]:
    """Yield what source and sink only warn of: a query goes on without a position of `commit.group.id`."""
    said: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("exacta.spark")
    logger.addHandler(handler)
    try:
        yield said
    finally:
        logger.removeHandler(handler)


def read_stream(place: Place, **more: str) -> None:
    parsed = source_options(options(place, subscribe="orders", startingOffsets="earliest", **more))
    reader = ExactaStreamReader(parsed, read_schema(include_headers=False))
    with warnings_of_spark() as said:
        start = reader.initialOffset()
        end = reader.latestOffset(start, reader.getDefaultReadLimit())
        assert [batch for part in reader.partitions(start, end) for batch in reader.read(part)]
        reader.commit(end)
        reader.stop()
    if said:
        raise Refused(said[0])


def topics_of_a_pattern(place: Place) -> set[str]:
    """Return the topics whose names the pattern matches, as a stream begins."""
    parsed = source_options(options(place, subscribePattern="orders|copy", startingOffsets="earliest"))
    reader = ExactaStreamReader(parsed, read_schema(include_headers=False))
    try:
        return {topic for topic in reader.initialOffset() if "#" not in topic}
    finally:
        reader.stop()


def read_batch(place: Place) -> None:
    reader = ExactaDataSource(options(place, subscribe="orders")).reader(read_schema(include_headers=False))
    assert [batch for part in reader.partitions() for batch in reader.read(part)]


class Query:
    """A query whose names begin with `job`, and its checkpoint."""

    def __init__(self, place: Place) -> None:
        number = next(_numbers)
        self.id = f"query-{number}"
        self.checkpoint = place.folder / self.id
        (self.checkpoint / "offsets").mkdir(parents=True)
        (self.checkpoint / "metadata").write_text(json.dumps({"id": self.id}))
        offsets = json.dumps({"t": {"0": 2}})
        (self.checkpoint / "offsets" / "0").write_text(f'v1\n{{"batchWatermarkMs":0}}\n{offsets}')
        self.options = {
            "topic": "copy",
            "checkpointLocation": str(self.checkpoint),
            "transactional.id.prefix": f"job-{number}",
        }


def in_task(patch: pytest.MonkeyPatch, **properties: str) -> None:
    """Let what is called be in a task of Spark."""
    context = SimpleNamespace(partitionId=lambda: 0, attemptNumber=lambda: 0, getLocalProperty=properties.get)
    patch.setattr("pyspark.TaskContext.get", lambda: context)


def rows() -> Iterator[pa.RecordBatch]:
    return iter([pa.RecordBatch.from_pydict({"value": ["a", "b"]})])


def write_stream(place: Place, **more: str) -> None:
    query = Query(place)
    given = query.options | options(place, **more)
    if "delivery.guarantee" in given:
        del given["transactional.id.prefix"]
    writer = pickle.dumps(ExactaDataSource(given).streamWriter(ROWS, overwrite=False))
    with pytest.MonkeyPatch.context() as patch:
        in_task(patch, **{"sql.streaming.queryId": query.id, "streaming.sql.batchId": "0"})
        message = pickle.loads(writer).write(rows())
    pickle.loads(writer).commit([message], 0)


def check(place: Place) -> None:
    frame = SimpleNamespace(schema=ROWS, isStreaming=True, sparkSession=SimpleNamespace(conf={}))
    report = exacta.spark.check(cast("Any", frame), options(place, topic="copy", transactional__id__prefix="job"))
    if not report.ok:
        raise Refused(str(report))


def write_batch(place: Place) -> None:
    given = options(place, topic="copy", transactional__id__prefix="job")
    writer = pickle.dumps(ExactaDataSource(given).writer(ROWS, overwrite=False))
    with pytest.MonkeyPatch.context() as patch:
        in_task(patch)
        message = pickle.loads(writer).write(rows())
    pickle.loads(writer).commit([message])


def write_in_foreach_batch(place: Place, driver_rows: int, **more: Any) -> None:
    query = Query(place)
    with pytest.MonkeyPatch.context() as patch:
        Spark(patch)
        restarted(patch)
        given = options(place) | query.options | {"driver.rows": str(driver_rows)}
        written = write(cast("Any", Frame(range(2))), 0, given, **more)
    assert written.rows == 2


def acknowledge(place: Place) -> None:
    first_of_orders = pulsar.MessageId(-1, 0, 0, -1)
    write_in_foreach_batch(place, 100, acknowledge={"shop": [first_of_orders]})


def clean(place: Place) -> None:
    """Clean up after a query that has left a batch which is not decided."""
    query = Query(place)
    anybody = {"kafka.bootstrap.servers": place.bootstrap_servers}
    writer = pickle.dumps(ExactaDataSource(anybody | query.options).streamWriter(ROWS, overwrite=False))
    with pytest.MonkeyPatch.context() as patch:
        in_task(patch, **{"sql.streaming.queryId": query.id, "streaming.sql.batchId": "0"})
        pickle.loads(writer).write(rows())
    command = ["spark", "clean", "--prefix", query.options["transactional.id.prefix"], "--yes", "--watch", "0"]
    done = CliRunner().invoke(app, [*command, "--bootstrap-server", place.address, "--config", place.properties])
    if done.exit_code or "that user 'alice' may describe" in done.stdout:
        raise Refused(done.stdout + done.stderr)
    print(done.stdout)


TASKS: dict[tuple[str, str], Task] = {
    ("`exacta.exactly_once`", "confluent-kafka"): exactly_once,
    ("`exacta.exactly_once`", "aiokafka"): exactly_once_by_aiokafka,
    ("`exacta.two_phase`", "exacta"): two_phase,
    ("`exacta.two_phase`, with offsets of a group", "exacta"): lambda place: two_phase(place, with_offsets=True),
    ("a stream is read", ""): read_stream,
    ("a batch is read", ""): read_batch,
    ("a stream is read with `commit.group.id=billing`", ""): lambda place: read_stream(
        place, commit__group__id="billing"
    ),
    ("a stream is written", ""): write_stream,
    ("a stream is written into a topic that it makes", ""): lambda place: write_stream(place, topic="invoices"),
    ("a stream is written with `transaction.marker.topic=orders`", ""): lambda place: write_stream(
        place, transaction__marker__topic="orders"
    ),
    ("a stream is written with `delivery.guarantee=at-least-once`", ""): lambda place: write_stream(
        place, delivery__guarantee="at-least-once"
    ),
    ("a batch is written", ""): write_batch,
    ("`exacta.spark.write`, few rows", ""): lambda place: write_in_foreach_batch(place, 100),
    ("`exacta.spark.write`, rows of many tasks", ""): lambda place: write_in_foreach_batch(place, 0),
    ("`exacta.spark.write` that acknowledges messages of `orders`", ""): acknowledge,
    ("`exacta.spark.check`", ""): check,
    ("`exacta spark clean`", ""): clean,
}
