"""Transactions without a transactional id, as Kafka's clients and tools see them; no request of Kafka begins one."""

import threading
from typing import Any

import pytest
from typer.testing import CliRunner

from exacta.cli.app import app
from exacta.core.commands import (
    AppendBatch,
    BeginTransaction,
    Command,
    CommitTransactionalOffsets,
    EndHandle,
    OffsetToCommit,
)
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, Appended, TransactionBegunReply
from exacta.core.state.transaction import handle_name
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import k27_write_txn_markers as markers
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from exacta.protocol.kafka.messages.k61_describe_producers import DescribeProducersRequest, TopicRequest
from exacta.protocol.kafka.messages.k65_describe_transactions import DescribeTransactionsRequest
from exacta.protocol.kafka.messages.k66_list_transactions import ListTransactionsRequest
from exacta.protocol.kafka.messages.k17785_describe_lag import DescribeLagRequest
from exacta.protocol.kafka.messages.k17786_explain_transactions import ExplainTransactionsRequest
from tests.kafka.test_records import fetch
from tests.kafka.wire import ANSWER_SECONDS, Front, Wire, batch, front, values_in

GROUP = "g"


class Handle:
    """A handle of the broker, begun and written into by plain calls, as another front would."""

    def __init__(self, broker: Front) -> None:
        self.broker = broker
        begun = self.ask(BeginTransaction(timeout_ms=60_000, client_id="other", client_host="/h"))
        assert isinstance(begun, TransactionBegunReply)
        self.transaction_id, self.producer_id = begun.transaction_id, begun.producer_id
        self.name = handle_name(begun.transaction_id)

    def ask(self, command: Command, payload: bytes | None = None) -> object:
        answers: list[object] = []
        answered = threading.Event()

        def done(found: list[Any]) -> None:
            answers.extend(found)
            answered.set()

        self.broker.on_loop(lambda: self.broker.engine.submit((command,), done, [payload]))
        assert answered.wait(ANSWER_SECONDS)
        return answers[0]

    def write(self, value: bytes) -> None:
        data = batch(value, producer_id=self.producer_id, producer_epoch=0, transactional=True)
        command = AppendBatch(
            topic="t",
            partition=0,
            record_count=1,
            size=len(data),
            max_timestamp_ms=1_000,
            transaction=self.transaction_id,
        )
        assert isinstance(self.ask(command, data), Appended)

    def commit_offset(self, offset: int) -> None:
        offsets = (OffsetToCommit(topic="t", partition=0, offset=offset),)
        command = CommitTransactionalOffsets(transaction=self.transaction_id, group_id=GROUP, offsets=offsets)
        assert self.ask(command) == DONE

    def end(self, *, commit: bool) -> object:
        return self.ask(EndHandle(transaction_id=self.transaction_id, commit=commit))


@pytest.fixture
def broker() -> Any:
    with front() as running:
        running.connect().ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)
        yield running


@pytest.fixture
def wire(broker: Front) -> Wire:
    return broker.connect()


def committed(wire: Wire) -> list[bytes]:
    answer = fetch(wire, committed=True)
    aborted = {each.producer_id for each in answer.aborted_transactions or ()}
    return [] if aborted else values_in(answer.records)


@pytest.mark.parametrize("commit", [True, False])
def test_a_reader_of_committed_records_gets_what_a_handle_commits(broker: Front, wire: Wire, commit: bool) -> None:
    handle = Handle(broker)
    handle.write(b"one")
    handle.write(b"two")
    assert committed(wire) == []
    assert handle.end(commit=commit) == DONE
    assert committed(wire) == ([b"one", b"two"] if commit else [])


