"""Brokers that take the lead from one another while they are paused: no answer is behind one that was given before.

Each broker has a loop of its own, which gets a turn when the dice say so. A leader that stands still is replaced.
What a journal has to tell comes some turns later than it was found out, so that a broker can be replaced in between.
Bugs that are planted must be found.
"""

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from exacta.adapters.memory import MemoryJournal, MemoryStorage
from exacta.core.commands import CreateTopic
from exacta.core.ids import PartitionId
from exacta.core.replies import Appended
from exacta.core.snapshot import is_same, replayed
from exacta.core.values.limits import Limits
from exacta.engine.engine import Engine, EngineFailed
from exacta.engine.journal_writer import JournalWriter
from exacta.engine.replica import Replica
from exacta.ports.journal import AppendResult, GroupAppended, JournalEntries
from exacta.ports.log import FetchPartition, FetchRequest, FetchResult, Log
from exacta.server.assembly import assemble_engine
from tests.engine.following import MemoryFollower
from tests.engine.rig import ManualLoop, PlainRecords, batch

SEEDS = range(200)
STEPS = 400
BROKERS = 3


class _FarJournal(MemoryJournal):
    """A journal whose results come some turns later than they are true."""

    turns: Callable[[], int]

    def append(self, expected_position: int, entries: JournalEntries, done: Callable[[AppendResult], None]) -> int:
        return super().append(expected_position, entries, self._late(done))

    def confirm(self, done: Callable[[AppendResult], None]) -> None:
        super().confirm(self._late(done))

    def _late(self, done: Callable[[AppendResult], None]) -> Callable[[AppendResult], None]:
        for _ in range(self.turns()):
            done = self._a_turn_later(done)
        return done

    def _a_turn_later(self, done: Callable[[AppendResult], None]) -> Callable[[AppendResult], None]:
        def later(result: AppendResult) -> None:
            self._call_soon(done, result)

        return later


class _Broker:
    """A broker that follows, or leads, or believes that it leads."""

    def __init__(self, storage: MemoryStorage, number: int, dice: random.Random) -> None:
        self.storage, self.number, self.dice = storage, number, dice
        self.loop = ManualLoop()
        self.stands_still = 0
        """The turns that it still misses."""
        self.engine: Engine | None = None
        self.follow()

    def follow(self) -> None:
        """Begin anew as a follower, as a broker does that has led."""
        self.loop.ready.clear()
        self.loop.later.clear()
        self.engine = None
        self.follower = MemoryFollower(self.storage, self.loop.call_soon)
        self.replica = Replica(
            self.follower,  # type: ignore[arg-type]  # its `lead` does not wait
            PlainRecords(),
            scheduler=self.loop,
            clock=lambda: self.loop.now_ms,
            limits=Limits(),
            on_failure=lambda failed: None,
        )

    def lead(self) -> None:
        """Take the lead; a group in flight reached the storage, or did not."""
        if self.engine is not None:
            return
        if self.dice.random() < 0.5:
            self.storage.keep_in_flight()
        journal = _FarJournal(self.storage, self.loop.call_soon, is_exclusive=False)
        journal.turns = partial(self.dice.randint, 0, 4)
        self.follower.deliver_new()
        self.engine = assemble_engine(
            journal,
            self.loop,
            records=PlainRecords(),
            clock=lambda: self.loop.now_ms,
            limits=Limits(),
            on_failure=self._failed,
            recovered=self.replica.hand_over(journal),
            node_id=self.number,
        )

    def _failed(self, failed: EngineFailed) -> None:
        assert failed.another_may_lead, failed
        self.loop.call_soon(self.follow)


