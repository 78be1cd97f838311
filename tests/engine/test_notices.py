"""Notices to connections that did not ask: told in order with the answers, once durable, to sinks that are there."""

from collections.abc import Callable

import pytest

from exacta.core import decide as decide_module
from exacta.core.commands import Command, CreateTopic, Heartbeat
from exacta.core.outcome import Notice, Outcome
from exacta.core.state.state import State
from tests.engine.producer import Producer
from tests.engine.rig import Rig, batch


class Seen(Notice, frozen=True, kw_only=True):
    """A notice of the tests."""

    number: int


class Told:
    """The words of all connections, in the order in which they are told."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.words: list[object] = []

    def submit(self, name: str, command: Command, payload: bytes | None = None) -> None:
        self.rig.engine.submit((command,), lambda answers: self.words.append(name), [payload])

    def append(self, name: str) -> None:
        self.submit(name, batch(name.encode()), name.encode())

    def sink(self, key: str) -> Callable[[Notice], None]:
        return lambda notice: self.words.append((key, notice))


@pytest.fixture
def told(rig: Rig) -> Told:
    return Told(rig)


def noticing(monkeypatch: pytest.MonkeyPatch, *keys: str, of: type[Command] = CreateTopic) -> None:
    """Let each such command send a numbered notice to each of these keys."""
    decides = decide_module._DECIDE[of]
    count = iter(range(100))

    def with_notices(state: State, command: Command, now_ms: int) -> Outcome:
        outcome = decides(state, command, now_ms)
        notices = tuple((key, Seen(number=next(count))) for key in keys)
        return Outcome(events=outcome.events, reply=outcome.reply, timers=outcome.timers, notices=notices)

    monkeypatch.setitem(decide_module._DECIDE, of, with_notices)


def create(name: str = "u") -> CreateTopic:
    return CreateTopic(topic=name, topic_id=name.encode() * 16, partition_count=1)


def test_a_notice_comes_after_its_commands_answer_and_in_order_among_the_others(
    rig: Rig, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    noticing(monkeypatch, "a", "b", "a")
    rig.engine.register_sink("a", told.sink("a"))
    rig.engine.register_sink("b", told.sink("b"))
    told.append("before")
    told.submit("created", create())
    told.append("after")
    rig.loop.turn()
    told.append("in the next group")
    rig.settle()
    first = [("a", Seen(number=0)), ("b", Seen(number=1)), ("a", Seen(number=2))]
    assert told.words == ["before", "created", *first, "after", "in the next group"]


def test_a_notice_is_not_told_before_what_it_tells_of_is_durable(
    rig: Rig, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    noticing(monkeypatch, "a")
    rig.engine.register_sink("a", told.sink("a"))
    told.submit("created", create())
    rig.loop.turn()
    assert rig.storage.in_flight is not None
    assert told.words == []
    rig.loop.turn()
    assert told.words == ["created", ("a", Seen(number=0))]


@pytest.mark.exclusive
@pytest.mark.parametrize("of", [Heartbeat, type(batch(b""))])
def test_a_notice_waits_for_the_sync_even_where_the_answer_comes_ahead_of_it(
    rig: Rig, told: Told, monkeypatch: pytest.MonkeyPatch, of: type[Command]
) -> None:
    producer = Producer(rig)
    producer.begin()
    producer.write(b"a")
    rig.loop.turn()
    assert rig.storage.unsynced
    noticing(monkeypatch, "a", of=of)
    rig.engine.register_sink("a", lambda notice: told.words.append(rig.storage.unsynced))
    if of is Heartbeat:
        told.submit("answered", Heartbeat(group_id="g", member_id="m", generation=1))
        assert told.words == ["answered"]
    else:
        producer.write(b"b", then=lambda: told.words.append("answered"))
    rig.settle()
    assert told.words == ["answered", 0]


@pytest.mark.exclusive
def test_a_notice_that_nothing_waits_before_is_told_at_once(
    rig: Rig, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    noticing(monkeypatch, "a", of=Heartbeat)
    rig.engine.register_sink("a", told.sink("a"))
    told.submit("answered", Heartbeat(group_id="g", member_id="m", generation=1))
    assert told.words == ["answered", ("a", Seen(number=0))]


def test_a_notice_is_not_told_after_a_failure(rig: Rig, told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    noticing(monkeypatch, "a")
    rig.engine.register_sink("a", told.sink("a"))
    rig.storage.append_fault = "the disk is gone"
    told.submit("created", create())
    rig.settle()
    assert rig.failures
    assert told.words == []


def test_a_notice_is_not_told_after_a_failure_among_the_answers_of_its_own_group(
    rig: Rig, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    noticing(monkeypatch, "a")
    rig.engine.register_sink("a", told.sink("a"))

    def submits_what_the_engine_cannot_take(answers: object) -> None:
        told.words.append("answered")
        rig.engine.submit((batch(b"without its bytes"),), lambda answers: None)

    rig.engine.submit((batch(b"x"),), submits_what_the_engine_cannot_take, [b"x"])
    told.submit("created", create())
    with pytest.raises(AssertionError):
        rig.settle()
    assert rig.engine.failed is not None
    assert told.words == ["answered", "created"], "that is durable, and was decided before"


def test_a_notice_without_a_sink_is_dropped(rig: Rig, told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    noticing(monkeypatch, "nobody", "a", "gone")
    rig.engine.register_sink("a", told.sink("a"))
    rig.engine.register_sink("gone", told.sink("gone"))
    told.submit("created", create())
    rig.engine.remove_sink("gone")
    rig.engine.register_sink("gone", told.sink("another under its key"))
    rig.engine.register_sink("nobody", told.sink("too late"))
    rig.settle()
    assert told.words == ["created", ("a", Seen(number=1))]


def test_a_sink_that_fails_keeps_nobody_else_waiting(rig: Rig, told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(notice: Notice) -> None:
        raise RuntimeError("a bug")

    noticing(monkeypatch, "a", "b")
    rig.engine.register_sink("a", broken)
    rig.engine.register_sink("b", told.sink("b"))
    told.submit("created", create())
    told.append("after")
    with pytest.raises(RuntimeError, match="a bug"):
        rig.settle()
    assert told.words == ["created", ("b", Seen(number=1)), "after"]


def test_a_key_has_one_sink(rig: Rig, told: Told) -> None:
    rig.engine.register_sink("a", told.sink("a"))
    with pytest.raises(ValueError, match="'a'"):
        rig.engine.register_sink("a", told.sink("b"))
    rig.engine.remove_sink("a")
    rig.engine.remove_sink("a")
    rig.engine.register_sink("a", told.sink("b"))