def test_it_is_listed_described_and_explained_by_its_name(broker: Front, wire: Wire) -> None:
    handle = Handle(broker)
    handle.write(b"one")
    handle.commit_offset(1)
    listed = wire.ask(ListTransactionsRequest(state_filters=["Ongoing"]), 2).transaction_states
    assert [(each.transactional_id, each.producer_id) for each in listed] == [(handle.name, handle.producer_id)]
    (described,) = wire.ask(DescribeTransactionsRequest(transactional_ids=[handle.name]), 0).transaction_states
    assert (described.error_code, described.transaction_state) == (ErrorCode.NONE, "Ongoing")
    assert (described.producer_id, described.producer_epoch) == (handle.producer_id, 0)
    assert [(each.topic, each.partitions) for each in described.topics] == [("t", [0])]
    explained = wire.ask(ExplainTransactionsRequest(transactional_ids=None), 0).transactions
    assert [(each.transactional_id, each.client_id, each.groups) for each in explained] == [
        (handle.name, "other", [GROUP])
    ]
    request = DescribeProducersRequest(topics=[TopicRequest(name="t", partition_indexes=[0])])
    ((found,),) = [each.partitions[0].active_producers for each in wire.ask(request, 0).topics]
    assert (found.producer_id, found.last_sequence, found.coordinator_epoch) == (handle.producer_id, -1, 0)
    assert found.current_txn_start_offset == 0
    handle.end(commit=True)
    (described,) = wire.ask(DescribeTransactionsRequest(transactional_ids=[handle.name]), 0).transaction_states
    assert described.transaction_state == "CompleteCommit"
    assert wire.ask(ExplainTransactionsRequest(transactional_ids=None), 0).transactions == []


def test_a_lagging_group_is_told_who_holds_back_the_rest(broker: Front, wire: Wire) -> None:
    handle = Handle(broker)
    handle.commit_offset(0)
    handle.write(b"one")
    (group,) = wire.ask(DescribeLagRequest(groups=[GROUP]), 0).groups
    (partition,) = group.topics[0].partitions
    assert (partition.commit_is_pending, partition.held_back_records) == (True, 1)
    assert [each.transactional_id for each in partition.open_transactions] == [handle.name]


def test_an_operators_marker_aborts_it_and_the_broker_lives(broker: Front, wire: Wire) -> None:
    handle = Handle(broker)
    handle.write(b"in the way")
    marker = markers.WritableTxnMarker(
        producer_id=handle.producer_id,
        producer_epoch=0,
        transaction_result=False,
        topics=[markers.WritableTxnMarkerTopic(name="t", partition_indexes=[0])],
    )
    (result,) = wire.ask(markers.WriteTxnMarkersRequest(markers=[marker]), 1).markers
    assert result.topics[0].partitions[0].error_code == ErrorCode.NONE
    assert committed(wire) == []
    assert handle.end(commit=True) is Rejection.INVALID_TRANSACTION_STATE
    (explained,) = wire.ask(ExplainTransactionsRequest(transactional_ids=[handle.name]), 0).transactions
    assert (explained.transaction_state, [each.client_id for each in explained.incidents]) == (
        "CompleteAbort",
        ["tester"],
    )


def test_the_command_line_aborts_it_by_its_name(broker: Front, wire: Wire) -> None:
    """A takeover of a transactional id of that name would abort nothing, and say that it had."""
    handle, other = Handle(broker), Handle(broker)
    handle.write(b"in the way")
    where = ["--bootstrap-server", "{}:{}".format(*broker.address)]
    shown = CliRunner().invoke(app, ["transactions", "list", *where])
    assert f"{handle.name}: " in shown.stdout
    aborted = CliRunner().invoke(app, ["transactions", "abort", "--yes", handle.name, *where])
    assert (aborted.exit_code, aborted.stdout.splitlines()[-1]) == (0, f"{handle.name} is aborted")
    assert handle.end(commit=True) is Rejection.INVALID_TRANSACTION_STATE
    refused = CliRunner().invoke(app, ["transactions", "abort", "--yes", other.name, *where])
    assert (refused.exit_code, "has written nothing yet" in refused.stderr) == (1, True)
    assert other.end(commit=True) == DONE
