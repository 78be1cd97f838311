"""Fetch from a follower (KIP-392), which may lag behind, and who is sent there."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from exacta.core.commands import DeleteRecords, TakeLead
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import k01_fetch as m
from exacta.protocol.kafka.records import iter_batches
from tests.kafka.following import FOLLOWER, LEADER, Follower, following
from tests.kafka.subscribing import ask
from tests.kafka.test_topics import create
from tests.kafka.wire import Wire, batch, produce, values_in
from tests.waiting import wait_until

NONE = ErrorCode.NONE
EAST, WEST = "east", "west"
FULL, NO_SESSION = -1, 0


@pytest.fixture
def follower() -> Iterator[Follower]:
    """A leader in the east and a follower in the west; in `t` are two records of two batches."""
    with following(racks=(EAST, WEST)) as running:
        wire = running.leading.connect()
        create(wire)
        for value in (b"a", b"b"):
            produce(wire, batch(value))
        yield running


def request(offset: int = 0, rack: str = "", *, epoch: int = FULL, session: int = NO_SESSION, **more: Any) -> Any:
    partition = m.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20, **more)
    topics = [m.FetchTopic(topic="t", partitions=[partition])]
    return m.FetchRequest(
        topics=topics, max_wait_ms=0, max_bytes=1 << 20, rack_id=rack, session_epoch=epoch, session_id=session
    )


def fetch(wire: Wire, version: int = 12, offset: int = 0, rack: str = "", **more: Any) -> Any:
    return wire.ask(request(offset, rack, **more), version).responses[0].partitions[0]


@pytest.mark.parametrize("version", range(11, 13))
def test_a_follower_serves_records(follower: Follower, version: int) -> None:
    found = fetch(follower.connect(), version, 1)
    assert (found.error_code, values_in(found.records), found.high_watermark) == (NONE, [b"b"], 2)
    assert found == fetch(follower.leading.connect(), version, 1)


@pytest.mark.parametrize("version", range(4, 11))
def test_an_old_client_believes_that_it_leads(follower: Follower, version: int) -> None:
    """As in Apache Kafka: such a client has not been sent there, and must find the leader."""
    found = fetch(follower.connect(), version)
    assert (found.error_code, found.records) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, b"")


@pytest.mark.parametrize("offset", [3, 1000])
def test_what_it_has_not_followed_is_not_available(follower: Follower, offset: int) -> None:
    """Out of range would make a consumer begin anew: the leader may have more."""
    assert fetch(follower.connect(), 12, offset).error_code == ErrorCode.OFFSET_NOT_AVAILABLE
    assert fetch(follower.leading.connect(), 12, offset).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_it_catches_up_before_it_says_so(follower: Follower) -> None:
    """A consumer whom the leader has just sent here would else be sent back, and here again."""
    follower.hold_back()
    wire, asked = follower.connect(), request(3)
    wire.send(asked, 12)
    wait_until(lambda: follower.held_back == 1, 10)
    produce(follower.leading.connect(), batch(b"c"))  # the lag is over
    follower.go_on()
    [partition] = wire.receive(asked, 12)[1].responses[0].partitions
    assert (partition.error_code, partition.high_watermark) == (NONE, 3)
    assert fetch(follower.connect(), 12, 2).error_code == NONE
    assert follower.held_back == 0


def test_what_was_deleted_is_out_of_range(follower: Follower) -> None:
    """The log's start never goes back."""
    ask(follower.leading, DeleteRecords(topic="t", partition=0, before_offset=1, allowed=True))
    assert fetch(follower.connect(), 12, 0).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


