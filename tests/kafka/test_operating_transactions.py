"""What operators and coordinators outside ask of transactions: two-phase commits, abort markers, explanations."""

from collections.abc import Iterator
from typing import Any

import pytest

from exacta.core.ids import Cause
from exacta.core.transactions.description import CAUSES
from exacta.ports.authorizer import Operation
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import k27_write_txn_markers as markers
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from exacta.protocol.kafka.messages.k18_api_versions import ApiVersionsRequest
from exacta.protocol.kafka.messages.k22_init_producer_id import InitProducerIdRequest
from exacta.protocol.kafka.messages.k26_end_txn import EndTxnRequest
from exacta.protocol.kafka.messages.k65_describe_transactions import DescribeTransactionsRequest
from exacta.protocol.kafka.messages.k66_list_transactions import ListTransactionsRequest
from tests.kafka.access_rules import Rules
from tests.kafka.asking import explain
from tests.kafka.recording import produce
from tests.kafka.test_records import fetch
from tests.kafka.wire import Front, Wire, batch, front, values_in

NONE, NO_MAX = ErrorCode.NONE, 2**31 - 1
FENCED = ErrorCode.PRODUCER_FENCED


@pytest.fixture
def broker() -> Iterator[Front]:
    """A broker that takes part in two-phase commits."""
    with front(transaction_two_phase_commit_enable=True) as running:
        running.connect().ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)
        yield running


def init(wire: Wire, *, two_phase: bool = True, keep: bool = False) -> Any:
    request = InitProducerIdRequest(
        transactional_id="x", transaction_timeout_ms=60_000, enable_2pc=two_phase, keep_prepared_txn=keep
    )
    return wire.ask(request, 6)


def write(wire: Wire, bound: Any, value: bytes, sequence: int = 0) -> Any:
    records = batch(
        value,
        producer_id=bound.producer_id,
        producer_epoch=bound.producer_epoch,
        base_sequence=sequence,
        transactional=True,
    )
    return produce(wire, records, 12, transactional_id="x")


def end(wire: Wire, bound: Any, *, commit: bool) -> Any:
    request = EndTxnRequest(
        transactional_id="x",
        producer_id=bound.producer_id,
        producer_epoch=bound.producer_epoch,
        committed=commit,
    )
    return wire.ask(request, 5)


def committed(wire: Wire) -> list[bytes]:
    answer = fetch(wire, committed=True)
    aborted = {each.producer_id for each in answer.aborted_transactions or ()}
    assert len(aborted) <= 1
    return [] if aborted else values_in(answer.records)


@pytest.mark.parametrize("commit", [True, False])
def test_a_prepared_transaction_is_decided_by_the_next_process(broker: Front, wire: Wire, commit: bool) -> None:
    first = init(wire)
    assert write(wire, first, b"prepared").error_code == NONE
    wire.socket.close()  # the process is gone, what it has prepared stays

    recovering = broker.connect()
    second = init(recovering, keep=True)
    prepared = (first.producer_id, first.producer_epoch)
    assert (second.ongoing_txn_producer_id, second.ongoing_txn_producer_epoch) == prepared
    assert (second.producer_id, second.producer_epoch) == (first.producer_id, first.producer_epoch + 1)
    assert end(recovering, first, commit=True).error_code == FENCED, "only the holder decides"
    assert write(recovering, second, b"more").error_code == ErrorCode.INVALID_TXN_STATE
    ended = end(recovering, second, commit=commit)
    assert (ended.error_code, ended.producer_epoch) == (NONE, second.producer_epoch + 1)
    assert committed(recovering) == ([b"prepared"] if commit else [])
    assert init(recovering, keep=True).ongoing_txn_producer_id == -1, "nothing is open any more"


def test_a_successor_that_keeps_nothing_aborts(wire: Wire) -> None:
    first = init(wire)
    write(wire, first, b"left")
    assert init(wire).ongoing_txn_producer_id == -1
    assert committed(wire) == []


def test_others_see_the_transaction_under_its_own_pair(wire: Wire) -> None:
    """Or `find-hanging` would find records whose producer no coordinator knows."""
    first = init(wire)
    write(wire, first, b"prepared")
    init(wire, two_phase=False, keep=True)
    (described,) = wire.ask(DescribeTransactionsRequest(transactional_ids=["x"]), 0).transaction_states
    assert (described.producer_id, described.producer_epoch) == (first.producer_id, first.producer_epoch)
    assert described.transaction_timeout_ms == NO_MAX
    listed = wire.ask(ListTransactionsRequest(producer_id_filters=[first.producer_id]), 2).transaction_states
    assert [each.transactional_id for each in listed] == ["x"]


