"""Transactions without a transactional id, as Kafka's clients and tools see them; no request of Kafka begins one."""

import threading
from typing import Any

import pytest
from typer.testing import CliRunner, Result

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
from exacta.core.state.transaction import handle_name, handle_named
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages import k27_write_txn_markers as markers
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from exacta.protocol.kafka.messages.k61_describe_producers import DescribeProducersRequest, TopicRequest
from exacta.protocol.kafka.messages.k65_describe_transactions import DescribeTransactionsRequest
from exacta.protocol.kafka.messages.k66_list_transactions import ListTransactionsRequest
from exacta.protocol.kafka.messages.k17789_abort_handles import AbortHandlesRequest
from tests.kafka import asking
from tests.kafka.subscribing import Subscriber
from tests.kafka.test_records import fetch
from tests.kafka.test_transactions_and_groups import Producer as TransactionalProducer
from tests.kafka.wire import ANSWER_SECONDS, Front, Wire, batch, front, produce, values_in

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
            handle_producer_id=self.producer_id,
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
    explained = asking.explain(wire)
    assert [(each.transactional_id, each.client_id, each.groups) for each in explained] == [
        (handle.name, "other", (GROUP,))
    ]
    request = DescribeProducersRequest(topics=[TopicRequest(name="t", partition_indexes=[0])])
    ((found,),) = [each.partitions[0].active_producers for each in wire.ask(request, 0).topics]
    assert (found.producer_id, found.last_sequence, found.coordinator_epoch) == (handle.producer_id, -1, 0)
    assert found.current_txn_start_offset == 0
    handle.end(commit=True)
    (described,) = wire.ask(DescribeTransactionsRequest(transactional_ids=[handle.name]), 0).transaction_states
    assert described.transaction_state == "CompleteCommit"
    assert asking.explain(wire) == ()


def test_a_lagging_group_is_told_who_holds_back_the_rest(broker: Front, wire: Wire) -> None:
    handle = Handle(broker)
    handle.commit_offset(0)
    handle.write(b"one")
    (partition,) = asking.lag(wire, GROUP)
    assert (partition.commit_is_pending, partition.held_back) == (True, 1)
    assert [each.transactional_id for each in partition.held_by] == [handle.name]


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
    assert handle.end(commit=True) is Rejection.TRANSACTION_ENDED
    (explained,) = asking.explain(wire, handle.name)
    assert (explained.state, [each.client_id for each in explained.incidents]) == (
        "CompleteAbort",
        ["tester"],
    )


def run(broker: Front, *arguments: str) -> Result:
    where = ["--bootstrap-server", "{}:{}".format(*broker.address)]
    return CliRunner().invoke(app, ["transactions", *arguments, *where])


def test_the_command_line_aborts_it_by_its_name(broker: Front) -> None:
    """A takeover of a transactional id of that name would abort nothing, and say that it had."""
    handle, without_records = Handle(broker), Handle(broker)
    handle.write(b"in the way")
    for each in (handle, without_records):
        assert f"{each.name}: open for" in run(broker, "list").stdout
        aborted = run(broker, "abort", "--yes", each.name)
        assert (aborted.exit_code, aborted.stdout.splitlines()[-1]) == (0, f"{each.name} is aborted")
        assert each.end(commit=True) is Rejection.TRANSACTION_ENDED
        again = run(broker, "abort", "--yes", each.name)
        assert (again.exit_code, again.stderr) == (1, f"exacta: no transaction of {each.name} is open\n")
    why = run(broker, "explain", handle.name).stdout
    assert "aborted: producer" in why
    assert "or named it by its id (client 'exacta-transactions' at 127.0.0.1)" in why


def test_what_it_has_acknowledged_is_shown_and_is_free_again_after_an_abort(broker: Front, wire: Wire) -> None:
    produce(wire, batch(*[b"v"] * 20))
    handle, one, other = Handle(broker), Subscriber(broker, "one"), Subscriber(broker, "other")
    assert one.acknowledge(before=3, transaction=handle.transaction_id) == DONE
    assert one.acknowledge((5, 6), (8, 8), transaction=handle.transaction_id) == DONE
    every_second = ((each, each) for each in range(0, 20, 2))
    assert other.acknowledge(*every_second, transaction=handle.transaction_id) == DONE
    lines = run(broker, "explain", handle.name).stdout.splitlines()
    assert lines[-2:] == [
        "  acknowledged: t-0, subscription one: all before 3, 5–6, 8",
        "  acknowledged: t-0, subscription other: 0, 2, 4, 6, 8, 10, 12, 14, 16, 18",
    ]
    assert lines[1:] == run(broker, "list").stdout.splitlines()[1:]
    assert the_two(wire) == {"one": (14, 6), "other": (10, 10)}
    assert run(broker, "abort", "--yes", handle.name).exit_code == 0
    assert the_two(wire) == {"one": (20, 0), "other": (20, 0)}


