"""Produce answers a staged batch with a provisional offset, and a repeat of it with the same one (decision 0042)."""

from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k00_produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from exacta.protocol.kafka.messages.k35_describe_log_dirs import DescribeLogDirsRequest
from tests.kafka.test_ask_lag import Writer
from tests.kafka.test_topic_ids import create
from tests.kafka.wire import Wire, batch, front


def produce(wire: Wire, writer: Writer, *values: bytes, sequence: int) -> PartitionProduceResponse:
    pair = {"producer_id": writer.producer_id, "producer_epoch": writer.epoch}
    records = batch(*values, base_sequence=sequence, transactional=True, **pair)
    topic = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=records)])
    request = ProduceRequest(acks=-1, timeout_ms=9_000, transactional_id="x", topic_data=[topic])
    answer: PartitionProduceResponse = wire.ask(request, 11).responses[0].partition_responses[0]
    return answer


def begun(wire: Wire) -> Writer:
    create(wire, configs={"transaction.buffer": "sidecar"})
    writer = Writer(wire, "x")
    assert writer.add_partitions(t=[0]) == {("t", 0): 0}
    writer.is_open = True
    return writer


def test_a_repeat_is_told_what_the_first_was_told_before_and_after_the_end(wire: Wire) -> None:
    writer = begun(wire)

    def told(sequence: int) -> tuple[int, int]:
        answer = produce(wire, writer, b"a", b"b", sequence=sequence)
        return answer.error_code, answer.base_offset

    first, second = told(0), told(2)
    assert (first, second) == ((0, -(1 << 62)), (0, -(1 << 62) + 2))
    assert (told(0), told(2)) == (first, second)
    writer.finish(commit=True)
    assert (told(0), told(2)) == (first, second)


def test_what_is_too_much_is_refused_with_the_name_of_the_limit() -> None:
    with front(max_staged_bytes=100) as broker:
        wire = broker.connect()
        writer = begun(wire)
        assert produce(wire, writer, b"a", sequence=0).error_code == 0
        refused = produce(wire, writer, b"b" * 100, sequence=1)
        assert refused.error_code == ErrorCode.POLICY_VIOLATION
        assert "max.staged.bytes" in (refused.error_message or "")
        assert produce(wire, writer, b"c", sequence=1).error_code == ErrorCode.POLICY_VIOLATION, "there is no room"
        writer.finish(commit=False)
        writer.add_partitions(t=[0])
        assert produce(wire, writer, b"c", sequence=1).error_code == 0, "the end has made room"


def test_what_is_staged_counts_towards_the_size_of_its_partition(wire: Wire) -> None:
    writer = begun(wire)

    def size() -> int:
        [told] = wire.ask(DescribeLogDirsRequest(topics=None), 4).results[0].topics
        return int(told.partitions[0].partition_size)

    assert produce(wire, writer, b"a" * 500, sequence=0).error_code == 0
    staged = size()
    assert staged > 500
    writer.finish(commit=True)
    assert size() == staged
