"""A follower's log: it is the leader's at each position, decides nothing, and an engine goes on with it."""

from collections.abc import Callable

import msgspec
import pytest

from exacta.adapters.memory import MemoryJournal, MemoryStorage
from exacta.core.commands import (
    CreateAcls,
    DeleteTopic,
)
from exacta.core.events import AclsCreated, Event
from exacta.core.rejections import Rejection
from exacta.core.snapshot import is_same
from exacta.core.values.limits import Limits
from exacta.engine.recovery import go_on, replay
from exacta.engine.replica import DecidesNothing, Replica
from exacta.ports.following import Delivered
from exacta.ports.journal import Failed, Journal
from exacta.ports.log import FetchResult
from tests.engine.corpus import Play
from tests.engine.corpus.access import access_commands
from tests.engine.following import Followed, MemoryFollower, fetched, replica_of
from tests.engine.producer import Producer
from tests.engine.rig import PlainRecords, Rig


class _FollowedPlay(Play):
    """The corpus' life, which plays every event, over a shared journal in memory, and followed at each step."""

    def __init__(self) -> None:
        self.number = 0
        self.follower: MemoryFollower | None = None
        self.positions = 0
        Rig.__init__(self, is_exclusive=False)
        self.follower, self.replica = replica_of(self)
        self.loop.settle()

    def open_journal(self) -> Journal:  # type: ignore[override]
        return Rig.open_journal(self)

    def settle(self) -> None:
        self.loop.settle()
        if self.follower is None or self.follower.position == self.storage.position:
            return
        self.follower.deliver_new()
        self.positions += 1
        engine, replica = self.engine, self.replica
        assert is_same(replica._state, engine._state)
        assert replica._visible == engine._visible
        assert replica.position == self.storage.position
        assert not replica._state.volatile.streams_let_go


def test_a_follower_is_the_leader_at_each_position_and_reads_what_it_reads() -> None:
    play = _FollowedPlay()
    play.run()
    play.settle()
    assert play.positions > 100
    partitions = [(each.topic, each.index) for each in play.engine._state.partitions.values()]
    assert any(each.entered for each in play.replica._state.partitions.values()), "staged streams have entered"
    for read_committed in (True, False):
        of_leader = fetched(play.engine, partitions, read_committed=read_committed)
        play.loop.settle()  # what it refuses it confirms
        of_follower = fetched(play.replica, partitions, read_committed=read_committed)
        refused = [result.rejection for result in of_leader]
        assert refused == [result.rejection for result in of_follower]
        assert [_read(result) for result in of_leader] == [_read(result) for result in of_follower]
        assert sum(bool(result.records) for result in of_follower) >= 4
    begun_later = replica_of(play)[1]
    assert is_same(begun_later._state, play.replica._state)


def _read(result: FetchResult) -> tuple[object, ...]:
    return b"".join(bytes(each) for each in result.records), result.visible, list(result.aborted)


def test_what_is_handed_over_is_what_a_start_would_have_recovered() -> None:
    play = _FollowedPlay()
    play.run()
    play.settle()
    journal = MemoryJournal(play.storage, play.loop.call_soon, is_exclusive=False)

    def clock() -> int:
        return play.loop.now_ms

    recovered = go_on(replay(journal.replay, play.limits), clock, may_have_lost=False)
    handed_over = play.replica.hand_over(journal)
    assert is_same(handed_over.state, recovered.state)
    assert handed_over.state.volatile == recovered.state.volatile
    assert sorted(map(repr, handed_over.timers)) == sorted(map(repr, recovered.timers))
    assert handed_over.fences == ()


def test_readers_see_each_delivery_in_one_step_and_who_waits_is_woken(followed: Followed) -> None:
    both = [("t", 0), ("t", 1)]
    waiting = fetched(followed.replica, both, max_wait_ms=10_000)
    followed.append(b"one")
    followed.append(b"two", 1)
    followed.settle()
    assert followed.records() == b"one", "the leader shows it"
    assert (waiting, followed.replica.visible("t", 0)) == ([], followed.replica.visible("t", 1))
    followed.follow()
    assert [_read(result)[0] for result in waiting] == [b"one", b"two"]
    assert followed.replica.visible("t", 0) == followed.engine.visible("t", 0)


