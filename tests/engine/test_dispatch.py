"""Dispatch: what is pushed to consumers, when, and that nothing else is."""

import random
from collections.abc import Callable, Set
from typing import Any

import pytest

from exacta.core.commands import (
    Acknowledge,
    AcknowledgeSoon,
    BeginTransaction,
    Command,
    Connect,
    DeleteTopic,
    Disconnect,
    EndDelays,
    EndHandle,
    ForgetIdleSubscription,
    Permit,
    Redeliver,
    Subscribe,
    Unsubscribe,
)
from exacta.core.commands.subscriptions import EARLIEST
from exacta.core.ids import ConsumerId, Offset, PartitionId, TransactionId
from exacta.core.rejections import Rejection
from exacta.core.replies import DONE, Subscribed, TransactionBegunReply
from exacta.core.values.limits import Limits
from exacta.core.values.subscriptions import SubscriptionType
from exacta.engine.log_reader import MOST_BYTES
from exacta.engine.unread import RETRY_SECONDS
from exacta.ports.log import AS_STORED, FetchResult, Form, Sent
from exacta.ports.record_format import Buffer, Convert, Converted, LogEntry, Wanted
from exacta.protocol.kafka.batch_building import data_batch
from exacta.records.record_format import KafkaRecordFormat
from simulation.clients.batches import read_batches, record
from tests.engine.rig import Rig, batch

PLENTY = 1_000
RETRY_MS = int(RETRY_SECONDS * 1_000)
WHERE: dict[str, Any] = {"topic": "t", "partition": 0, "subscription": "s"}


class PushRig(Rig):
    """Engines over batches that are batches, and consumers whose sinks remember."""

    format = KafkaRecordFormat()

    def __init__(self, *, reads_take_time: bool = False) -> None:
        self.reads_take_time = reads_take_time
        self.pushed: list[tuple[ConsumerId, Sent]] = []
        self.form = AS_STORED
        """The form in which the consumers read that connect from now on."""
        super().__init__()
        self.topic(partition_count=1)

    def start(self) -> None:
        super().start()
        if self.reads_take_time:
            self.journal.read_cached = lambda extents: None  # type: ignore[method-assign]

    def write(self, count: int = 1, handle: TransactionBegunReply | None = None, value: bytes = b"value") -> None:
        data = data_batch(
            [record(number, value) for number in range(count)],
            count,
            compression=0,
            transactional=handle is not None,
            first_timestamp_ms=0,
            last_timestamp_ms=0,
            producer_id=-1 if handle is None else handle.producer_id,
            producer_epoch=-1 if handle is None else 0,
            base_sequence=-1,
        )
        transaction = None if handle is None else handle.transaction_id
        handle_producer_id = None if handle is None else handle.producer_id
        command = batch(data, count=count, transaction=transaction, handle_producer_id=handle_producer_id)
        self.submit(command, payloads=[data])
        self.settle()

    def begin(self) -> TransactionBegunReply:
        begun = self.ask(BeginTransaction(timeout_ms=60_000))
        assert isinstance(begun, TransactionBegunReply)
        return begun

    def end(self, transaction_id: TransactionId, *, commit: bool) -> None:
        assert self.ask(EndHandle(transaction_id=transaction_id, commit=commit)) == DONE

    def connect(
        self,
        number: int,
        permits: int = 0,
        subscription_type: SubscriptionType = SubscriptionType.SHARED,
        *,
        durable: bool = True,
        where: dict[str, Any] = WHERE,
    ) -> ConsumerId:
        consumer = ConsumerId(number)
        command = Subscribe(**where, subscription_type=subscription_type, begin=EARLIEST, durable=durable)
        answer = self.ask(command)
        assert isinstance(answer, Subscribed)

        def push(sent: list[Sent]) -> None:
            self.pushed.extend((consumer, each) for each in sent)

        self.engine.dispatcher.register(consumer, push, self.form)
        assert (
            self.ask(Connect(**where, consumer_id=consumer, subscription_type=subscription_type, durable=durable))
            == DONE
        )
        if permits:
            self.permit(consumer, permits, where)
        return consumer

    def permit(self, consumer: ConsumerId, permits: int, where: dict[str, Any] = WHERE) -> None:
        assert self.ask(Permit(**where, consumer_id=consumer, permits=permits)) == DONE

    def disconnect(self, consumer: ConsumerId) -> None:
        self.engine.dispatcher.remove(consumer)
        assert self.ask(Disconnect(**WHERE, consumer_id=consumer)) == DONE

    def acknowledge(self, base: int) -> None:
        run = (Offset(base), Offset(base))
        assert self.ask(Acknowledge(**WHERE, runs=(run,))) == DONE
        self.settle()

    def fetched(self) -> list[FetchResult]:
        results = self.fetch()
        self.settle()
        return results

    def bases(self) -> list[int]:
        """Return what was pushed since it was asked last."""
        pushed, self.pushed = self.pushed, []
        return [each.entry.base for _, each in pushed]


