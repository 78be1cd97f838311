"""Producers beside each other: the table of access modes, epochs, waiting, and clients that come back."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pulsar
import pytest
from confluent_kafka.admin import AdminClient

import exacta
from exacta.protocol.pulsar import messages_pb2 as pb
from tests.docstring_tables import docstring_table
from tests.pulsar.wire import Wire, client, running, stored

Mode = pb.ProducerAccessMode
MODES = tuple(Mode.keys())
EXCLUSIVE = MODES[1:]
BUSY, FENCED = pb.ServerError.ProducerBusy, pb.ServerError.ProducerFenced

TABLE = docstring_table("exacta.pulsar.producers", "there are \\ asks for")
PRESENT = {
    # what the partition has: the name of its row
    "nobody": "nobody",
    "a shared one": "shared producers",
    "an exclusive one": "an exclusive one",
    "a shared one, and one that waits": "others who wait",
    "an exclusive one, and one that waits": "others who wait",
}
BEHIND = "a later epoch than its own"
ERRORS = {"BUSY": BUSY, "FENCED": FENCED}


def test_the_table_is_complete() -> None:
    """Apache Pulsar 4.2.4 gives the same answers."""
    assert TABLE.rows.keys() == {*PRESENT.values(), BEHIND}
    assert TABLE.columns == MODES


@pytest.fixture
def connect(broker: exacta.Broker) -> Iterator[Callable[[], Wire]]:
    """A function that opens a connection."""
    opened: list[Wire] = []

    def connect() -> Wire:
        opened.append(Wire(broker.pulsar_url))
        return opened[-1]

    yield connect
    for each in opened:
        each.close()


def open_as(wire: Wire, mode: str, number: int = 0, name: str = "", **fields: Any) -> Any:
    return wire.open_producer("t", number, name, producer_access_mode=Mode.Value(mode), **fields)


def close(wire: Wire, number: int = 0) -> None:
    """Close a producer, and wait until it is closed."""
    assert isinstance(wire.ask(pb.CommandCloseProducer(producer_id=number, request_id=99)), pb.CommandSuccess)


def is_quiet(wire: Wire) -> bool:
    """Return whether nothing has come before the answer to a question that is asked now."""
    return isinstance(wire.ask(pb.CommandPing()), pb.CommandPong)


@pytest.mark.parametrize("present", PRESENT)
@pytest.mark.parametrize("mode", MODES)
def test_the_table_of_access_modes(connect: Callable[[], Wire], present: str, mode: str) -> None:
    first, waiting, wire = connect(), connect(), connect()
    if present != "nobody":
        assert open_as(first, "Exclusive" if "exclusive" in present else "Shared").producer_ready
    if "waits" in present:
        assert not open_as(waiting, "WaitForExclusive").producer_ready
    answer = open_as(wire, mode)
    expected = TABLE[PRESENT[present], mode]
    if expected in ERRORS:
        assert (type(answer), answer.error) == (pb.CommandError, ERRORS[expected])
        assert answer.message
        assert first.produce(b"x").__class__ is pb.CommandSendReceipt if present != "nobody" else True
    else:
        assert answer.producer_ready is (expected != "waits")
        assert answer.HasField("topic_epoch") is (expected != "waits" and mode != "Shared")
    if expected.startswith("takes, and"):
        assert isinstance(first.receive(), pb.CommandCloseProducer)
        if "waits" in present:
            assert waiting.receive().error == FENCED
        assert isinstance(wire.produce(b"x"), pb.CommandSendReceipt)
    else:
        assert is_quiet(first)
    assert is_quiet(waiting)


def test_those_who_wait_take_their_turns_in_order(connect: Callable[[], Wire]) -> None:
    """Apache Pulsar 4.2.4 does the same, down to the epochs."""
    shared, other, first, second = (connect() for _ in range(4))
    open_as(shared, "Shared")
    open_as(other, "Shared")
    names = [open_as(each, "WaitForExclusive").producer_name for each in (first, second)]
    close(shared)
    assert is_quiet(first), "one is open still"
    close(other)
    ready = first.receive()
    assert (ready.request_id, ready.producer_name, ready.producer_ready) == (1, names[0], True)
    assert ready.topic_epoch == 0
    assert isinstance(first.produce(b"x"), pb.CommandSendReceipt)
    assert is_quiet(second)
    first.close()
    ready = second.receive()
    assert (ready.producer_name, ready.producer_ready, ready.topic_epoch) == (names[1], True, 1)
    assert isinstance(second.produce(b"x"), pb.CommandSendReceipt)


def test_one_that_is_not_wanted_any_more_waits_no_more(connect: Callable[[], Wire]) -> None:
    holder, gone, closed, last = (connect() for _ in range(4))
    open_as(holder, "Exclusive")
    for each in (gone, closed, last):
        open_as(each, "WaitForExclusive")
    gone.close()
    close(closed)
    close(holder)
    assert last.receive().producer_ready
    assert is_quiet(closed)


def test_a_connection_that_ends_takes_all_its_places_along(connect: Callable[[], Wire]) -> None:
    both, last = connect(), connect()
    open_as(both, "Exclusive")
    open_as(both, "WaitForExclusive", 1)
    open_as(last, "WaitForExclusive")
    both.close()
    assert last.receive().producer_ready
    assert isinstance(last.produce(b"x"), pb.CommandSendReceipt)


def test_one_that_waits_may_not_send(connect: Callable[[], Wire]) -> None:
    holder, waiting = connect(), connect()
    open_as(holder, "Exclusive")
    open_as(waiting, "WaitForExclusive")
    with pytest.raises(ConnectionError):
        waiting.produce(b"x")


def test_the_last_sequence_of_one_that_has_waited_is_that_of_its_turn(connect: Callable[[], Wire]) -> None:
    """It goes on after what was sent under its name while it waited."""
    holder, waiting = connect(), connect()
    open_as(holder, "Exclusive", name="p")
    assert open_as(waiting, "WaitForExclusive", name="p").last_sequence_id == -1
    holder.produce(b"x", sequence=7)
    close(holder)
    assert waiting.receive().last_sequence_id == 7


@pytest.mark.parametrize("mode", EXCLUSIVE)
def test_one_whose_epoch_is_behind_is_fenced_and_closes_nobody(connect: Callable[[], Wire], mode: str) -> None:
    old, new = connect(), connect()
    epoch = open_as(old, "Exclusive", name="old").topic_epoch
    close(old)
    assert open_as(new, "Exclusive", name="new").topic_epoch == epoch + 1
    fenced = open_as(old, mode, 1, "old", topic_epoch=epoch, epoch=1)
    assert (type(fenced), fenced.error) == (pb.CommandError, ERRORS[TABLE[BEHIND, mode]])
    assert isinstance(new.produce(b"x"), pb.CommandSendReceipt)
    close(new)
    assert open_as(old, mode, 2, "old", topic_epoch=epoch, epoch=2).error == FENCED, "also when the other is gone"


def test_epochs_outlive_a_restart() -> None:
    with running() as broker:
        wire = Wire(broker.pulsar_url)
        for epoch in range(2):
            assert open_as(wire, "Exclusive").topic_epoch == epoch
            close(wire)
        wire.close()
        broker.restart(clean=False)
        wire = Wire(broker.pulsar_url)
        assert open_as(wire, "Exclusive", topic_epoch=0, epoch=1).error == FENCED
        assert open_as(wire, "Exclusive", topic_epoch=1, epoch=1).topic_epoch == 1
        close(wire)
        assert open_as(wire, "Exclusive").topic_epoch == 2
        wire.close()


@pytest.mark.parametrize("mode", EXCLUSIVE)
def test_a_client_comes_back_before_its_end_is_known(connect: Callable[[], Wire], mode: str) -> None:
    """Its epoch proves that nobody else has had the partition. Apache Pulsar 4.2.4 fences it for ever."""
    before, after = connect(), connect()
    epoch = open_as(before, mode, name="p").topic_epoch
    answer = open_as(after, mode, name="p", topic_epoch=epoch, epoch=1)
    assert (answer.topic_epoch, answer.producer_ready) == (epoch, True)
    assert isinstance(before.receive(), pb.CommandCloseProducer)
    assert isinstance(after.produce(b"x"), pb.CommandSendReceipt)


def test_a_number_that_is_used_is_opened_again_only_as_the_same_producer(connect: Callable[[], Wire]) -> None:
    holder, wire = connect(), connect()
    open_as(holder, "Exclusive", name="h")
    assert open_as(wire, "Shared", name="p").error == BUSY
    assert not open_as(wire, "WaitForExclusive", name="p").producer_ready
    assert not open_as(wire, "WaitForExclusive", name="p").producer_ready, "it waits once, behind others"
    assert open_as(wire, "ExclusiveWithFencing", name="p").error == pb.ServerError.NotAllowedError
    close(holder)
    assert wire.receive().producer_ready
    assert is_quiet(wire)


def test_one_that_waits_for_a_topic_that_is_deleted_is_told(broker: exacta.Broker, connect: Callable[[], Wire]) -> None:
    holder, waiting = connect(), connect()
    open_as(holder, "Exclusive")
    open_as(waiting, "WaitForExclusive")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for deleted in admin.delete_topics(["t"]).values():
        deleted.result(10)
    close(holder)
    refused = waiting.receive()
    assert (type(refused), refused.error) == (pb.CommandError, pb.ServerError.TopicNotFound)


def test_the_real_client_waits_and_fences(broker: exacta.Broker) -> None:
    access = pulsar.ProducerAccessMode
    with client(broker.pulsar_url) as opened, client(broker.pulsar_url) as other:
        first = opened.create_producer("t", access_mode=access.Exclusive)
        with pytest.raises(pulsar.ProducerFenced):
            other.create_producer("t", access_mode=access.Exclusive)
        with pytest.raises(pulsar.ProducerBusy):
            other.create_producer("t")
        second = other.create_producer("t", access_mode=access.ExclusiveWithFencing)
        second.send(b"second")
        # The client says AlreadyClosed where it hears that it is fenced before it sends.
        with pytest.raises((pulsar.ProducerFenced, pulsar.AlreadyClosed)):
            first.send(b"first")
        second.close()


def test_the_real_client_goes_on_after_a_restart_unless_it_was_replaced() -> None:
    access = pulsar.ProducerAccessMode
    with running() as broker, client(broker.pulsar_url) as opened, client(broker.pulsar_url) as other:
        old = opened.create_producer("t", access_mode=access.Exclusive)
        old.send(b"0")
        broker.restart(clean=False)
        old.send(b"1")
        new = other.create_producer("t", access_mode=access.ExclusiveWithFencing)
        new.send(b"2")
        broker.restart(clean=False)
        new.send(b"3")
        with pytest.raises((pulsar.ProducerFenced, pulsar.AlreadyClosed)):
            old.send(b"not any more")
        broker.stop()
        assert stored(broker.data, "t").payloads() == [b"0", b"1", b"2", b"3"]


def test_the_real_client_waits_for_its_turn(broker: exacta.Broker, connect: Callable[[], Wire]) -> None:
    probe = connect()
    with client(broker.pulsar_url) as opened, client(broker.pulsar_url) as other, ThreadPoolExecutor(1) as pool:
        first = opened.create_producer("t")
        created = pool.submit(other.create_producer, "t", access_mode=pulsar.ProducerAccessMode.WaitForExclusive)
        deadline = time.monotonic() + 20
        while getattr(open_as(probe, "Shared"), "error", None) != BUSY:  # until somebody waits
            assert time.monotonic() < deadline
            close(probe)
        first.send(b"first")
        assert not created.done()
        first.close()
        second = created.result(20)
        second.send(b"second")
        second.close()
    broker.stop()
    assert stored(broker.data, "t").payloads() == [b"first", b"second"]