def test_a_fetch_that_waits_long_enough_gets_what_there_is(followed: Followed) -> None:
    waiting = fetched(followed.replica, [("t", 0)], max_wait_ms=1_000)
    followed.loop.pass_time(999)
    assert waiting == []
    followed.loop.pass_time(2)
    assert [(result.rejection, result.records) for result in waiting] == [(None, [])]


def test_beyond_its_end_a_front_can_tell_that_it_has_not_followed_so_far(followed: Followed) -> None:
    followed.append(b"one")
    followed.settle()
    [beyond], [before] = fetched(followed.replica, [("t", 0)], 1), fetched(followed.replica, [("t", 0)], -1)
    for result in (beyond, before):
        assert result.rejection is Rejection.OFFSET_OUT_OF_RANGE
        assert result.visible is not None
        assert result.visible.high_watermark == 0
    followed.follow()
    assert fetched(followed.replica, [("t", 0)], 1)[0].rejection is None


def test_a_topic_that_is_deleted_is_gone_for_who_waits(followed: Followed) -> None:
    waiting = fetched(followed.replica, [("t", 0)], max_wait_ms=10_000)
    followed.ask(DeleteTopic(topic="t"))
    followed.follow()
    assert [result.rejection for result in waiting] == [Rejection.UNKNOWN_TOPIC_OR_PARTITION]
    assert followed.replica.visible("t", 0) is None


def test_views_and_look_ups_are_answered_at_once(followed: Followed) -> None:
    followed.append(b"one", timestamp_ms=5)
    followed.follow()
    told: list[object] = []
    replica = followed.replica
    replica.read(lambda state, now_ms: (len(state.topics), now_ms), told.append)
    replica.when_shown([("t", 0)], lambda: told.append("shown"))
    replica.confirm(lambda: told.append("confirmed"))
    assert told == [(1, followed.loop.now_ms), "shown", "confirmed"]
    assert replica.view(lambda state, now_ms: now_ms) == replica.now_ms()
    latest = replica.lookups.latest_batch("t", 0)
    assert latest is not None
    assert latest.max_timestamp_ms == 5
    assert replica.advice.leader_epoch == 1


def test_changes_of_access_are_heard_before_they_are_applied(followed: Followed) -> None:
    heard: list[tuple[type[Event], int]] = []
    replica = followed.replica
    replica.access_changed = lambda event: heard.append((type(event), len(replica._state.acls)))
    first = next(each for each in access_commands(lambda name: name, "User:x") if isinstance(each, CreateAcls))  # type: ignore[arg-type]
    followed.ask(first)
    followed.follow()
    assert heard == [(AclsCreated, 0)]
    assert len(replica._state.acls) == len(first.acls)