class TestEpochs:
    """Two records of epoch 0, one of epoch 1."""

    @pytest.fixture(autouse=True)
    def led(self, follower: Follower) -> None:
        ask(follower.leading, TakeLead(node_id=LEADER))
        produce(follower.leading.connect(), batch(b"c"))

    @pytest.mark.parametrize(
        ("believed", "code"), [(0, ErrorCode.FENCED_LEADER_EPOCH), (1, NONE), (2, ErrorCode.UNKNOWN_LEADER_EPOCH)]
    )
    def test_it_compares_them(self, follower: Follower, believed: int, code: ErrorCode) -> None:
        assert fetch(follower.connect(), 12, current_leader_epoch=believed).error_code == code

    def test_batches_say_theirs(self, follower: Follower) -> None:
        found = fetch(follower.connect(), 12, current_leader_epoch=1)
        assert [header.partition_leader_epoch for header, _ in iter_batches(found.records)] == [0, 0, 1]

    @pytest.mark.parametrize(
        ("offset", "fetched", "code", "diverges"),
        [
            (4, 1, ErrorCode.OFFSET_NOT_AVAILABLE, None),  # the leader may have one more record of this epoch
            (4, 2, ErrorCode.OFFSET_NOT_AVAILABLE, None),  # and may be of an epoch that is not followed yet
            (3, 0, NONE, (0, 2)),  # this epoch has ended for good
            (3, 1, NONE, None),
        ],
    )
    def test_it_says_only_of_ended_epochs_where_they_diverge(
        self, follower: Follower, offset: int, fetched: int, code: ErrorCode, diverges: tuple[int, int] | None
    ) -> None:
        found = fetch(follower.connect(), 12, offset, current_leader_epoch=1, last_fetched_epoch=fetched)
        told = found.diverging_epoch
        assert found.error_code == code
        assert (None if told is None or told.epoch < 0 else (told.epoch, told.end_offset)) == diverges

    def test_a_session_meets_the_next_leader(self, follower: Follower) -> None:
        """What its reader believed when it asked for the partition is looked at under each leader."""
        wire = follower.connect()
        begun = wire.ask(request(2, epoch=0, current_leader_epoch=1), 12)
        assert (begun.error_code, begun.responses[0].partitions[0].error_code) == (NONE, NONE)
        ask(follower.leading, TakeLead(node_id=LEADER))
        following_request = m.FetchRequest(max_bytes=1 << 20, session_id=begun.session_id, session_epoch=1)
        [topic] = wire.ask(following_request, 12).responses
        assert topic.partitions[0].error_code == ErrorCode.FENCED_LEADER_EPOCH
        following_request.session_epoch, following_request.topics = 2, request(2, current_leader_epoch=2).topics
        [topic] = wire.ask(following_request, 12).responses
        assert topic.partitions[0].error_code == NONE

    def test_an_unknown_epoch_of_a_session_becomes_known(self, follower: Follower) -> None:
        wire = follower.connect()
        begun = wire.ask(request(2, epoch=0, current_leader_epoch=2), 12)
        assert begun.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
        ask(follower.leading, TakeLead(node_id=LEADER))
        following_request = m.FetchRequest(max_bytes=1 << 20, session_id=begun.session_id, session_epoch=1)
        [partition] = wire.ask(following_request, 12).responses[0].partitions
        assert (partition.error_code, values_in(partition.records)) == (NONE, [b"c"])

    @pytest.mark.parametrize("version", [15, 16, 18])
    def test_a_fenced_reader_is_told_who_leads(self, follower: Follower, version: int) -> None:
        """KIP-951: the epoch, and at the follower also where the leader is."""
        asked = request(current_leader_epoch=0)
        asked.topics[0].topic_id = create(follower.leading.connect(), name="u").topic_id
        for wire, endpoints in ((follower.connect(), [LEADER]), (follower.leading.connect(), [])):
            answer = wire.ask(asked, version)
            [partition] = answer.responses[0].partitions
            assert partition.error_code == ErrorCode.FENCED_LEADER_EPOCH
            told = partition.current_leader
            if version < 16:
                assert (told, answer.node_endpoints) == (None, [])
            else:
                assert (told.leader_id, told.leader_epoch) == (LEADER, 1)
                assert [each.node_id for each in answer.node_endpoints] == endpoints


