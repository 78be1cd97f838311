"""What Produce answers of a staged batch: a provisional offset, the same one for a repeat (decision 0042)."""

from exacta.protocol.kafka.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.kafka.test_describe_lag import Writer
from tests.kafka.test_topic_ids import create
from tests.kafka.wire import Wire, batch


def test_a_repeat_is_told_what_the_first_was_told_before_and_after_the_end(wire: Wire) -> None:
    create(wire, configs={"transaction.buffer": "sidecar"})
    writer = Writer(wire, "x")
    assert writer.add_partitions(t=[0]) == {("t", 0): 0}
    writer.is_open = True

    def told(sequence: int) -> tuple[int, int]:
        pair = {"producer_id": writer.producer_id, "producer_epoch": writer.epoch}
        records = batch(b"a", b"b", base_sequence=sequence, transactional=True, **pair)
        topic = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=records)])
        request = ProduceRequest(acks=-1, timeout_ms=9_000, transactional_id="x", topic_data=[topic])
        answer = wire.ask(request, 11).responses[0].partition_responses[0]
        return answer.error_code, answer.base_offset

    first, second = told(0), told(2)
    assert (first, second) == ((0, -(1 << 62)), (0, -(1 << 62) + 2))
    assert (told(0), told(2)) == (first, second)
    writer.finish(commit=True)
    assert (told(0), told(2)) == (first, second)
