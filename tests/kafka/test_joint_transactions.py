"""Joint transactions as Kafka's clients and tools see them; plain calls of the engine stand for Pulsar's side.

`website.pages.transaction_errors.CONCLUDED` is what the broker answers after the other side has ended one.
"""

from typing import Any

import pytest
from website.pages.transaction_errors import CONCLUDED, CONCLUDED_STATES

import exacta
from exacta.client.errors import KafkaError
from exacta.client.joint import NotJoined, join
from exacta.client.routing import Client
from exacta.client.transactions import Producer as Pair
from exacta.core.commands import EndHandle
from exacta.core.ids import TransactionId
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE
from exacta.ports.authorizer import Principal, ResourceKind
from exacta.protocol.kafka.errors import ErrorCode
from exacta.protocol.kafka.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from exacta.protocol.kafka.messages.k17790_join_transaction import JoinTransactionRequest
from tests.kafka import asking
from tests.kafka.access_rules import Rules
from tests.kafka.test_handles import Handle, committed, run
from tests.kafka.transaction_states import REQUESTS, Id
from tests.kafka.wire import Front, Wire, front


@pytest.fixture
def broker() -> Any:
    with front() as running:
        running.connect().ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)
        yield running


@pytest.fixture
def wire(broker: Front) -> Wire:
    return broker.connect()


@pytest.fixture
def bootstrap(broker: Front) -> str:
    return "{}:{}".format(*broker.address)


def bound(wire: Wire) -> Id:
    """A transactional id that has a pair, and one before."""
    it = Id(wire, "t")
    it.bind()
    it.bind()
    return it


def ended_by_id(broker: Front, transaction_id: int, *, commit: bool) -> object:
    return Handle(broker).ask(EndHandle(transaction_id=TransactionId(transaction_id), commit=commit))


@pytest.mark.parametrize("request_name", CONCLUDED)
def test_a_concluded_id_is_answered_as_the_table_says(
    broker: Front, wire: Wire, bootstrap: str, request_name: str
) -> None:
    found = []
    for column in range(len(CONCLUDED_STATES)):
        it, handle = bound(wire), Handle(broker)
        exacta.join_transaction(bootstrap, it.name, (0, handle.transaction_id))
        if column % 2 == 0:
            it.begin()
        assert handle.end(commit=column < 2) == DONE
        found.append(REQUESTS[request_name](it, it.present)[0])
    assert tuple(found) == CONCLUDED[request_name]


def test_the_table_names_every_request() -> None:
    assert CONCLUDED.keys() == REQUESTS.keys()
    assert {len(row) for row in CONCLUDED.values()} == {len(CONCLUDED_STATES)}


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("opened_by", ["producer", "handle"])
@pytest.mark.parametrize("ended_by", ["producer", "handle"])
def test_readers_get_all_of_it_or_nothing(
    broker: Front, wire: Wire, bootstrap: str, commit: bool, opened_by: str, ended_by: str
) -> None:
    it = bound(wire)
    if opened_by == "producer":
        it.must(lambda: it.produce(12, it.present))
        coordinator, transaction_id = exacta.join_transaction(bootstrap, it.name)
        assert coordinator == 0
        handle = Handle(broker)
        handle.end(commit=False)
        handle.transaction_id = TransactionId(transaction_id)
        named = broker.on_loop(lambda: broker.engine.advice.handle_producer_id(handle.transaction_id))
        assert named is not None
        handle.producer_id = named
        handle.write(b"p")
    else:
        handle = Handle(broker)
        handle.write(b"p")
        exacta.join_transaction(bootstrap, it.name, (0, handle.transaction_id))
        it.must(lambda: it.produce(12, it.present))
    assert committed(wire) == []
    if ended_by == "producer":
        it.finish(5, commit=commit)
        assert handle.end(commit=commit) == DONE
        assert handle.end(commit=not commit) is Rejection.TRANSACTION_ENDED
    else:
        assert handle.end(commit=commit) == DONE
        it.finish(5, commit=commit)
    assert sorted(committed(wire)) == ([b"p", b"v"] if commit else [])
    it.must(lambda: it.produce(12, it.present))


def test_it_is_shown_with_both_names_and_aborted_by_either(broker: Front, wire: Wire, bootstrap: str) -> None:
    for by in ("id", "name"):
        it, handle = bound(wire), Handle(broker)
        handle.write(b"in the way")
        it_id = exacta.join_transaction(bootstrap, it.name, (0, handle.transaction_id))
        assert it_id == (0, handle.transaction_id)
        both = f"{it.name}, to Pulsar's clients {handle.name}: open for"
        assert run(broker, "list").stdout.startswith(both)
        for name in (it.name, handle.name):
            assert run(broker, "explain", name).stdout.startswith(both)
        (explained,) = asking.explain(wire, it.name)
        assert (explained.is_joint, explained.is_handle) == (True, False)
        aborted = run(broker, "abort", "--yes", it.name if by == "name" else handle.name)
        assert aborted.stdout.splitlines()[-1] == f"the transaction of {it.name} is aborted, its producer fenced"
        assert handle.end(commit=True) is Rejection.TRANSACTION_ENDED
        assert it.end(4, it.present, commit=False)[0] is ErrorCode.PRODUCER_FENCED


