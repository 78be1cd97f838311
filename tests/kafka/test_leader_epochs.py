"""Leader epochs (KIP-320): one leader, whose epoch is 0 for ever."""

import pytest

from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import k23_offset_for_leader_epoch as m
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from tests.kafka.recording import produce
from tests.kafka.wire import Wire, batch


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
