"""A read of many partitions is made in steps, and yet all in it is of one state of the log."""

from typing import Any

import pytest

from exacta.engine import fetch, fetch_plan
from exacta.kafka import fetch_sessions, offsets_to_commit
from exacta.kafka.handlers import k01_fetch
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from exacta.protocol.kafka.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from exacta.protocol.kafka.messages.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from exacta.protocol.kafka.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from exacta.protocol.kafka.messages.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from exacta.protocol.kafka.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from exacta.protocol.kafka.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from exacta.protocol.kafka.messages.k22_init_producer_id import InitProducerIdRequest
from exacta.protocol.kafka.messages.k24_add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from exacta.protocol.kafka.messages.k26_end_txn import EndTxnRequest
from tests.attacks.requests import write_markers
from tests.kafka.by_hand import Broker, Client
from tests.kafka.test_long_requests import TurnByTurn
from tests.kafka.wire import batch

COUNT = 2_500
LAST = COUNT - 1


@pytest.fixture
def broker() -> Broker:
    """A topic of many partitions."""
    broker = Broker()
    topic = CreatableTopic(name="t", num_partitions=COUNT, replication_factor=1)
    broker.ask(broker.connect(), CreateTopicsRequest(topics=[topic]), 7)
    broker.context.memory.turns.clock = TurnByTurn()
    return broker


def wanted(count: int = COUNT, *, max_wait_ms: int = 0, min_bytes: int = 1, session_epoch: int = -1) -> FetchRequest:
    partitions = [FetchPartition(partition=each, fetch_offset=0, partition_max_bytes=1_000) for each in range(count)]
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=1 << 20,
        isolation_level=1,
        session_epoch=session_epoch,
        topics=[FetchTopic(topic="t", partitions=partitions)],
    )


def write(partitions: list[int], transactional_id: str | None = None) -> ProduceRequest:
    records = batch(
        b"v",
        producer_id=-1 if transactional_id is None else 0,
        producer_epoch=-1 if transactional_id is None else 0,
        base_sequence=-1 if transactional_id is None else 0,
        transactional=transactional_id is not None,
    )
    data = [PartitionProduceData(index=each, records=records) for each in partitions]
    return ProduceRequest(
        acks=-1, transactional_id=transactional_id, topic_data=[TopicProduceData(name="t", partition_data=data)]
    )


def write_in_transaction(broker: Broker, client: Client) -> None:
    begun = broker.ask(client, InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000), 3)
    assert (begun.producer_id, begun.producer_epoch) == (0, 0)
    added = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="x",
        v3_and_below_producer_id=0,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name="t", partitions=[0, LAST])],
    )
    broker.ask(client, added, 3)
    broker.ask(client, write([0, LAST], "x"), 9)


def partitions_of(answer: Any) -> list[Any]:
    [topic] = answer.responses
    return list(topic.partitions)


def list_offsets() -> ListOffsetsRequest:
    partitions = [ListOffsetsPartition(partition_index=each, timestamp=-1) for each in range(COUNT)]
    return ListOffsetsRequest(isolation_level=1, topics=[ListOffsetsTopic(name="t", partitions=partitions)])


@pytest.mark.parametrize("turns", range(4, 16))
@pytest.mark.parametrize("is_fetch", [True, False])
def test_an_answer_shows_all_of_a_transaction_or_nothing_of_it(broker: Broker, turns: int, is_fetch: bool) -> None:
    reader, writer = broker.connect(), broker.connect()
    write_in_transaction(broker, writer)
    reader.send(wanted() if is_fetch else list_offsets(), 11 if is_fetch else 7)
    for _ in range(turns):
        broker.turn()
    writer.send(EndTxnRequest(transactional_id="x", producer_id=0, producer_epoch=0, committed=True), 3)
    broker.settle()
    [(_, answer)] = reader.answers()
    if is_fetch:
        found = partitions_of(answer)
        seen = [found[each].last_stable_offset for each in (0, LAST)]
        assert [bool(found[each].records) for each in (0, LAST)] == [each > 0 for each in seen]
    else:
        [topic] = answer.topics
        seen = [topic.partitions[each].offset for each in (0, LAST)]
    assert seen in ([0, 0], [2, 2])


def test_a_transaction_may_come_before_a_long_fetch_and_after_it(broker: Broker) -> None:
    """Otherwise the test above would prove nothing."""
    found = set()
    for turns in (4, 15):
        broker = Broker()
        topic = CreatableTopic(name="t", num_partitions=COUNT, replication_factor=1)
        broker.ask(broker.connect(), CreateTopicsRequest(topics=[topic]), 7)
        broker.context.memory.turns.clock = TurnByTurn()
        reader, writer = broker.connect(), broker.connect()
        write_in_transaction(broker, writer)
        reader.send(wanted(), 11)
        for _ in range(turns):
            broker.turn()
        writer.send(EndTxnRequest(transactional_id="x", producer_id=0, producer_epoch=0, committed=True), 3)
        broker.settle()
        [(_, answer)] = reader.answers()
        found.add(partitions_of(answer)[0].last_stable_offset)
    assert found == {0, 2}


def test_others_are_served_while_a_long_fetch_is_planned(broker: Broker) -> None:
    reader, writer = broker.connect(), broker.connect()
    reader.send(wanted(), 11)
    for _ in range(6):
        broker.turn()
    assert not reader.received
    writer.send(write([1]), 9)
    broker.settle(until=lambda: bool(writer.received))
    assert not reader.received
    broker.settle()
    assert len(partitions_of(reader.answers()[0][1])) == COUNT