@pytest.fixture(params=[False, True], ids=["reads at once", "reads take time"])
def rig(request: pytest.FixtureRequest) -> PushRig:
    return PushRig(reads_take_time=request.param)


@pytest.mark.parametrize("subscription_type", SubscriptionType)
def test_what_is_written_is_pushed_once_it_is_committed(rig: PushRig, subscription_type: SubscriptionType) -> None:
    rig.connect(1, PLENTY, subscription_type)
    rig.write(count=2, value=b"plain")
    assert rig.bases() == [0]
    aborted, committed = rig.begin(), rig.begin()
    rig.write(1, aborted)
    rig.write(1, committed)
    rig.write()
    assert rig.bases() == [], "an open transaction holds back what follows it"
    rig.end(committed.transaction_id, commit=True)
    assert rig.bases() == []
    rig.end(aborted.transaction_id, commit=False)
    assert rig.bases() == [3, 4]
    assert not rig.failures


@pytest.mark.parametrize("subscription_type", SubscriptionType)
def test_what_delivery_has_forgotten_to_be_for_nobody_holds_up_nothing(
    rig: PushRig, monkeypatch: pytest.MonkeyPatch, subscription_type: SubscriptionType
) -> None:
    monkeypatch.setattr(rig.engine._state, "limits", Limits(max_acknowledged_runs=2))
    rig.connect(1, PLENTY, subscription_type)
    for _ in range(6):
        handle = rig.begin()
        rig.write(1, handle)
        rig.end(handle.transaction_id, commit=True)
    assert rig.bases() == [0, 2, 4, 6, 8, 10]
    for base in (10, 2, 0):
        rig.acknowledge(base)
    rig.write()
    assert rig.bases() == [12], "the markers before 2 and 4 are read again"
    for base in (6, 4, 8):
        rig.acknowledge(base)
    rig.acknowledge(12)
    [subscription] = rig.engine._state.partitions[PartitionId(0)].subscriptions.values()
    assert (subscription.position, subscription.acknowledged) == (13, [])
    assert not rig.failures


