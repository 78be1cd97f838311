"""Answers over a journal that others may append to: none that brings no event goes out unconfirmed (decision 0072)."""

from collections.abc import Callable

import pytest

from exacta.adapters.memory import MemoryJournal
from exacta.core.commands import CreateTopic, Deliver, Heartbeat, InitProducerId
from exacta.core.event_codec import decode_event
from exacta.core.events import LeadTaken, TopicCreated
from exacta.core.ids import Offset
from exacta.core.outcome import Notice, Outcome
from exacta.core.replies import DONE, Appended
from exacta.ports.journal import AppendResult, Journal
from exacta.ports.log import FetchPartition, FetchRequest, FetchResult
from tests.engine.rig import Rig, batch


class _CountingJournal(MemoryJournal):
    confirms = 0

    def confirm(self, done: Callable[[AppendResult], None]) -> None:
        self.confirms += 1
        super().confirm(done)


class SharedRig(Rig):
    """A rig whose journal others may append to; `start` lets another engine lead, and the old one lives on."""

    journal: _CountingJournal

    def __init__(self, *, is_exclusive: bool = False) -> None:
        super().__init__(is_exclusive=is_exclusive)

    def open_journal(self) -> Journal:
        return _CountingJournal(self.storage, self.loop.call_soon, is_exclusive=self.is_exclusive)

    def turns(self, answers: list[object]) -> int:
        """Return after how many turns of the loop something is answered."""
        for turn in range(10):
            if answers:
                return turn
            self.loop.turn()
        raise AssertionError("nothing is answered")


@pytest.fixture
def shared() -> SharedRig:
    rig = SharedRig()
    rig.topic()
    return rig


def read(rig: Rig) -> list[object]:
    seen: list[object] = []
    rig.engine.read(lambda state, now_ms: len(state.topics), seen.append)
    return seen


def shown(rig: Rig) -> list[object]:
    seen: list[object] = []
    rig.engine.when_shown([("t", 0)], lambda: seen.append(rig.engine.visible("t", 0)))
    return seen


def confirmed(rig: Rig, *, is_shown: bool) -> list[object]:
    seen: list[object] = []
    rig.engine.confirm(lambda: seen.append(DONE), is_shown)
    return seen


def refused(rig: Rig, fetch_offset: int = 0, partition: int = 0) -> list[object]:
    answers: list[object] = []
    wanted = FetchPartition("t", partition, fetch_offset, 1 << 20)
    rig.engine.fetch(FetchRequest([wanted], 0, 1, 1 << 20, read_committed=True), answers.extend)
    return answers


WITHOUT_EVENTS: dict[str, Callable[[Rig], list[object]]] = {
    "a view": read,
    "a rejection": lambda rig: rig.submit(batch(b"x", 9), payloads=[b"x"]),
    "a heartbeat": lambda rig: rig.submit(Heartbeat(group_id="g", member_id="m", generation=1)),
    "what readers see": shown,
    "what rests on the state": lambda rig: confirmed(rig, is_shown=False),
    "what rests on what readers see": lambda rig: confirmed(rig, is_shown=True),
    "a fetch out of range": lambda rig: refused(rig, 5),
    "a fetch of nothing that is there": lambda rig: refused(rig, partition=9),
}


@pytest.mark.parametrize("ask", WITHOUT_EVENTS.values(), ids=WITHOUT_EVENTS)
def test_an_answer_without_events_waits_until_the_journal_is_confirmed(
    shared: SharedRig, ask: Callable[[Rig], list[object]]
) -> None:
    answers = ask(shared)
    assert (shared.turns(answers), shared.journal.confirms) == (2, 1)


@pytest.mark.parametrize("ask", WITHOUT_EVENTS.values(), ids=WITHOUT_EVENTS)
def test_a_leader_that_was_replaced_answers_nothing(shared: SharedRig, ask: Callable[[Rig], list[object]]) -> None:
    old = shared.engine
    answers = ask(shared)
    shared.start()  # the lead goes to another one while the question waits
    shared.settle()
    assert (answers, [failed.another_may_lead for failed in shared.failures]) == ([], [True])
    assert old.failed is not None
    shared.engine = old
    assert ask(shared) == []
    shared.settle()
    assert read(shared) == []


@pytest.mark.parametrize("ask", WITHOUT_EVENTS.values(), ids=WITHOUT_EVENTS)
def test_a_journal_of_one_machine_is_never_asked(ask: Callable[[Rig], list[object]]) -> None:
    rig = SharedRig(is_exclusive=True)
    rig.topic()
    answers = ask(rig)
    assert (len(answers), rig.journal.confirms) == (1, 0), "all is durable, so it is answered at once"


def test_one_confirm_serves_all_that_has_gathered(shared: SharedRig) -> None:
    first, second = read(shared), read(shared)
    shared.loop.turn()
    assert shared.journal.confirms == 1
    later = [read(shared), read(shared)]  # behind the begin of the first one
    shared.loop.turn()
    assert (first, second, later) == ([1], [1], [[], []])
    shared.settle()
    assert (later, shared.journal.confirms) == ([[1], [1]], 2)


def test_an_append_that_begins_later_serves_as_well(shared: SharedRig) -> None:
    seen, answers = read(shared), shared.append(b"one")
    shared.settle()
    assert (seen, answers, shared.journal.confirms) == ([1], [Appended(base_offset=Offset(0))], 0)


