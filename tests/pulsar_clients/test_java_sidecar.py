"""Pulsar's client for Java is told provisional ids of messages on a sidecar topic, and may use them (decision 0043)."""

from typing import Any

import pytest

from tests.pulsar_clients.brokers import ON_PULSAR
from tests.pulsar_clients.java import JavaClient, api, outcome, receive, seconds, send, texts

pytestmark = [
    pytest.mark.skipif(ON_PULSAR, reason="Apache Pulsar has no sidecar topics"),
    pytest.mark.parametrize("given", ["sidecar"], indirect=True),
]


def sent(java: JavaClient, topic: str, *, batch: int = 1) -> tuple[Any, Any, list[Any]]:
    """Send 0 to 5 by turns in two transactions; return these, and the ids by their values.

    The second transaction is to commit first. Without batches the messages come to lie as 1 3 5 0 2 4.
    """
    first, second = java.begin(), java.begin()
    producers = [java.batching(topic, batch) if batch > 1 else java.producer(topic) for _ in range(2)]
    ids = []
    for number in range(0, 6, batch):
        which = number // batch % 2
        values = [str(each) for each in range(number, number + batch)]
        ids += send(producers[which], *values, transaction=(first, second)[which])
    return first, second, ids


def copied(message_id: Any) -> Any:
    """Return an id that has been bytes in between."""
    return api("MessageId").fromByteArray(message_id.toByteArray())


def left(java: JavaClient, topic: str, count: int, **options: Any) -> list[str]:
    """Return what a new consumer gets, and look that there is no more."""
    consumer = java.consumer(topic, **options)
    found = texts(receive(consumer, count))
    assert consumer.receive(*seconds(0.3)) is None
    consumer.close()
    return found


def test_the_ids_are_those_of_no_message_and_travel_as_bytes(java: JavaClient, topic: str) -> None:
    first, second, ids = sent(java, topic)
    assert all(each.getLedgerId() >= 0 > -(2**61) > each.getEntryId() for each in ids)
    assert all(copied(each).equals(each) for each in ids)
    assert [each.compareTo(api("MessageId").earliest) > 0 for each in ids] == [True] * 6
    assert [outcome(second.commit()), outcome(first.commit())] == ["done"] * 2
    came = [each.getMessageId() for each in receive(java.consumer(topic), 6)]
    assert all(each.compareTo(other) < 0 for each in ids for other in came)


@pytest.mark.parametrize("kind", ["Exclusive", "Shared"])
def test_it_acknowledges_one_by_one(java: JavaClient, topic: str, kind: str) -> None:
    first, second, ids = sent(java, topic)
    consumer = java.consumer(topic, kind=kind)
    assert outcome(consumer.acknowledgeAsync(ids[0])) == "NotAllowedException", "its transaction is open"
    assert [outcome(second.commit()), outcome(first.commit())] == ["done"] * 2
    assert [outcome(consumer.acknowledgeAsync(each)) for each in (ids[0], copied(ids[3]))] == ["done"] * 2
    consumer.close()
    assert left(java, topic, 4, kind=kind) == ["1", "5", "2", "4"]


@pytest.mark.parametrize("delay", [0, 0.05], ids=["at once", "grouped"])
def test_it_acknowledges_cumulatively_and_nothing_that_comes_is_dropped(
    java: JavaClient, topic: str, delay: float
) -> None:
    first, second, ids = sent(java, topic)
    consumer = java.consumer(topic, acknowledgmentGroupTime=seconds(delay))
    assert [outcome(second.commit()), outcome(first.commit())] == ["done"] * 2
    assert texts(receive(consumer, 3)) == ["1", "3", "5"]
    assert outcome(consumer.acknowledgeCumulativeAsync(ids[5])) == "done"
    assert texts(receive(consumer, 3)) == ["0", "2", "4"], "the client takes none of them for acknowledged"
    consumer.close()
    assert left(java, topic, 3) == ["0", "2", "4"]


@pytest.mark.parametrize("kind", ["Exclusive", "Shared"])
def test_it_acknowledges_in_a_transaction(java: JavaClient, topic: str, kind: str) -> None:
    first, second, ids = sent(java, topic)
    assert [outcome(second.commit()), outcome(first.commit())] == ["done"] * 2
    consumer, transaction = java.consumer(topic, kind=kind), java.begin()
    assert outcome(consumer.acknowledgeAsync(ids[2], transaction)) == "done"
    assert outcome(consumer.acknowledgeAsync(ids[2], java.begin())) == "TransactionConflictException"
    assert outcome(transaction.commit()) == "done"
    consumer.close()
    assert left(java, topic, 5, kind=kind) == ["1", "3", "5", "0", "4"]


def test_an_id_of_a_batch_acknowledges_the_batch(java: JavaClient, topic: str) -> None:
    """So it does on a marker topic: the id of a receipt does not say how many messages the batch has."""
    first, second, ids = sent(java, topic, batch=3)
    assert [outcome(second.commit()), outcome(first.commit())] == ["done"] * 2
    consumer = java.consumer(topic, enableBatchIndexAcknowledgment=False)
    assert outcome(consumer.acknowledgeCumulativeAsync(ids[4])) == "done"
    consumer.close()
    assert left(java, topic, 3) == ["0", "1", "2"]


@pytest.mark.parametrize("inclusive", [True, False], ids=["inclusive", "exclusive"])
def test_a_reader_begins_at_its_message(java: JavaClient, topic: str, inclusive: bool) -> None:
    first, second, ids = sent(java, topic)
    assert outcome(lambda: java.reader(topic, ids[4])) == "NotAllowedException", "its transaction is open"
    assert [outcome(second.commit()), outcome(first.commit())] == ["done"] * 2
    options = {"startMessageIdInclusive": ()} if inclusive else {}
    for start, wanted in ((ids[5], ["5", "0", "2", "4"]), (ids[4], ["4"])):
        reader, found = java.reader(topic, start, **options), []
        while reader.hasMessageAvailable():
            found += receive(reader, 1) if hasattr(reader, "receive") else [reader.readNext(*seconds(20))]
        assert texts(found) == wanted
        reader.close()


def test_a_subscription_seeks_its_message(java: JavaClient, topic: str) -> None:
    first, second, ids = sent(java, topic)
    consumer = java.consumer(topic)
    assert outcome(consumer.seekAsync(ids[0])) == "NotAllowedException", "its transaction is open"
    assert [outcome(second.commit()), outcome(first.commit())] == ["done"] * 2
    assert texts(receive(consumer, 6)) == ["1", "3", "5", "0", "2", "4"]
    assert outcome(consumer.seekAsync(ids[0])) == "done"
    assert texts(receive(consumer, 3)) == ["0", "2", "4"]


def test_what_was_aborted_is_refused(java: JavaClient, topic: str) -> None:
    first, second, ids = sent(java, topic)
    assert [outcome(second.commit()), outcome(first.abort())] == ["done"] * 2
    consumer = java.consumer(topic)
    assert outcome(consumer.acknowledgeAsync(ids[0])) == "NotAllowedException"
    assert outcome(consumer.acknowledgeCumulativeAsync(ids[0])) == "NotAllowedException"
    assert outcome(consumer.seekAsync(ids[0])) == "NotAllowedException"
    consumer.close()
    assert left(java, topic, 3) == ["1", "3", "5"]