def test_why_it_was_aborted_is_told_to_whoever_asks_by_the_transactional_id(
    broker: Front, wire: Wire, bootstrap: str
) -> None:
    it, handle = bound(wire), Handle(broker)
    exacta.join_transaction(bootstrap, it.name, (0, handle.transaction_id))
    it.begin()
    handle.ask(EndHandle(transaction_id=handle.transaction_id, commit=False, client_id="pulsar", client_host="/h"))
    shown = run(broker, "explain", it.name).stdout
    assert "a client that knew its TxnID ended it (client 'pulsar' at h)" in shown
    assert f"{it.name}, to Pulsar's clients {handle.name}: CompleteAbort" in run(broker, "explain", handle.name).stdout


def joined_by_another(broker: Front, wire: Wire, it: Id, handle: Handle, rules: Rules) -> int:
    """Let all clients be another principal's from now on, under these rules; return the error of joining."""

    def begin_logins() -> None:
        broker.context.authorizer = rules
        for each in broker.connections:
            each.principal = Principal(name="mallory")

    broker.on_loop(begin_logins)
    request = JoinTransactionRequest(
        transactional_id=it.name,
        producer_id=it.present[0],
        producer_epoch=it.present[1],
        transaction_id=handle.transaction_id,
    )
    return int(wire.ask(request, 0).error_code)


class TestRefusals:
    """Each is one sentence."""

    def test_nothing_is_open(self, wire: Wire, bootstrap: str) -> None:
        it = bound(wire)
        with pytest.raises(NotJoined) as refused:
            exacta.join_transaction(bootstrap, it.name)
        assert str(refused.value) == (
            f"transactional id '{it.name}' has no transaction open on the broker: "
            "write a record, or send offsets, and flush first"
        )

    def test_the_id_is_not_known(self, bootstrap: str, broker: Front) -> None:
        with pytest.raises(NotJoined, match="nothing is known of transactional id 'z': initialise its producer first"):
            exacta.join_transaction(bootstrap, "z")

    def test_another_one_is_open(self, broker: Front, wire: Wire, bootstrap: str) -> None:
        it, handle = bound(wire), Handle(broker)
        it.begin()
        with pytest.raises(NotJoined, match="has another transaction open: end that first"):
            exacta.join_transaction(bootstrap, it.name, (0, handle.transaction_id))

    @pytest.mark.parametrize("may_write", [True, False])
    def test_it_holds_what_the_client_has_no_right_to(self, broker: Front, wire: Wire, may_write: bool) -> None:
        it, handle = bound(wire), Handle(broker)
        handle.write(b"x")
        rules = Rules(lambda _, resource: may_write or resource.kind is ResourceKind.TRANSACTIONAL_ID)
        code = ErrorCode.NONE if may_write else ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert joined_by_another(broker, wire, it, handle, rules) == code

    @pytest.mark.parametrize("administers", [True, False])
    def test_it_is_empty_and_another_clients(self, broker: Front, wire: Wire, administers: bool) -> None:
        it, handle = bound(wire), Handle(broker)
        rules = Rules(lambda _, resource: administers or resource.kind is not ResourceKind.CLUSTER)
        code = ErrorCode.NONE if administers else ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert joined_by_another(broker, wire, it, handle, rules) == code

    @pytest.mark.parametrize("transaction", [(1, 0), (0, -1), (0, 2**63)])
    def test_there_is_no_such_transaction_anywhere(
        self, wire: Wire, bootstrap: str, transaction: tuple[int, int]
    ) -> None:
        with pytest.raises(NotJoined, match=r"there is no transaction TxnID\("):
            exacta.join_transaction(bootstrap, bound(wire).name, transaction)

    def test_there_is_no_such_transaction_here(self, wire: Wire, bootstrap: str) -> None:
        with pytest.raises(NotJoined, match=r"there is no transaction TxnID\(0,99\), or it has ended too long ago"):
            exacta.join_transaction(bootstrap, bound(wire).name, (0, 99))

    def test_it_has_ended(self, broker: Front, wire: Wire, bootstrap: str) -> None:
        it, handle = bound(wire), Handle(broker)
        handle.end(commit=True)
        with pytest.raises(NotJoined, match=r"transaction TxnID\(0,\d\) cannot be joined by 't-\d+': it has ended, or"):
            exacta.join_transaction(bootstrap, it.name, (0, handle.transaction_id))

    def test_the_last_one_was_ended_by_its_id(self, broker: Front, wire: Wire, bootstrap: str) -> None:
        it = bound(wire)
        it.begin()
        _, transaction_id = exacta.join_transaction(bootstrap, it.name)
        assert ended_by_id(broker, transaction_id, commit=False) == DONE
        with pytest.raises(NotJoined, match="was ended by its TxnID: abort it by its producer first"):
            exacta.join_transaction(bootstrap, it.name)

    def test_the_pair_is_not_the_present_one(self, wire: Wire, bootstrap: str) -> None:
        it = bound(wire)
        with Client(bootstrap) as client, pytest.raises(KafkaError) as refused:
            join(client, it.name, producer=Pair(it.name, *it.before))
        assert refused.value.fenced
