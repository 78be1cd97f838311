"""Notes of what was announced for transactions: bounded, the oldest forgotten first."""

from exacta.core.ids import TransactionId
from exacta.pulsar.announced import Announced


def test_what_was_announced_is_there_until_the_end() -> None:
    announced, one, other = Announced(), TransactionId(1), TransactionId(2)
    announced.note_topics(one, ["a", "b"])
    announced.note_topics(one, ["b", "c"])
    announced.note_subscriptions(other, [("a", "s"), ("a", "s")])
    assert announced.of(one).topics == {"a", "b", "c"}
    assert announced.of(other).subscriptions == {("a", "s")}
    announced.forget(one)
    assert announced.of(one).topics == set()


def test_a_flood_of_names_or_of_transactions_forgets_the_oldest() -> None:
    for names in (["x" * 100], []):
        announced = Announced(most_bytes=10_000)
        for number in range(1_000):
            announced.note_topics(TransactionId(number), names)
        assert len(announced._by_transaction) < 100
        assert announced._used_bytes <= 10_000
        assert TransactionId(999) in announced._by_transaction
        for number in range(1_000):
            announced.forget(TransactionId(number))
        assert announced._used_bytes == 0
    announced.note_topics(TransactionId(1), map(str, range(1_000)))
    assert announced.of(TransactionId(1)).topics == set()
