"""A shared log over a ledger that fails: lost messages, cuts, restarts, and failovers that lose what was durable."""

import pytest

from exacta.adapters.shared.shared_log import Witness
from exacta.ports.journal import Failed, GroupAppended, JournalDamaged
from tests.adapters.shared.brokers import BrokerOf, Brokers, event, events, fill, leader_and_follower
from tests.adapters.turns import batch

# --- faults -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["requests", "replies"])
def test_after_a_lost_message_the_row_is_found_or_not(brokers: Brokers, way: str):
    one, two = leader_and_follower(brokers)
    brokers.pass_seconds(1)
    (one.wire.requests if way == "requests" else one.wire.replies).to_lose = 1
    results = one.begin_append(event(1))
    brokers.until(lambda: bool(results))
    assert isinstance(results[0], Failed)
    later = one.begin_append(event(2))
    brokers.until(lambda: bool(later))
    assert isinstance(later[0], Failed)
    one = one.again().follow()
    one.lead()
    found = events(0, 1) if way == "replies" else events(0)
    assert one.events == found
    one.append(event(3))
    brokers.until(lambda: two.events == [*found, b"3"])


@pytest.mark.parametrize("way", ["requests", "replies"])
@pytest.mark.parametrize("seconds", [0.3, 3.0, 8.0])
def test_a_cut_of_one_direction_loses_and_doubles_nothing(brokers: Brokers, way: str, seconds: float):
    one, two = leader_and_follower(brokers)
    two.want_lead()
    one.wire.cut(requests=way == "requests", replies=way == "replies")
    results = one.begin_append(event(1))
    brokers.pass_seconds(seconds)
    one.wire.mend()
    brokers.pass_seconds(6)
    assert len(results) == 1
    leader = two if two.led is not None else one
    leader.append(event(2))
    three = brokers.open(3).follow()
    brokers.until(lambda: three.events[-1:] == events(2))
    assert three.events in (events(0, 1, 2), events(0, 2))
    if isinstance(results[0], GroupAppended):
        assert three.events == events(0, 1, 2)


def test_after_a_restart_of_the_database_somebody_leads_and_nothing_is_lost(brokers: Brokers):
    one, two = leader_and_follower(brokers)
    two.want_lead()
    one.append(event(1))
    results = one.begin_append(event(2))
    brokers.database.restart()
    brokers.until(lambda: bool(results))
    brokers.until(lambda: two.led is not None)
    two.append(event(3))
    assert two.events == events(0, 1)
    three = brokers.open(3).follow()
    brokers.until(lambda: three.events == events(0, 1, 3))


def test_while_the_database_is_down_nobody_leads_and_followers_wait(brokers: Brokers):
    one, two = leader_and_follower(brokers)
    two.want_lead()
    brokers.database.primary.stop()
    brokers.pass_seconds(20)
    assert two.led is None
    assert one.failures != []
    brokers.database.primary.start()
    brokers.until(lambda: two.led is not None)
    assert two.failures == []


def test_a_failover_that_loses_what_was_durable_is_refused_and_told(brokers: Brokers):
    one, two = leader_and_follower(brokers)
    two.want_lead()
    for number in range(1, 4):
        one.append(event(number))
    brokers.until(lambda: two.events == events(0, 1, 2, 3))
    brokers.database.fail_over(lost=3)
    brokers.until(lambda: bool(two.failures))
    assert isinstance(two.led, Failed)
    brokers.until(lambda: bool(one.failures))
    for broker in (one, two):
        assert isinstance(broker.again().open(), JournalDamaged)
    other = brokers.open(3)
    assert isinstance(other.open(), JournalDamaged), "who has seen it has said so in the head"


def test_another_log_in_the_place_of_what_was_durable_is_refused(brokers: Brokers):
    one, two = leader_and_follower(brokers)
    for number in range(1, 4):
        one.append(event(number))
    brokers.until(lambda: two.events == events(0, 1, 2, 3))
    two.follower.close()
    one.kill()
    brokers.database.fail_over(lost=3)
    other = brokers.open(3).follow()
    other.lead()
    for number in range(5, 9):
        other.append(event(number))
    again = BrokerOf(brokers, 2, two.witness)
    assert isinstance(again.open(), JournalDamaged)


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("behind", [6, 3])
def test_objects_of_another_log_in_the_place_of_what_was_durable_are_refused(
    brokers: Brokers, is_open: bool, behind: int
):
    """The place where the logs part is in an object by the time that the broker is back."""
    one, two = leader_and_follower(brokers)
    fill(one, 0, 9)
    brokers.until(lambda: two.follower.position == one.journal.position)
    brokers.pass_seconds(1)
    if is_open:
        two.wire.cut()
    else:
        two.follower.close()
    one.kill()
    tables = brokers.database.primary.visible
    lost = type(tables)(
        **{name: getattr(tables, name) for name in tables.__struct_fields__}
        | {"tail": tables.tail[:-behind], "durable": 0}
    )
    brokers.database.fail_over()
    brokers.database.primary.visible = lost
    assert lost.end < two.witness.position
    other = brokers.open(3).follow()
    other.lead()
    first = other.journal.find(1, 0, 100, 1 << 20)[-1].last_offset + 1
    for number in range(first, first + 30):
        other.append(batch(1, number, b"%03d" % (number + 500) * 100))
    brokers.pass_seconds(70)
    assert other.journal.tail_from > two.witness.position
    two.wire.mend()
    if is_open:
        brokers.until(lambda: bool(two.failures))
        assert two.events == events(0) + [b"event of 1 at %d" % number for number in range(9)]
    else:
        assert isinstance(BrokerOf(brokers, 2, two.witness).open(), JournalDamaged)


def test_a_snapshot_bears_witness_of_what_was_durable(brokers: Brokers):
    one, _ = leader_and_follower(brokers)
    one.append(event(1))
    saved: list[Failed | None] = []
    one.journal.save_snapshot(b"state", one.journal.position, saved.append)
    brokers.until(lambda: bool(saved))
    assert saved == [None]
    one.kill()
    tables = brokers.database.primary.visible
    three = brokers.open(3).follow()
    assert (three.blob, three.begun) == (b"state", []), "it proves that the last group is durable"
    three.kill()
    brokers.database.primary.visible = type(tables)(
        **{name: getattr(tables, name) for name in tables.__struct_fields__} | {"tail": tables.tail[:-1]}
    )
    four = brokers.open(4, Witness())
    assert isinstance(four.open(), JournalDamaged)