class _World:
    """Brokers over one storage, what their clients were told, and what is wrong with that."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.storage = MemoryStorage()
        self.brokers = [_Broker(self.storage, number, self.dice) for number in range(BROKERS)]
        self.acknowledged: dict[int, bytes] = {}
        self.end = 0
        """The end of what was acknowledged."""
        self.answers = self.takeovers = 0
        self.wrong: list[str] = []
        first = self.brokers[0]
        first.lead()
        assert first.engine is not None
        first.engine.submit((CreateTopic(topic="t", topic_id=b"0" * 16, partition_count=1),), lambda answers: None)
        first.loop.settle()

    def run(self) -> None:
        for number in range(STEPS):
            broker = self.dice.choice(self.brokers)
            kind = self.dice.random()
            if kind < 0.03:
                self._take_over(broker)
            elif kind < 0.35:
                self._ask(broker, number)
            elif broker.engine is None and self.dice.random() < 0.3:
                broker.follower.deliver_new(self.dice.randint(1, 3))
            elif broker.stands_still:
                broker.stands_still -= 1
            else:
                broker.loop.turn()
        for broker in self.brokers:
            broker.loop.settle()
        self._look_at_the_end()

    def _take_over(self, broker: _Broker) -> None:
        if broker.engine is None:
            for each in self.brokers:
                each.stands_still = 0 if each.engine is None else self.dice.randint(0, 20)
            self.takeovers += 1
            broker.lead()

    def _ask(self, broker: _Broker, number: int) -> None:
        engine, payload = broker.engine, b"%d" % number
        if engine is None:
            self._fetch(broker.replica, None)
            return
        ask = self.dice.choice((self._append, self._view, self._shown, self._refused, self._fetch))
        if ask == self._append:
            engine.submit((batch(payload),), partial(self._appended, payload), [payload])
        else:
            ask(engine, self.end)

    def _append(self, log: Log, asked: Any) -> None:
        """See `_ask`."""

    def _appended(self, payload: bytes, answers: list[Any]) -> None:
        [answer] = answers
        self.answers += 1
        assert isinstance(answer, Appended), answer
        if answer.base_offset in self.acknowledged:
            self.wrong.append(f"offset {answer.base_offset} was acknowledged twice")
        self.acknowledged[answer.base_offset] = payload
        self.end = max(self.end, answer.base_offset + 1)

    def _view(self, log: Log, asked: int) -> None:
        log.read(lambda state, now_ms: state.partitions[PartitionId(0)].next_offset, partial(self._told, asked, "view"))

    def _shown(self, log: Log, asked: int) -> None:
        def answer() -> None:
            visible = log.visible("t", 0)
            assert visible is not None
            self._told(asked, "what readers see", visible.high_watermark)

        log.when_shown([("t", 0)], answer)

    def _told(self, asked: int, what: str, end: int) -> None:
        self.answers += 1
        if end < asked:
            self.wrong.append(f"{what} ends at {end}, and {asked} was acknowledged before the question came")

    def _refused(self, log: Log, asked: int) -> None:
        """Fetch from the end of what was acknowledged: a leader that lacks it would say that it is out of range."""
        self._fetch(log, asked)

    def _fetch(self, log: Log, asked: int | None) -> None:
        def answer(results: list[FetchResult]) -> None:
            self.answers += 1
            [result] = results
            if asked is not None and result.rejection is not None:
                self.wrong.append(f"{result.rejection.name} at {offset}, of {asked} that were acknowledged")
            for record in result.records:
                if bytes(record) != self.acknowledged.get(offset, bytes(record)):
                    self.wrong.append(f"{bytes(record)!r} at {offset}")

        offset = self.end if asked is not None else self.dice.randint(0, self.end)
        wanted = FetchPartition("t", 0, offset, 1)
        log.fetch(FetchRequest([wanted], 0, 1, 1, read_committed=True), answer)

    def _look_at_the_end(self) -> None:
        journal = MemoryJournal(self.storage, lambda *call: None)
        stored = {
            extent.first_offsets[0]: bytes(extent.place)  # type: ignore[call-overload]
            for extent in journal.find(0, 0, 1 << 60, 1 << 60)
        }
        for offset, payload in self.acknowledged.items():
            if stored.get(offset) != payload:
                self.wrong.append(f"{payload!r} was acknowledged at {offset}, where {stored.get(offset)!r} is")
        state = replayed(*journal.replay(), Limits())
        for broker in self.brokers:
            if broker.engine is None:
                broker.follower.deliver_new()
                assert is_same(broker.replica._state, state)


def test_no_answer_is_behind_one_that_was_given_before() -> None:
    answers = takeovers = 0
    for seed in SEEDS:
        world = _World(seed)
        world.run()
        assert world.wrong == [], seed
        answers, takeovers = answers + world.answers, takeovers + world.takeovers
    assert answers > 1_000
    assert takeovers > 100


def _confirm_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def confirm(journal: MemoryJournal, done: Callable[[AppendResult], None]) -> None:
        journal._call_soon(done, GroupAppended(journal.position))

    monkeypatch.setattr(_FarJournal, "confirm", confirm)


def _answer_what_is_shown_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    confirm = Engine.confirm

    def early(engine: Engine, answer: Callable[[], None], is_shown: bool = False) -> int:
        if is_shown:
            answer()
            return 0
        return confirm(engine, answer)

    monkeypatch.setattr(Engine, "confirm", early)
    monkeypatch.setattr(Engine, "when_shown", lambda engine, named, done, after=0: engine.confirm(done, True))


def _refuse_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exacta.engine.fetch.Fetcher._give", lambda fetcher, plan, done: done(plan.results))


def _let_an_append_serve_that_began_before(monkeypatch: pytest.MonkeyPatch) -> None:
    release = JournalWriter.release

    def early(writer: JournalWriter, *arguments: Any) -> int:
        if writer.in_flight is not None and writer.in_flight.entries and not writer.gathering.entries:
            writer.in_flight.releases.append(arguments[0])
            return writer.in_flight.number
        return release(writer, *arguments)

    monkeypatch.setattr(JournalWriter, "release", early)


def _go_on_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def appended(writer: JournalWriter, result: AppendResult) -> None:
        taken(writer, result if isinstance(result, GroupAppended) else GroupAppended(writer._journal.position))

    taken = JournalWriter._appended
    monkeypatch.setattr(JournalWriter, "_appended", appended)


PLANTED = [
    _confirm_nothing,
    _answer_what_is_shown_at_once,
    _refuse_at_once,
    _let_an_append_serve_that_began_before,
    _go_on_after_a_failure,
]


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__.strip("_"))
def test_a_planted_bug_is_found(plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    worlds = map(_World, SEEDS)
    for world in worlds:
        world.run()
        if world.wrong:
            return
    pytest.fail("no world has found it")