def the_two(wire: Wire) -> dict[str, tuple[int, int]]:
    return {each.name: (each.left, each.pending) for each in asking.subscriptions(wire).subscriptions}


def test_a_subscription_that_was_deleted_has_nothing_pending(broker: Front, wire: Wire) -> None:
    produce(wire, batch(b"v"))
    handle, subscriber = Handle(broker), Subscriber(broker)
    assert subscriber.acknowledge((0, 0), transaction=handle.transaction_id) == DONE
    assert subscriber.delete() == DONE
    (explained,) = asking.explain(wire)
    assert (explained.subscription_count, explained.acknowledged) == (1, ())


class TestATransactionalIdOfThatName:
    """Both are shown, and each can be aborted."""

    @pytest.fixture
    def alike(self, broker: Front, wire: Wire) -> Handle:
        handle = Handle(broker)
        other = TransactionalProducer(wire, handle.name)
        assert other.add_partitions(t=[0]) == {("t", 0): 0}
        handle.write(b"the handle's")
        return handle

    def states(self, wire: Wire, name: str) -> list[tuple[bool, str]]:
        handle_id = handle_named(name)
        assert handle_id is not None
        found = asking.explain(wire, name, handles=(handle_id, handle_id))
        return [(each.is_handle, each.state) for each in found]

    def test_both_are_shown(self, broker: Front, wire: Wire, alike: Handle) -> None:
        found = asking.explain(wire)
        assert {(each.transactional_id, each.is_handle) for each in found} == {(alike.name, True), (alike.name, False)}
        assert len({each.transaction_id for each in found}) == 2
        shown = run(broker, "list").stdout
        assert f"\ntransactional id {alike.name}: open for" in "\n" + shown
        assert f"\n{alike.name}: open for" in "\n" + shown
        assert run(broker, "explain", alike.name).stdout.startswith(f"{alike.name}: ")
        by_id = run(broker, "explain", "--transactional-id", alike.name)
        assert by_id.stdout.startswith(f"transactional id {alike.name}: ")

    def test_each_is_aborted_by_itself(self, broker: Front, wire: Wire, alike: Handle) -> None:
        by_id = run(broker, "abort", "--yes", "--transactional-id", alike.name)
        told = f"the transaction of {alike.name} is aborted, its producer fenced"
        assert (by_id.exit_code, by_id.stdout.splitlines()[-1]) == (0, told)
        assert self.states(wire, alike.name) == [(False, "Empty"), (True, "Ongoing")]
        assert run(broker, "abort", "--yes", alike.name).exit_code == 0
        assert self.states(wire, alike.name) == [(False, "Empty"), (True, "CompleteAbort")]

    def test_without_such_a_handle_the_option_is_named(self, broker: Front, wire: Wire) -> None:
        TransactionalProducer(wire, "TxnID(0,99)")
        refused = run(broker, "abort", "--yes", "TxnID(0,99)")
        assert refused.exit_code == 1
        assert refused.stderr == (
            "exacta: nothing is known of transaction TxnID(0,99); --transactional-id, if the transactional id of this "
            "name is meant\n"
        )
        assert run(broker, "explain", "--transactional-id", "TxnID(0,99)").exit_code == 0


def test_an_abort_by_its_id_tells_what_has_become_of_it(broker: Front, wire: Wire) -> None:
    open_one, aborted, committed_one = Handle(broker), Handle(broker), Handle(broker)
    aborted.end(commit=False)
    committed_one.end(commit=True)
    named = [open_one.transaction_id, aborted.transaction_id, committed_one.transaction_id, 99]
    answer = wire.ask(AbortHandlesRequest(handles=named), 0)
    assert [(each.transaction_id, each.error_code) for each in answer.results] == list(
        zip(
            named,
            [
                ErrorCode.NONE,
                ErrorCode.NONE,
                ErrorCode.INVALID_TXN_STATE,
                ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
            ],
            strict=True,
        )
    )
    assert open_one.end(commit=True) is Rejection.TRANSACTION_ENDED
    assert wire.ask(AbortHandlesRequest(handles=[]), 0).results == []
