"""Real Spark reads a partition of all kinds of batches, and writes into one into which Pulsar's client writes."""

from pathlib import Path
from typing import Any

import pulsar
import pytest

from tests.one_log.clients import SECONDS
from tests.one_log.mixed import MixedTopic
from tests.pulsar.wire import client
from tests.spark.clusters import new_topic, read_committed
from tests.spark.shared_session import shared_session

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]
PER_BATCH = 17


@pytest.fixture
def spark(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return shared_session(tmp_path_factory)


def test_a_query_over_both_protocols_is_exactly_once(spark: Any, mixed: MixedTopic, tmp_path: Path) -> None:
    bootstrap = mixed.broker.bootstrap_servers
    output = new_topic(bootstrap, 1)
    options = {"subscribe": "t", "startingOffsets": "earliest", "maxOffsetsPerTrigger": PER_BATCH}
    reader = spark.readStream.format("exacta").option("kafka.bootstrap.servers", bootstrap).options(**options)
    rows = reader.load().where(f"offset < {mixed.end}").selectExpr("key", "value")
    writer = rows.writeStream.format("exacta").option("kafka.bootstrap.servers", bootstrap).option("topic", output)
    with client(mixed.broker.pulsar_url) as opened:
        producer = opened.create_producer(output)
        query = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
        beside: list[bytes] = []
        while query.isActive and len(beside) < 10_000:
            beside.append(b"beside %d" % len(beside))
            producer.send(beside[-1])
        query.awaitTermination()
        assert query.exception() is None
        assert len(query.recentProgress) > 2, "several batches"
        by_kafka = [(key, value) for _, key, value in read_committed(bootstrap, output)]
        reader = opened.create_reader(output, pulsar.MessageId.earliest)
        by_pulsar = []
        while reader.has_message_available():
            message = reader.read_next(SECONDS * 1000)
            by_pulsar.append((message.partition_key().encode() or None, message.data()))
    assert by_pulsar == by_kafka
    assert [value for key, value in by_kafka if key is None] == beside
    assert [each for each in by_kafka if each[0] is not None] == [each[1:3] for each in mixed.shown]
