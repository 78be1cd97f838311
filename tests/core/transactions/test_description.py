"""Views of handles; `tests/kafka/` holds those of transactional ids, as Kafka's tools get them."""

from exacta.core.commands import EndHandle
from exacta.core.ids import TransactionId
from exacta.core.replies import DONE
from exacta.core.state.transaction import handle_name, handle_named
from exacta.core.transactions.description import (
    describe_producers,
    explain_handle,
    explain_open_transaction,
    explain_transaction,
    list_transaction,
    transaction_names,
)
from exacta.core.values.transactions import Phase
from tests.core.world import World


def test_its_name_is_that_of_pulsars_transactions() -> None:
    assert handle_name(TransactionId(17)) == "TxnID(0,17)"
    assert handle_named("TxnID(0,17)") == 17
    for name in ("TxnID(0,017)", "TxnID(1,17)", "TxnID(0,)", "TxnID(0,17) ", "x", "TxnID(0,٣)"):
        assert handle_named(name) is None


def test_it_is_listed_and_described_like_any_other(world: World) -> None:
    handle = world.handle(client=("me", "/h"))
    handle.append(1)
    handle.commit_offsets(7)
    [name] = transaction_names(world.state)
    listed = list_transaction(world.state, name)
    assert listed is not None
    assert (listed.name, listed.phase, listed.producer_id) == (handle.name, Phase.ONGOING, handle.producer_id)
    opened = explain_open_transaction(world.state, handle.transaction_id)
    assert opened is not None
    assert opened.transactional_id == handle.name
    found = explain_transaction(world.state, handle.name)
    assert (found.client_id, found.client_host, found.groups) == ("me", "/h", ("g",))
    assert found.deadline_ms == world.now_ms + 1000
    assert [(each.topic, each.partition, each.first_offset) for each in found.partitions] == [("t", 1, 0)]
    producers = describe_producers(world.state, "t", 1)
    assert producers is not None
    assert [(each.producer_id, each.has_coordinator, each.open_first_offset) for each in producers] == [
        (handle.producer_id, True, 0)
    ]
    handle.end(commit=True)
    assert transaction_names(world.state) == []
    assert list_transaction(world.state, name) is None
    assert explain_open_transaction(world.state, handle.transaction_id) is None
    ended = explain_transaction(world.state, handle.name)
    assert (ended.state, ended.partitions) == (Phase.COMPLETE_COMMIT.value, ())
    assert explain_transaction(world.state, "TxnID(0,99)").state == ""


def test_a_transactional_id_of_that_name_is_not_the_handle(world: World) -> None:
    handle = world.handle()
    owner = world.producer(handle.name)
    found = explain_transaction(world.state, handle.name)
    assert found.producer_id == owner.producer_id
    assert set(transaction_names(world.state)) == {handle.name, handle.transaction_id}
    by_id = explain_handle(world.state, handle.transaction_id)
    assert (by_id.transactional_id, by_id.producer_id, by_id.is_handle) == (handle.name, handle.producer_id, True)
    assert explain_open_transaction(world.state, handle.transaction_id) == by_id
    assert world.send(EndHandle(transaction_id=handle.transaction_id, commit=True)) == DONE
    world.check()