# --- who is sent to a follower ----------------------------------------------------------------------------------------


def test_a_reader_in_the_followers_rack_is_sent_there(follower: Follower) -> None:
    found = fetch(follower.leading.connect(), 12, 1, WEST)
    assert (found.error_code, found.preferred_read_replica, found.records) == (NONE, FOLLOWER, b"")
    assert (found.high_watermark, found.log_start_offset, found.last_stable_offset) == (2, 0, 2)
    found = fetch(follower.connect(), 12, 1, WEST)
    assert (found.preferred_read_replica, values_in(found.records)) == (-1, [b"b"])


def test_one_that_waits_for_records_is_sent_there_at_once(follower: Follower) -> None:
    asked = msgspec.structs.replace(request(2, WEST), max_wait_ms=60_000, min_bytes=1)
    [partition] = follower.leading.connect().ask(asked, 12).responses[0].partitions
    assert partition.preferred_read_replica == FOLLOWER


@pytest.mark.parametrize(
    ("version", "offset", "rack"),
    [
        (12, 1, EAST),  # the leader is as near
        (12, 1, "north"),  # nobody is near
        (12, 1, ""),  # nobody knows
        (12, 3, WEST),  # there is no such offset
        (12, -1, WEST),
    ],
)
def test_others_stay_with_the_leader(follower: Follower, version: int, offset: int, rack: str) -> None:
    found = fetch(follower.leading.connect(), version, offset, rack)
    assert found.preferred_read_replica == -1
    assert found == fetch(follower.leading.connect(), version, offset)


def test_nobody_is_sent_to_a_follower_that_is_gone_or_has_no_such_door(follower: Follower) -> None:
    leader, gone = follower.nodes
    for nodes in ([leader], [leader, gone._replace(addresses={"INSIDE": ("h", 1)})]):
        follower.leading.context.cluster.nodes = nodes  # type: ignore[misc]
        assert fetch(follower.leading.connect(), 12, 1, WEST).preferred_read_replica == -1


def test_the_readers_of_many_partitions_are_spread(follower: Follower) -> None:
    leader, near = follower.nodes
    nodes = [leader, near, near._replace(node_id=3)]
    follower.leading.context.cluster.nodes = nodes  # type: ignore[misc]
    wire = follower.leading.connect()
    create(wire, name="u", num_partitions=4)
    partitions = [m.FetchPartition(partition=index, partition_max_bytes=100) for index in range(4)]
    topics = [m.FetchTopic(topic="u", partitions=partitions)]
    answer = wire.ask(m.FetchRequest(topics=topics, max_bytes=100, rack_id=WEST, session_epoch=FULL), 12)
    assert [each.preferred_read_replica for each in answer.responses[0].partitions] == [2, 3, 2, 3]


def test_a_session_is_sent_to_a_follower_that_comes_later(follower: Follower) -> None:
    leader, near = follower.nodes
    follower.leading.context.cluster.nodes = [leader]  # type: ignore[misc]
    wire = follower.leading.connect()
    begun = wire.ask(request(2, WEST, epoch=0), 12)
    assert begun.responses[0].partitions[0].preferred_read_replica == -1
    follower.leading.context.cluster.nodes = [leader, near]  # type: ignore[misc]
    again = m.FetchRequest(max_bytes=1 << 20, rack_id=WEST, session_id=begun.session_id, session_epoch=1)
    assert wire.ask(again, 12).responses[0].partitions[0].preferred_read_replica == FOLLOWER


def test_a_session_goes_on_at_its_own_broker_only(follower: Follower) -> None:
    begun = follower.connect().ask(request(epoch=0), 12)
    again = m.FetchRequest(max_bytes=1 << 20, session_id=begun.session_id, session_epoch=1)
    assert follower.leading.connect().ask(again, 12).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
