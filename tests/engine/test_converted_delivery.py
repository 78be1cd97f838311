"""Dispatch where a front converts what lies in the log, at once or later, and in pieces."""

from collections.abc import Callable

import pytest

from exacta.core.commands import Redeliver
from exacta.core.ids import Offset
from exacta.core.replies import DONE
from exacta.core.values.subscriptions import SubscriptionType
from exacta.engine import dispatch
from exacta.ports.log import Form
from exacta.ports.record_format import Converted, LogEntry, Wanted
from exacta.protocol.kafka.batch_building import data_batch
from exacta.records.conversion.for_pulsar import converted
from tests.engine.rig import batch
from tests.engine.test_dispatch import PLENTY, RETRY_MS, WHERE, PushRig

SHARED, KEY_SHARED = SubscriptionType.SHARED, SubscriptionType.KEY_SHARED


class ConvertingRig(PushRig):
    """Its front converts Kafka's batches for Pulsar's clients, when it is told to."""

    def start(self) -> None:
        super().start()
        self.is_held = False
        self.held: list[Callable[[], None]] = []
        self.made: list[list[LogEntry]] = []
        self.fault: Exception | None = None
        self.form = Form(self.convert)

    def convert(self, entries: list[LogEntry], wanted: Wanted, done: Callable[[Converted | Exception], None]) -> None:
        if self.fault is not None:
            done(self.fault)
            return
        made = converted(entries, wanted, largest_entry=5 << 20)
        self.made.append(made.entries)
        if self.is_held:
            self.held.append(lambda: done(made))
        else:
            done(made)

    def release(self) -> None:
        self.is_held = False
        held, self.held = self.held, []
        for each in held:
            each()
        self.settle()

    def messages(self) -> list[tuple[int, int]]:
        """Return the first offsets and the sizes of what was pushed since it was asked last."""
        pushed, self.pushed = self.pushed, []
        return [(each.entry.base, each.entry.count) for _, each in pushed]


@pytest.fixture
def rig() -> ConvertingRig:
    return ConvertingRig()


@pytest.mark.parametrize(("before", "after"), [(KEY_SHARED, SHARED), (SHARED, KEY_SHARED)])
def test_what_is_converted_for_consumers_of_another_type_is_not_delivered(
    rig: ConvertingRig, before: SubscriptionType, after: SubscriptionType
) -> None:
    """Its entries are not those that are found when they are to be delivered again, and then count as removed."""
    rig.is_held = True
    first = rig.connect(1, PLENTY, before)
    rig.write(count=3)
    rig.disconnect(first)
    second = rig.connect(2, PLENTY, after)
    rig.release()
    expected = [(0, 3)] if after is SHARED else [(0, 1), (1, 1), (2, 1)]
    assert rig.messages() == expected
    assert rig.ask(Redeliver(**WHERE, consumer_id=second)) == DONE
    rig.settle()
    assert rig.messages() == expected


def test_what_was_chosen_for_consumers_that_are_gone_is_not_taken_for_removed(rig: ConvertingRig) -> None:
    first = rig.connect(1, PLENTY, KEY_SHARED)
    rig.write(count=3)
    rig.is_held = True
    assert rig.ask(Redeliver(**WHERE, consumer_id=first)) == DONE
    rig.settle()
    rig.disconnect(first)
    rig.connect(2, PLENTY, SHARED)
    rig.messages()
    rig.release()
    assert rig.messages() == [(0, 3)]


@pytest.mark.parametrize("is_given", [False, True], ids=["new", "given already"])
def test_delivery_goes_on_after_a_conversion_that_raises(
    rig: ConvertingRig, caplog: pytest.LogCaptureFixture, is_given: bool
) -> None:
    consumer = rig.connect(1, 2, SHARED)
    if is_given:
        rig.write()
        assert rig.messages() == [(0, 1)]
    rig.fault = MemoryError("too much")
    if is_given:
        assert rig.ask(Redeliver(**WHERE, consumer_id=consumer)) == DONE
    else:
        rig.write()
    rig.settle()
    assert rig.messages() == []
    assert "messages for subscription 's' cannot be converted" in caplog.text
    rig.fault = None
    rig.loop.pass_time(RETRY_MS)
    rig.settle()
    assert rig.messages() == [(0, 1)]


@pytest.mark.parametrize("subscription_type", [SHARED, KEY_SHARED])
def test_not_much_more_is_made_at_once_than_there_is_room_for(
    rig: ConvertingRig, monkeypatch: pytest.MonkeyPatch, subscription_type: SubscriptionType
) -> None:
    monkeypatch.setattr(dispatch, "MOST_CONVERTED_BYTES", 1_600)
    for _ in range(4):
        rig.write(count=5, value=b"v" * 300)
    rig.connect(1, PLENTY, subscription_type)
    singly = subscription_type is KEY_SHARED
    assert rig.messages() == [(base, 1 if singly else 5) for base in range(0, 20, 1 if singly else 5)]
    assert {len(each) for each in rig.made} == ({2, 1} if singly else {1})


def test_of_a_batch_only_the_messages_that_are_wanted_are_made(rig: ConvertingRig) -> None:
    rig.write(count=50)
    consumer = rig.connect(1, 3, KEY_SHARED)
    assert rig.messages() == [(0, 1), (1, 1), (2, 1)]
    assert rig.ask(Redeliver(**WHERE, consumer_id=consumer)) == DONE
    rig.permit(consumer, 2)
    assert rig.messages() == [(0, 1), (1, 1)]
    assert [len(each) for each in rig.made] == [3, 2]


@pytest.mark.parametrize("message", [0, 1, 2])
def test_one_message_of_a_batch_comes_again(rig: ConvertingRig, message: int) -> None:
    """It was taken for removed by compaction if the last one of the batch did not come again with it, and was lost."""
    consumer = rig.connect(1, PLENTY, KEY_SHARED)
    rig.write(count=3)
    rig.messages()
    assert rig.ask(Redeliver(**WHERE, consumer_id=consumer, entries=(Offset(message),))) == DONE
    rig.settle()
    assert rig.messages() == [(message, 1)]


@pytest.mark.parametrize("subscription_type", [SHARED, KEY_SHARED])
def test_a_batch_that_cannot_be_opened_comes_again(rig: ConvertingRig, subscription_type: SubscriptionType) -> None:
    """It is one message, and has more offsets."""
    consumer = rig.connect(1, PLENTY, subscription_type)
    damaged = data_batch(
        [b"no records"],
        3,
        compression=0,
        transactional=False,
        first_timestamp_ms=0,
        last_timestamp_ms=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
    )
    rig.submit(batch(damaged, count=3), payloads=[damaged])
    rig.settle()
    assert rig.messages() == [(0, 1)]
    assert rig.ask(Redeliver(**WHERE, consumer_id=consumer)) == DONE
    rig.settle()
    assert rig.messages() == [(0, 1)]