def advertised(wire: Wire) -> int:
    answer = wire.ask(ApiVersionsRequest(client_software_name="t", client_software_version="1"), 3)
    return max(each.max_version for each in answer.api_keys if each.api_key == 22)


def test_who_does_not_know_it_is_not_confused(broker: Front) -> None:
    assert advertised(broker.connect()) == 6
    with front() as plain:
        wire = plain.connect()
        assert advertised(wire) == 5, "what a released Kafka shows"
        assert init(wire).error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert init(wire, two_phase=False, keep=True).error_code == NONE, "to keep needs no permission"


def write_marker(wire: Wire, bound: Any, *, version: int = 1, commit: bool = False, partition: int = 0) -> int:
    marker = markers.WritableTxnMarker(
        producer_id=bound.producer_id,
        producer_epoch=bound.producer_epoch,
        transaction_result=commit,
        topics=[markers.WritableTxnMarkerTopic(name="t", partition_indexes=[partition])],
    )
    (result,) = wire.ask(markers.WriteTxnMarkersRequest(markers=[marker]), version).markers
    assert result.producer_id == bound.producer_id
    ((answer,),) = [topic.partitions for topic in result.topics]
    assert answer.partition_index == partition
    return int(answer.error_code)


@pytest.mark.parametrize("version", [1, 2])
def test_an_operator_aborts_by_a_marker(wire: Wire, version: int) -> None:
    bound = init(wire)
    write(wire, bound, b"in the way")
    assert write_marker(wire, bound, version=version, commit=True) == ErrorCode.INVALID_REQUEST
    assert write_marker(wire, bound, version=version, partition=7) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert write_marker(wire, bound, version=version) == NONE
    assert committed(wire) == []
    assert end(wire, bound, commit=True).error_code == FENCED


def test_two_phase_commit_and_markers_have_rights_of_their_own(broker: Front, wire: Wire) -> None:
    bound = init(wire)
    write(wire, bound, b"kept")
    special = {Operation.ALTER, Operation.CLUSTER_ACTION, Operation.TWO_PHASE_COMMIT}
    rules = Rules(lambda operation, resource: operation not in special)
    broker.on_loop(lambda: setattr(broker.context, "authorizer", rules))
    assert write_marker(wire, bound) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert init(wire).error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert [operation for operation, _ in rules.asked if operation in special] == [
        Operation.ALTER,
        Operation.CLUSTER_ACTION,
        Operation.TWO_PHASE_COMMIT,
    ]
    assert end(wire, bound, commit=True).error_code == NONE


def test_an_open_transaction_is_explained(wire: Wire) -> None:
    assert explain(wire) == ()
    bound = init(wire, two_phase=False)
    produce(wire, batch(b"before"), 12)
    write(wire, bound, b"held")
    (found,) = explain(wire)
    assert (found.transactional_id, found.state, found.client_id) == ("x", "Ongoing", "tester")
    assert found.client_host == "/127.0.0.1"
    assert found.start_ms is not None
    assert found.deadline_ms == found.start_ms + 60_000
    assert [(each.topic, each.partition, each.first_offset) for each in found.partitions] == [("t", 0, 1)]
    assert (found.open_producer_id, found.open_producer_epoch) == (bound.producer_id, bound.producer_epoch)
    assert found.incidents == ()


def test_of_a_long_client_id_the_beginning_is_kept(wire: Wire) -> None:
    wire.client_id = "c" * 32_000
    write(wire, init(wire), b"left")
    init(wire)
    (found,) = explain(wire, "x")
    assert {len(found.client_id), *(len(each.client_id) for each in found.incidents)} <= {0, 255}
    assert (found.client_id, found.incidents[1].client_id) == ("c" * 255,) * 2


def test_a_fencing_has_its_reason(wire: Wire) -> None:
    write(wire, init(wire), b"left")
    init(wire)
    (found, unknown) = explain(wire, "x", "y")
    assert found.state == "Empty"
    assert [(each.what, each.cause) for each in found.incidents] == [
        ("aborted", CAUSES[Cause.NEW_INSTANCE]),
        ("fenced", CAUSES[Cause.NEW_INSTANCE]),
    ]
    assert (found.incidents[1].client_id, found.incidents[1].client_host) == ("tester", "/127.0.0.1")
    assert (unknown.transactional_id, unknown.state, unknown.incidents) == ("y", "", ())
