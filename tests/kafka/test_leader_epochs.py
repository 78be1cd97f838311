"""Leader epochs (KIP-101, KIP-320): of one leader, whose epoch is 0 for ever, and of several that took the lead."""

import pytest

from exacta.core.commands import TakeLead
from exacta.core.replies import LeadTakenReply
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import k23_offset_for_leader_epoch as m
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from exacta.protocol.kafka.messages.k75_describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from exacta.protocol.kafka.records import iter_batches
from tests.kafka.recording import list_offset, produce
from tests.kafka.subscribing import ask
from tests.kafka.test_records import fetch
from tests.kafka.wire import Front, Wire, batch


@pytest.mark.parametrize("version", range(2, 5))
@pytest.mark.parametrize(
    ("asked", "code", "epoch", "end_offset"),
    [
        ({"leader_epoch": 0}, ErrorCode.NONE, 0, 2),
        ({"leader_epoch": 0, "current_leader_epoch": 0}, ErrorCode.NONE, 0, 2),
        ({"leader_epoch": 0, "current_leader_epoch": 1}, ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1),
        ({"leader_epoch": 0, "current_leader_epoch": -2}, ErrorCode.FENCED_LEADER_EPOCH, -1, -1),
        ({"leader_epoch": 3}, ErrorCode.NONE, -1, -1),
        ({"leader_epoch": -1}, ErrorCode.NONE, -1, -1),
        ({"leader_epoch": 0, "partition": 7}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1),
    ],
)
def test_where_an_epoch_ends(
    wire: Wire, version: int, asked: dict[str, int], code: ErrorCode, epoch: int, end_offset: int
) -> None:
    wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)
    produce(wire, batch(b"a", b"b"))
    topics = [m.OffsetForLeaderTopic(topic="t", partitions=[m.OffsetForLeaderPartition(**asked)])]
    answer = wire.ask(m.OffsetForLeaderEpochRequest(topics=topics), version).topics[0].partitions[0]
    assert (answer.error_code, answer.leader_epoch, answer.end_offset) == (code, epoch, end_offset)


class TestAfterTheLeadWasTaken:
    """Two records of epoch 0, none of epoch 1, one of epoch 2, which is the present one."""

    @pytest.fixture(autouse=True)
    def led(self, broker: Front, wire: Wire) -> None:
        wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)
        produce(wire, batch(b"a", b"b"))
        for epoch in (1, 2):
            assert ask(broker, TakeLead(node_id=0)) == LeadTakenReply(leader_epoch=epoch)
        produce(wire, batch(b"c"))

    @pytest.mark.parametrize(
        ("asked", "code", "epoch", "end_offset"),
        [
            ({"leader_epoch": 0, "current_leader_epoch": 2}, ErrorCode.NONE, 0, 2),
            ({"leader_epoch": 1, "current_leader_epoch": 2}, ErrorCode.NONE, 0, 2),
            ({"leader_epoch": 2}, ErrorCode.NONE, 2, 3),
            ({"leader_epoch": 3}, ErrorCode.NONE, -1, -1),
            ({"leader_epoch": 2, "current_leader_epoch": 1}, ErrorCode.FENCED_LEADER_EPOCH, -1, -1),
            ({"leader_epoch": 2, "current_leader_epoch": 3}, ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1),
        ],
    )
    def test_each_epoch_has_its_end(
        self, wire: Wire, asked: dict[str, int], code: ErrorCode, epoch: int, end_offset: int
    ) -> None:
        topics = [m.OffsetForLeaderTopic(topic="t", partitions=[m.OffsetForLeaderPartition(**asked)])]
        answer = wire.ask(m.OffsetForLeaderEpochRequest(topics=topics), 4).topics[0].partitions[0]
        assert (answer.error_code, answer.leader_epoch, answer.end_offset) == (code, epoch, end_offset)

    def test_metadata_and_descriptions_name_the_present_one(self, wire: Wire) -> None:
        known = wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)
        described = wire.ask(DescribeTopicPartitionsRequest(topics=[TopicRequest(name="t")]), 0)
        for answer in (known, described):
            assert {each.leader_epoch for each in answer.topics[0].partitions} == {2}

    @pytest.mark.parametrize(("time_ms", "offset", "epoch"), [(-2, 0, 0), (-1, 3, 2)])
    def test_listed_offsets_have_those_of_their_records(
        self, wire: Wire, time_ms: int, offset: int, epoch: int
    ) -> None:
        answer = list_offset(wire, time_ms, epoch=2)
        assert (answer.offset, answer.leader_epoch) == (offset, epoch)
        assert list_offset(wire, time_ms, epoch=0).error_code == ErrorCode.FENCED_LEADER_EPOCH

    def test_batches_say_under_which_they_were_written(self, wire: Wire) -> None:
        found = fetch(wire, current_leader_epoch=2)
        headers = [header for header, _ in iter_batches(found.records)]
        assert [(each.base_offset, each.partition_leader_epoch) for each in headers] == [(0, 0), (2, 2)]

    @pytest.mark.parametrize(
        ("offset", "fetched", "expected"),
        [(2, 0, None), (3, 2, None), (3, 0, (0, 2)), (2, 1, (0, 2)), (4, 2, (2, 3)), (1, 0, None)],
    )
    def test_a_reader_that_has_read_another_log_is_told_where_it_diverges(
        self, wire: Wire, offset: int, fetched: int, expected: tuple[int, int] | None
    ) -> None:
        found = fetch(wire, 12, offset, current_leader_epoch=2, last_fetched_epoch=fetched, max_wait_ms=1)
        told = found.diverging_epoch
        assert found.error_code == ErrorCode.NONE
        assert (None if told is None or told.epoch < 0 else (told.epoch, told.end_offset)) == expected

    def test_one_that_has_read_a_later_epoch_is_out_of_range(self, wire: Wire) -> None:
        assert fetch(wire, 12, 3, last_fetched_epoch=3).error_code == ErrorCode.OFFSET_OUT_OF_RANGE

    def test_one_that_follows_another_leader_is_told_so(self, wire: Wire) -> None:
        assert fetch(wire, 12, current_leader_epoch=1).error_code == ErrorCode.FENCED_LEADER_EPOCH
        assert fetch(wire, 12, current_leader_epoch=3).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