def test_an_offset_is_read_again_once(rig: PushRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message at the position is its consumer's, however often the subscription is looked at."""
    monkeypatch.setattr(rig.engine._state, "limits", Limits(max_acknowledged_runs=1))
    consumer = rig.connect(1, PLENTY)
    for _ in range(3):
        handle = rig.begin()
        rig.write(1, handle)
        rig.end(handle.transaction_id, commit=True)
    reads: list[Offset] = []
    find = rig.journal.find

    def counted(stream: int, begin: Offset, *rest: Any) -> Any:
        reads.append(begin)
        return find(stream, begin, *rest)

    monkeypatch.setattr(rig.journal, "find", counted)
    for _ in range(3):
        rig.permit(consumer, 1)
    assert reads == [], "what lies at the position is known by now"
    rig.acknowledge(0)
    assert reads == [1, 2], "the marker is passed"
    assert rig.bases() == [0, 2, 4]


def test_what_cannot_be_read_again_holds_up_nothing_and_is_tried_again(
    rig: PushRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rig.engine._state, "limits", Limits(max_acknowledged_runs=1))
    rig.connect(1, PLENTY)
    for _ in range(3):
        handle = rig.begin()
        rig.write(1, handle)
        rig.end(handle.transaction_id, commit=True)
    [subscription] = rig.engine._state.partitions[PartitionId(0)].subscriptions.values()
    rig.storage.read_fault = "the disk is gone"
    rig.acknowledge(0)
    rig.storage.read_fault = None
    rig.write()
    assert (rig.bases(), subscription.position) == ([0, 2, 4, 6], 1)
    rig.loop.pass_time(RETRY_MS)
    rig.settle()
    assert subscription.position == 2


def test_a_batch_is_pushed_as_it_lies_in_the_log(rig: PushRig) -> None:
    rig.connect(1, PLENTY)
    rig.write(count=3, value=b"as it is")
    ((_, sent),) = rig.pushed
    ((_, values, _),) = read_batches(sent.batch)
    assert values == [(0, b"as it is"), (1, b"as it is"), (2, b"as it is")]
    assert [bytes(buffer) for buffer in rig.fetched()[0].records] == [bytes(sent.batch)]


def test_nothing_is_read_until_somebody_takes_it(rig: PushRig) -> None:
    for _ in range(5):
        rig.write()
    consumer = rig.connect(1)
    assert rig.bases() == []
    for permits, expected in ((2, [0, 1]), (1, [2]), (PLENTY, [3, 4])):
        rig.permit(consumer, permits)
        assert rig.bases() == expected


def test_not_more_is_read_than_is_permitted_but_an_entry_whole(rig: PushRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at a large backlog costs what is delivered of it, not the backlog."""
    for _ in range(20):
        rig.write()
    rig.write(count=5)
    looked_at: list[int] = []
    entries = rig.format.entries

    def noted(batches: Buffer, aborted: Any) -> Any:
        found = entries(batches, aborted)
        looked_at.extend(each.base_offset for each in found)
        return found

    monkeypatch.setattr(rig.format, "entries", noted)
    consumer = rig.connect(1, 3)
    assert rig.bases() == looked_at == [0, 1, 2]
    rig.permit(consumer, 18)
    assert rig.bases() == looked_at[3:] == list(range(3, 21)), "the last one has more messages than were permitted"
    rig.permit(consumer, 4)
    rig.write()
    assert rig.bases() == []
    rig.permit(consumer, 1)
    assert rig.bases() == [25]


def test_more_than_one_read_is_pushed_in_order(rig: PushRig) -> None:
    for _ in range(7):
        rig.write(value=b"x" * (MOST_BYTES // 3))
    rig.connect(1, PLENTY)
    assert rig.bases() == list(range(7))


def test_what_a_consumer_gives_back_is_read_again_and_pushed_before_what_is_new(rig: PushRig) -> None:
    for _ in range(3):
        rig.write()
    one = rig.connect(1, 3)
    assert rig.bases() == [0, 1, 2]
    rig.write()
    assert rig.ask(Redeliver(**WHERE, consumer_id=one, entries=(Offset(1),))) == DONE
    two = rig.connect(2, PLENTY)
    assert [(who, each.entry.base, each.entry.redeliveries) for who, each in rig.pushed] == [(two, 1, 1), (two, 3, 0)]
    assert [values for _, each in rig.pushed for _, values, _ in read_batches(each.batch)] == [
        [(1, b"value")],
        [(3, b"value")],
    ]
    rig.bases()
    rig.disconnect(one)
    assert rig.bases() == [0, 2]


def test_an_abort_gives_messages_back(rig: PushRig) -> None:
    rig.write()
    rig.connect(1, PLENTY)
    handle = rig.begin()
    run = ((Offset(0), Offset(0)),)
    assert rig.ask(Acknowledge(**WHERE, runs=run, transaction=handle.transaction_id)) == DONE
    assert rig.bases() == [0]
    rig.end(handle.transaction_id, commit=False)
    assert [(each.entry.base, each.entry.redeliveries) for _, each in rig.pushed] == [(0, 1)]


def test_a_consumer_that_is_gone_meanwhile_gets_nothing_and_another_gets_it(rig: PushRig) -> None:
    one = rig.connect(1, PLENTY)
    rig.engine.dispatcher.remove(one)
    rig.write()
    assert rig.bases() == []
    rig.disconnect(one)
    rig.connect(2, PLENTY)
    assert rig.bases() == [0]


def test_each_front_gives_the_form_in_which_its_consumers_read(rig: PushRig) -> None:
    """One converter for the whole engine would make one front's messages for the clients of another front."""
    other = {**WHERE, "subscription": "other"}
    for number, (where, name) in enumerate(((WHERE, b"first"), (other, b"second")), 1):
        rig.form = Form(renaming(name))
        rig.connect(number, PLENTY, where=where)
    rig.write()
    assert sorted((int(who), bytes(each.batch)) for who, each in rig.pushed) == [(1, b"first"), (2, b"second")]


def renaming(name: bytes) -> Convert:
    """Return a conversion that makes all batches of this name."""

    def convert(entries: list[LogEntry], wanted: Wanted, done: Callable[[Converted | Exception], None]) -> None:
        done(Converted([LogEntry(each.base_offset, each.offset_count, name) for each in entries]))

    return convert


def one_by_one(entries: list[LogEntry]) -> list[LogEntry]:
    """Return an entry for each message, as a Key_Shared subscription gets another protocol's batches."""
    return [LogEntry(each.base_offset + k, 1, each.batch) for each in entries for k in range(each.offset_count)]


def test_what_is_converted_for_a_delivery_that_is_over_is_for_nobody(rig: PushRig) -> None:
    """The next consumer's subscription type takes entries of another shape. A name that it does not find counts as
    removed by compaction, so that the message would be acknowledged without having been delivered."""
    conversions: list[Callable[[], None]] = []

    def convert(entries: list[LogEntry], wanted: Wanted, done: Callable[[Converted], None]) -> None:
        conversions.append(lambda: done(Converted(one_by_one(entries) if wanted.singly else entries)))

    def finish() -> None:
        while conversions:
            conversions.pop(0)()
            rig.settle()

    rig.form = Form(convert)
    rig.write(count=3)
    one = rig.connect(1, PLENTY, SubscriptionType.KEY_SHARED)
    rig.disconnect(one)
    two = rig.connect(2, PLENTY, SubscriptionType.SHARED)
    finish()
    assert rig.ask(Redeliver(**WHERE, consumer_id=two)) == DONE
    finish()
    whole = (Offset(0), Offset(2))
    assert [(who, each.entry.base, each.entry.free) for who, each in rig.pushed] == [(two, 0, (whole,))] * 2


def test_a_topic_may_be_deleted_while_it_is_read(rig: PushRig) -> None:
    rig.connect(1)
    rig.write()
    rig.submit(Permit(**WHERE, consumer_id=ConsumerId(1), permits=1))
    rig.submit(DeleteTopic(topic="t"))
    rig.settle()
    assert not rig.failures


@pytest.mark.parametrize("is_given", [False, True], ids=["new", "given already"])
def test_what_cannot_be_read_is_told_and_tried_again(
    rig: PushRig, caplog: pytest.LogCaptureFixture, is_given: bool
) -> None:
    """Nobody would ask for it again: the consumer only waits, and may have been given it already."""
    rig.write()
    consumer = rig.connect(1, 2 if is_given else 0)
    assert rig.bases() == ([0] if is_given else [])
    rig.storage.read_fault = "the disk is gone"
    if is_given:
        assert rig.ask(Redeliver(**WHERE, consumer_id=consumer)) == DONE
    else:
        rig.permit(consumer, 1)
    rig.settle()
    assert rig.bases() == []
    assert "t-0 cannot be read from offset 0 on: the disk is gone" in caplog.text
    assert (PartitionId(0), "s") in rig.engine.dispatcher.unread
    rig.loop.pass_time(RETRY_MS)
    rig.settle()
    assert (rig.bases(), ((PartitionId(0), "s") in rig.engine.dispatcher.unread)) == ([], True)
    rig.storage.read_fault = None
    rig.loop.pass_time(RETRY_MS)
    rig.settle()
    assert [(each.entry.base, each.entry.redeliveries) for _, each in rig.pushed] == [(0, int(is_given))]
    assert (PartitionId(0), "s") not in rig.engine.dispatcher.unread
    rig.write()
    assert rig.bases() == [0], "no permit was lost, and none was made"
    rig.permit(consumer, 1)
    assert rig.bases() == [1]


def test_a_restart_delivers_what_is_not_acknowledged(rig: PushRig) -> None:
    for _ in range(3):
        rig.write()
    rig.connect(1, PLENTY)
    assert rig.ask(Acknowledge(**WHERE, runs=((Offset(1), Offset(1)),))) == DONE
    rig.bases()
    rig.crash()
    rig.connect(1, PLENTY)
    assert rig.bases() == [0, 2]


@pytest.mark.parametrize("seed", range(6))
def test_subscriptions_and_fetches_see_the_same(seed: int) -> None:
    """Whatever is written, committed or aborted in any order: what is pushed is what committed readers fetch."""
    chance = random.Random(seed)
    rig = PushRig(reads_take_time=chance.random() < 0.5)
    consumer = rig.connect(1, 1, chance.choice(list(SubscriptionType)))
    opened: list[TransactionBegunReply] = []
    for _ in range(60):
        dice = chance.random()
        if dice < 0.2:
            opened.append(rig.begin())
        elif dice < 0.4 and opened:
            rig.end(opened.pop(chance.randrange(len(opened))).transaction_id, commit=chance.random() < 0.5)
        elif dice < 0.5:
            rig.permit(consumer, chance.randint(1, 3))
        else:
            rig.write(chance.randint(1, 3), chance.choice([None, *opened]))
    for each in opened:
        rig.end(each.transaction_id, commit=chance.random() < 0.5)
    rig.permit(consumer, PLENTY)
    (result,) = rig.fetched()
    aborted = {(each.producer_id, each.first_offset) for each in result.aborted}
    fetched = committed_bases(b"".join(map(bytes, result.records)), aborted)
    assert rig.bases() == fetched
    assert not rig.failures


def committed_bases(records: bytes, aborted: Set[tuple[int, int]]) -> list[int]:
    """Return the batches that a Kafka client shows to its reader (KIP-98), which goes by markers."""
    found: list[int] = []
    gone: set[int] = set()
    for header, _, is_commit in read_batches(records):
        gone |= {producer_id for producer_id, first in aborted if first == header.base_offset}
        if header.control:
            if not is_commit:
                gone.discard(header.producer_id)
        elif not header.transactional or header.producer_id not in gone:
            found.append(header.base_offset)
    return found


@pytest.mark.parametrize("command", [Acknowledge, AcknowledgeSoon])
def test_a_reader_is_served_and_leaves_nothing_in_the_journal(rig: PushRig, command: type[Acknowledge]) -> None:
    rig.write()
    position = rig.journal.position
    consumer = rig.connect(1, PLENTY, SubscriptionType.EXCLUSIVE, durable=False)
    assert rig.bases() == [0]
    assert rig.ask(command(**WHERE, before=Offset(1))) == DONE
    assert rig.journal.position == position
    rig.write()
    assert rig.bases() == [1], "what is written later is pushed, too"
    rig.disconnect(consumer)
    assert isinstance(answer := rig.ask(Subscribe(**WHERE, subscription_type=SubscriptionType.SHARED)), Subscribed)
    assert answer.is_new


@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize("command", [Unsubscribe(**WHERE), DeleteTopic(topic="t")], ids=["unsubscribed", "deleted"])
def test_a_subscription_that_is_gone_leaves_no_timer(rig: PushRig, durable: bool, command: Command) -> None:
    """A producer may have named a time in a thousand years."""
    rig.form = Form(facts_of=lambda batch: (-1, rig.loop.now_ms + 10**13))
    rig.connect(1, PLENTY, durable=durable)
    rig.write()
    timers = rig.engine._timers
    assert [each(**WHERE) in timers for each in (EndDelays, ForgetIdleSubscription)] == [True, not durable]
    assert not isinstance(rig.ask(command), Rejection)
    assert not any(each(**WHERE) in timers for each in (EndDelays, ForgetIdleSubscription))


def test_a_delayed_entry_is_pushed_once_its_time_has_come(rig: PushRig) -> None:
    due_ms = rig.loop.now_ms + 500

    def facts_of(batch: Buffer) -> tuple[int, int]:
        return -1, due_ms if int.from_bytes(batch[:8], "big") == 0 else 0

    rig.form = Form(facts_of=facts_of)
    rig.connect(1, PLENTY)
    rig.write()
    rig.write()
    assert rig.bases() == [1]
    rig.loop.pass_time(499)
    assert rig.bases() == []
    rig.loop.pass_time(1)
    assert rig.bases() == [0], "nothing else has happened meanwhile"
