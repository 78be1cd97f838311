"""EndTransactions over the wire: what is answered, and what a reader sees meanwhile."""

from typing import Any

import pytest

from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from exacta.protocol.kafka.messages.k18_api_versions import ApiVersionsRequest
from exacta.protocol.kafka.messages.k17784_end_transactions import (
    EndTransactionsRequest,
    TransactionToEnd,
    TransactionToEndTopic,
)
from tests.kafka.test_transactions_and_groups import Producer, fetched
from tests.kafka.wire import Wire, front


@pytest.fixture
def producers(wire: Wire) -> list[Producer]:
    """Three producers, each with an offset of the group in its open transaction."""
    wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)
    made = [Producer(wire, name) for name in "xyz"]
    for offset, producer in enumerate(made):
        assert producer.add_partitions(t=[0]) == {("t", 0): 0}
        assert producer.add_group() == 0
        assert producer.commit_offset(offset) == 0
    return made


def entry(producer: Producer, **partitions: list[int]) -> TransactionToEnd:
    return TransactionToEnd(
        transactional_id=producer.transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        topics=[TransactionToEndTopic(name=name, partitions=indexes) for name, indexes in partitions.items()],
    )


def end(wire: Wire, *entries: TransactionToEnd, commit: bool = True) -> Any:
    return wire.ask(EndTransactionsRequest(committed=commit, transactions=list(entries)), 0)


def refused(response: Any) -> dict[str, int]:
    assert response.error_code == (ErrorCode.OPERATION_NOT_ATTEMPTED if response.refused else ErrorCode.NONE)
    return {each.transactional_id: each.error_code for each in response.refused}


def test_it_is_advertised(wire: Wire) -> None:
    response = wire.ask(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3)
    assert (17784, 0, 0) in [(each.api_key, each.min_version, each.max_version) for each in response.api_keys]


def test_all_are_committed_and_a_repeat_is_answered_as_the_first(wire: Wire, producers: list[Producer]) -> None:
    for _ in range(2):
        assert refused(end(wire, *map(entry, producers))) == {}
        assert fetched(wire, stable=True).committed_offset == 2
    assert producers[0].end(commit=True) == 0, "and so is a single EndTxn"
    assert producers[0].end(commit=False) == ErrorCode.INVALID_TXN_STATE


def test_all_are_aborted(wire: Wire, producers: list[Producer]) -> None:
    assert refused(end(wire, *map(entry, producers), commit=False)) == {}
    assert fetched(wire, stable=True).committed_offset == -1


def test_what_stands_in_the_way_is_named_and_nothing_happens(wire: Wire, producers: list[Producer]) -> None:
    x, y, z = producers
    newer = Producer(wire, "y")
    stranger = entry(z)
    stranger.producer_id += 99
    nothing_open = {"y": ErrorCode.INVALID_TXN_STATE}
    assert refused(end(wire, entry(x), entry(y), entry(z))) == {"y": ErrorCode.PRODUCER_FENCED}
    assert refused(end(wire, entry(x), entry(newer), entry(z))) == nothing_open
    assert refused(end(wire, entry(x), stranger)) == {"z": ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    assert refused(end(wire, entry(x), entry(x))) == {"x": ErrorCode.INVALID_REQUEST}
    assert refused(end(wire, entry(x, t=[0]), entry(z))) == {"x": ErrorCode.INVALID_TXN_STATE}
    assert fetched(wire).committed_offset == -1
    assert z.end(commit=True) == 0
    assert refused(end(wire, entry(x), entry(z))) == {"z": ErrorCode.INVALID_TXN_STATE}, "one has ended already"
    assert x.end(commit=False) == 0


def test_more_than_may_be_ended_at_once(wire: Wire) -> None:
    entries = [TransactionToEnd(transactional_id=str(number)) for number in range(10_001)]
    response = end(wire, *entries)
    assert (response.error_code, response.refused) == (ErrorCode.POLICY_VIOLATION, [])


def test_none_at_all(wire: Wire) -> None:
    assert refused(end(wire)) == {}


def test_a_request_that_cannot_be_read_costs_the_connection_and_nothing_else() -> None:
    with front() as broker:
        bad, good = broker.connect(), broker.connect()
        bad.socket.sendall(b"\0\0\0\x0e\x45\x78\0\0\0\0\0\1\xff\xff\0\x01\xff\xff")
        assert bad.is_closed()
        assert refused(end(good)) == {}