NOT_OF_A_FOLLOWER: dict[str, Callable[[Replica], object]] = {
    "submit": lambda replica: replica.submit((DeleteTopic(topic="t"),), lambda answers: None),
    "would_refuse": lambda replica: replica.would_refuse(DeleteTopic(topic="t")),
    "new_ticket": lambda replica: replica.new_ticket(),
    "new_consumer_id": lambda replica: replica.new_consumer_id(),
    "register_sink": lambda replica: replica.register_sink("key", lambda notice: None),
    "register": lambda replica: replica.dispatcher.register(None, lambda sent: None),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("ask", NOT_OF_A_FOLLOWER.values(), ids=NOT_OF_A_FOLLOWER)
def test_it_decides_nothing(followed: Followed, ask: Callable[[Replica], object]) -> None:
    with pytest.raises(DecidesNothing):
        ask(followed.replica)


def test_it_lets_time_pass_without_deciding(followed: Followed) -> None:
    Producer(followed).begin()
    followed.follow()
    before = followed.storage.position
    followed.engine.abandon()
    followed.loop.pass_time(3_600_000)
    assert followed.storage.position == before
    assert followed.replica._state.transactions


def test_it_stops_cleanly(followed: Followed) -> None:
    waiting = fetched(followed.replica, [("t", 0)], max_wait_ms=10_000)
    closed: list[bool] = []
    followed.replica.close(lambda: closed.append(True))
    assert (closed, len(waiting)) == ([True], 1)
    followed.append(b"one")
    followed.follow()
    assert followed.replica.visible("t", 0) != followed.engine.visible("t", 0)


# --- failures ---------------------------------------------------------------------------------------------------------


def test_an_event_of_a_later_version_ends_it(followed: Followed) -> None:
    waiting = fetched(followed.replica, [("t", 0)], max_wait_ms=1_000)
    unknown = msgspec.msgpack.encode(["of-tomorrow", 1])
    followed.replica.take(Delivered(followed.storage.position + 1, [unknown]))
    [failure] = followed.failures_of_replica
    assert not failure.another_may_lead
    assert "cannot read" in str(failure)
    followed.loop.pass_time(2_000)
    told: list[object] = []
    followed.replica.read(lambda state, now_ms: 1, told.append)
    followed.replica.confirm(lambda: told.append(1), True)
    assert (waiting, fetched(followed.replica, [("t", 0)]), told) == ([], [], [])
    followed.append(b"one")
    followed.follow()
    assert followed.replica.position < followed.storage.position


def test_a_log_that_cannot_be_followed_any_more_is_begun_again(followed: Followed) -> None:
    followed.follower.fail(Failed("its chain is another"))
    followed.follower.fail(Failed("and once more"))
    [failure] = followed.failures_of_replica
    assert failure.another_may_lead
    assert "another" in str(failure)
    assert followed.replica.failed is failure


def test_a_follower_may_begin_at_any_group() -> None:
    rig = Rig(is_exclusive=False)
    rig.topic()
    for number in range(3):
        rig.append(b"%d" % number)
        rig.settle()
    whole = list(rig.storage.groups)
    for count in range(len(whole) + 1):
        storage = MemoryStorage(groups=whole[:count])
        follower = MemoryFollower(storage, rig.loop.call_soon)
        replica = Replica(
            follower,  # type: ignore[arg-type]
            PlainRecords(),
            scheduler=rig.loop,
            clock=lambda: rig.loop.now_ms,
            limits=Limits(),
            on_failure=lambda failed: None,
        )
        storage.groups += whole[count:]
        follower.deliver_new(most_groups=1)
        follower.deliver_new()
        assert is_same(replica._state, rig.engine._state)
        assert replica._visible == rig.engine._visible


def test_it_catches_up_before_it_is_asked(followed: Followed) -> None:
    followed.append(b"one")
    followed.loop.settle()
    seen: list[int] = []
    followed.replica.catch_up(lambda: seen.append(followed.replica.visible("t", 0).high_watermark))  # type: ignore[union-attr]
    assert seen == [1]
    followed.follower.fail(Failed("gone"))
    followed.replica.catch_up(lambda: seen.append(-1))
    assert seen == [1]


def test_it_tries_again_to_catch_up(followed: Followed, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client whose request was dropped would wait for its own time-out, and all behind it on the connection."""
    answers: list[Failed | None] = [Failed("the session was lost"), None, Failed("the session was lost"), None]
    monkeypatch.setattr(followed.follower, "catch_up", lambda done: done(answers.pop(0)))
    seen: list[int] = []
    followed.replica.catch_up(lambda: seen.append(1))
    assert seen == []
    followed.loop.pass_time(1_000)
    assert seen == [1]
    followed.replica.catch_up(lambda: seen.append(2))
    followed.replica.abandon()
    followed.loop.pass_time(1_000)
    assert (seen, answers) == ([1], [None])