def test_an_append_that_began_before_the_question_does_not(shared: SharedRig) -> None:
    answers = shared.append(b"one")
    shared.loop.turn()  # the group goes to the journal
    seen = read(shared)
    shared.loop.turn()
    assert (answers, seen) == ([Appended(base_offset=Offset(0))], [])
    shared.start()
    shared.settle()
    assert (seen, shared.engine.failed) == ([], None)
    assert [failed.another_may_lead for failed in shared.failures] == [True]


def test_an_append_is_served_behind_a_confirm_in_flight(shared: SharedRig) -> None:
    seen = read(shared)
    shared.loop.turn()
    answers = shared.append(b"one")
    also = read(shared)
    shared.settle()
    assert (seen, answers, also, shared.journal.confirms) == ([1], [Appended(base_offset=Offset(0))], [1], 1)


def test_a_fetch_that_refuses_nothing_shows_a_durable_prefix_at_once(shared: SharedRig) -> None:
    shared.append(b"one")
    shared.settle()
    assert shared.records() == b"one"
    found: list[FetchResult] = shared.fetch(1)
    assert [(result.rejection, result.records) for result in found] == [(None, [])]
    assert shared.journal.confirms == 0


def test_the_broker_asks_itself_without_waiting(shared: SharedRig) -> None:
    """The dispatcher gets its answer at once; what is pushed is durable, and nobody asked for it."""
    answers = shared.submit(Deliver(topic="t", partition=0, subscription="s"))
    assert (len(answers), shared.journal.confirms) == (1, 0)


def test_a_notice_is_confirmed_with_what_it_comes_with(shared: SharedRig, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Notice] = []
    shared.engine.register_sink("key", told.append)
    notice = Notice()
    monkeypatch.setattr(
        shared.engine, "_decide", lambda *args, **options: Outcome(reply=DONE, notices=(("key", notice),))
    )
    answers = shared.submit(Heartbeat(group_id="g", member_id="m", generation=1))
    assert (answers, told) == ([], [])
    shared.settle()
    assert (answers, told, shared.journal.confirms) == ([DONE], [notice], 1)


def test_what_waits_is_confirmed_before_a_clean_stop(shared: SharedRig) -> None:
    seen = read(shared)
    shared.close()
    assert (seen, shared.journal.confirms) == ([1], 1)


# --- the lead ---------------------------------------------------------------------------------------------------------


def test_the_lead_is_taken_by_the_first_event_of_all() -> None:
    rig = SharedRig()
    rig.submit(CreateTopic(topic="t", topic_id=b"0" * 16, partition_count=1))
    rig.settle()
    events = [decode_event(event) for group in rig.storage.groups for event in group.events]
    assert [type(event) for event in events] == [LeadTaken, TopicCreated]
    assert len(rig.storage.groups) == 1
    rig.start()
    rig.settle()
    assert rig.engine.advice.leader_epoch == 2


def test_no_record_is_served_before_the_lead_is_taken_durably(shared: SharedRig) -> None:
    shared.append(b"one")
    shared.settle()
    shared.start()
    found = shared.fetch()
    shared.loop.turn()
    assert found == []
    shared.settle()
    [result] = found
    assert (result.records, result.visible) == ([b"one"], shared.engine.visible("t", 0))
    shared.start()
    shared.storage.append_fault = "gone"
    lost = shared.fetch()
    shared.settle()
    assert lost == [], "no client is told an epoch that the next leader takes again"


def test_one_machine_takes_no_lead() -> None:
    rig = SharedRig(is_exclusive=True)
    rig.topic()
    assert rig.engine.advice.leader_epoch == 0


# --- failures ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_exclusive", [True, False])
def test_a_failure_of_a_shared_journal_says_that_another_may_lead(is_exclusive: bool) -> None:
    rig = SharedRig(is_exclusive=is_exclusive)
    rig.topic()
    rig.storage.append_fault = "gone"
    answers = rig.append(b"one")
    rig.settle()
    [failure] = rig.failures
    assert (answers, failure.another_may_lead, "gone" in str(failure)) == ([], not is_exclusive, True)


def test_a_confirm_that_fails_fails_the_engine(shared: SharedRig) -> None:
    shared.storage.append_fault = "gone"
    seen = read(shared)
    shared.settle()
    assert (seen, [failure.another_may_lead for failure in shared.failures]) == ([], [True])


def test_an_append_in_flight_fails_when_another_takes_the_lead(shared: SharedRig) -> None:
    answers = shared.append(b"one")
    shared.loop.turn()
    shared.storage.keep_in_flight()
    shared.start()
    shared.settle()
    assert (answers, [failure.another_may_lead for failure in shared.failures]) == ([], [True])
    assert shared.records() == b"one", "nobody knew, and it is there"


def test_a_defect_of_ours_ends_the_process(shared: SharedRig, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object, **options: object) -> Outcome:
        raise RuntimeError("a defect")

    monkeypatch.setattr(shared.engine, "_decide", broken)
    with pytest.raises(RuntimeError):
        shared.submit(InitProducerId(transactional_id="x", transaction_timeout_ms=1_000))
    assert [failure.another_may_lead for failure in shared.failures] == [False]