def test_a_long_answer_has_records_of_the_first_partitions_that_have_some(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_plan, "MOST_WITH_RECORDS", 2)
    client = broker.connect()
    broker.ask(client, write([3, 1_200, LAST]), 9)
    found = partitions_of(broker.ask(client, wanted(), 11))
    assert [each.partition_index for each in found if each.records] == [3, 1_200]
    assert {each.error_code for each in found} == {ErrorCode.NONE}
    assert found[LAST].high_watermark == 1, "it is told that there are some"


def test_a_long_fetch_waits_until_one_of_its_partitions_shows_more(broker: Broker) -> None:
    reader, writer = broker.connect(), broker.connect()
    reader.send(wanted(max_wait_ms=60_000), 11)
    broker.settle()
    assert not reader.received
    broker.ask(writer, write([LAST]), 9)
    broker.settle()
    [(_, answer)] = reader.answers()
    assert [each.partition_index for each in partitions_of(answer) if each.records] == [LAST]
    assert not broker.engine._fetcher._long


def test_a_long_fetch_that_gets_too_little_is_answered_when_its_time_is_over(broker: Broker) -> None:
    reader, writer = broker.connect(), broker.connect()
    reader.send(wanted(max_wait_ms=500, min_bytes=10_000), 11)
    broker.settle()
    broker.ask(writer, write([7]), 9)
    broker.settle()
    assert not reader.received
    broker.pass_time(500)
    broker.settle()
    assert [each.partition_index for each in partitions_of(reader.answers()[0][1]) if each.records] == [7]


def test_many_fetches_that_wait_for_the_same_records_are_looked_at_in_several_turns(broker: Broker) -> None:
    readers, writer = [broker.connect() for _ in range(20)], broker.connect()
    for reader in readers:
        reader.send(wanted(1_000, max_wait_ms=60_000), 11)
    broker.settle()
    writer.send(write([0]), 9)
    answered = []
    while broker.loop.ready:
        broker.turn()
        answered.append(sum(bool(reader.received) for reader in readers))
    grown = [after - before for before, after in zip([0, *answered], answered, strict=False)]
    assert max(grown) <= fetch.MOST_LOOKED_AT // 1_000 + 1
    assert answered[-1] == len(readers)
    assert not broker.engine._fetcher._concerned


def test_a_long_fetch_is_forgotten_with_its_connection(broker: Broker) -> None:
    reader = broker.connect()
    reader.send(wanted(max_wait_ms=60_000), 11)
    for _ in range(5):
        broker.turn()
    reader.vanish()
    other = broker.connect()
    other.send(wanted(max_wait_ms=60_000), 11)
    broker.settle()
    other.vanish()
    broker.settle()
    assert not broker.engine._fetcher._long
    broker.end()


def test_a_fetch_of_too_many_partitions_gets_no_session(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(k01_fetch, "MAX_SESSION_PARTITIONS", 10)
    monkeypatch.setattr(fetch_sessions, "MAX_SESSION_PARTITIONS", 10)
    client = broker.connect()
    assert broker.ask(client, wanted(11, session_epoch=0), 11).session_id == 0
    begun = broker.ask(client, wanted(10, session_epoch=0), 11)
    assert begun.session_id > 0
    grown = wanted(11, session_epoch=1)
    grown.session_id = begun.session_id
    assert broker.ask(client, grown, 11).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(broker.shared.fetch_sessions) == 0


def commit(count: int, metadata: str = "") -> OffsetCommitRequest:
    partitions = [
        OffsetCommitRequestPartition(partition_index=each, committed_offset=each, committed_metadata=metadata)
        for each in range(count)
    ]
    return OffsetCommitRequest(group_id="g", topics=[OffsetCommitRequestTopic(name="t", partitions=partitions)])


def test_offsets_of_many_partitions_are_committed_and_told(broker: Broker) -> None:
    client = broker.connect()
    answer = broker.ask(client, commit(COUNT), 8)
    assert {each.error_code for topic in answer.topics for each in topic.partitions} == {ErrorCode.NONE}
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
    [group] = broker.ask(client, request, 8).groups
    [topic] = group.topics
    assert [each.committed_offset for each in topic.partitions] == list(range(COUNT))


@pytest.mark.parametrize("bound", ["MOST_COMMITTED", "MOST_METADATA"])
def test_a_commit_of_too_much_is_refused_as_a_whole(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(offsets_to_commit, bound, 10)
    client = broker.connect()
    answer = broker.ask(client, commit(11, "m"), 8)
    codes = [each.error_code for topic in answer.topics for each in topic.partitions]
    assert codes == [ErrorCode.INVALID_COMMIT_OFFSET_SIZE] * 11
    assert not broker.engine._state.groups


def test_a_member_offers_only_so_many_protocols(broker: Broker) -> None:
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name=f"p{each}", metadata=b"") for each in range(1_001)],
    )
    assert broker.ask(broker.connect(), request, 3).error_code == ErrorCode.POLICY_VIOLATION


def test_markers_of_many_transactions_end_the_connection(broker: Broker) -> None:
    client = broker.connect()
    client.send(write_markers(1_001), 1)
    broker.settle()
    assert client.closed


def test_records_for_many_partitions_that_want_no_answer_get_none(broker: Broker) -> None:
    client = broker.connect()
    request = write(list(range(COUNT)))
    request.acks = 0
    client.send(request, 9)
    broker.settle()
    assert not client.received
    found = partitions_of(broker.ask(client, wanted(), 11))
    assert {each.high_watermark for each in found} == {1}
    assert fetch_plan.LONG_FETCH < COUNT
