"""The sink that one has today: what runs twice is there twice, and the judge says so."""

import msgspec
import pyarrow as pa

from exacta.demo import topics
from exacta.demo.plain_sink import AtLeastOnceDataSource, RowsWritten
from exacta.demo.raw_log import read_transactions
from exacta.demo.verify import Output, judge


class Row(msgspec.Struct, frozen=True):
    number: int


def batches(numbers):
    keys = pa.array([b"key" for _ in numbers], pa.binary())
    values = pa.array([msgspec.json.encode(Row(number)) for number in numbers], pa.binary())
    yield pa.record_batch([keys, values], names=["key", "value"])


def test_a_task_that_runs_again_writes_its_rows_again(broker):
    servers, topic = broker.bootstrap_servers, "numbers"
    topics.create(servers, [topic], partitions=2)
    source = AtLeastOnceDataSource({"kafka.bootstrap.servers": servers, "topic": topic})
    writer = source.streamWriter(None, overwrite=False)
    assert writer.write(batches(range(100))) == RowsWritten(rows=100)
    assert writer.write(batches(range(40))) == RowsWritten(rows=40)
    writer.abort([None], 0)

    output = Output(
        name="numbers",
        row_type=Row,
        identity=lambda row: row.number,
        expected={number: (b"key", Row(number)) for number in range(100)},
        position=lambda row: row.number,
    )
    rows = topics.read_committed(servers, topic, lambda count: None)
    verdict = judge(output, rows, read_transactions(servers, topic, topics.end_offsets(servers, topic)))
    assert (verdict.seen, verdict.twice, verdict.lost, verdict.wrong, verdict.disordered) == (140, 40, 0, 0, 0)
    assert not verdict.exactly_once
