"""Clients write down what they are told. The tests need no cluster, and script librdkafka."""

import time
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

import exacta
from exacta.core.commands import EndTransaction
from exacta.core.ids import TransactionVersion
from exacta.kafka.handlers import k26_end_txn
from exacta.verify.history import CommitAsked, End, Isolation, Op, Outcome, Poll, ReadTo
from exacta.verify.workload import reading, transforming
from exacta.verify.workload.clients import Producers
from exacta.verify.workload.notes import Notes
from exacta.verify.workload.plan import Plan, PlannedEnd
from exacta.verify.workload.producing import Transactor
from exacta.verify.workload.spec import Role, Spec
from exacta.verify.workload.transforming import Beginning


class Kept(Notes):
    """Notes that can be looked at."""

    def __init__(self) -> None:
        super().__init__(0)
        self.ops: list[Op] = []

    def write(self, op: Op) -> None:
        self.ops.append(op)

    def of(self, kind: type) -> list[Any]:
        return [op for op in self.ops if isinstance(op, kind)]


def refused(*, requires_abort: bool = True) -> KafkaException:
    return KafkaException(KafkaError(KafkaError._FAIL, "refused", False, False, requires_abort))


class Scripted:
    """A producer whose commits and aborts come to what it is told; it keeps what it was asked for."""

    def __init__(self, commit: Exception | None = None, abort: Exception | None = None) -> None:
        self.errors = {"commit": commit, "abort": abort}
        self.calls: list[str] = []

    def _call(self, name: str) -> None:
        self.calls.append(name)
        error = self.errors.get(name)
        if error is not None:
            raise error

    def begin_transaction(self) -> None:
        self._call("begin")

    def produce(self, topic: str, value: bytes, **more: Any) -> None:
        self._call(value.decode())

    def poll(self, timeout_s: float) -> None:
        pass

    def flush(self, timeout_s: float) -> None:
        self._call("flush")

    def commit_transaction(self, timeout_s: float) -> None:
        self._call("commit")

    def abort_transaction(self, timeout_s: float) -> None:
        self._call("abort")


def transacted(monkeypatch: pytest.MonkeyPatch, plan: Plan, *producers: Scripted) -> tuple[Kept, Transactor]:
    notes = Kept()
    given = iter([(producer, f"p#{number}") for number, producer in enumerate(producers, 1)])
    monkeypatch.setattr(Producers, "next", lambda self: next(given))
    spec = Spec(role=Role.ETL, process="p", incarnation=1, seed="", epoch_ns=0, client={}, transactional_id="id")
    transactor = Transactor(spec, notes)
    assert transactor.ready()
    transactor.transact("p.1.1", plan, send_offsets=lambda producer: producer._call("offsets"))
    return notes, transactor


def plan_of(end: PlannedEnd, *, late: bool = False) -> Plan:
    return Plan(end=end, records=[("t", 0, "a"), ("t", 0, "b")], flush=True, look=False, late=late)


@pytest.mark.parametrize(
    ("producer", "committing", "outcome", "goes_on"),
    [
        (Scripted(refused()), False, Outcome.OK, True),
        (Scripted(refused(), refused()), True, Outcome.UNKNOWN, False),
        (Scripted(refused(requires_abort=False)), True, Outcome.UNKNOWN, False),
        (Scripted(), True, Outcome.OK, True),
    ],
)
def test_an_acknowledged_abort_makes_a_refused_commit_certain(
    monkeypatch: pytest.MonkeyPatch, producer: Scripted, committing: bool, outcome: Outcome, goes_on: bool
) -> None:
    notes, transactor = transacted(monkeypatch, plan_of(PlannedEnd.COMMIT), producer)
    (end,) = notes.of(End)
    assert (end.committing, end.outcome) == (committing, outcome)
    assert bool(end.error) is (producer.errors["commit"] is not None)
    assert len(notes.of(CommitAsked)) == 1
    assert (transactor._producer is producer) is goes_on


def test_an_abort_has_offsets_to_forget(monkeypatch: pytest.MonkeyPatch) -> None:
    producer = Scripted()
    transacted(monkeypatch, plan_of(PlannedEnd.ABORT), producer)
    assert producer.calls == ["begin", "a", "flush", "b", "flush", "offsets", "abort"]


@pytest.mark.parametrize("late", [False, True])
def test_a_zombie_goes_on_also_with_records_and_offsets(monkeypatch: pytest.MonkeyPatch, late: bool) -> None:
    zombie = Scripted(refused())
    taken_over = 0

    def take_over(self: Producers) -> tuple[object, str]:
        nonlocal taken_over
        taken_over += 1
        if taken_over == 2:
            zombie.calls.append("taken over")
        return (zombie if taken_over == 1 else Scripted()), f"p#{taken_over}"

    notes = Kept()
    monkeypatch.setattr(Producers, "next", take_over)
    spec = Spec(role=Role.ETL, process="p", incarnation=1, seed="", epoch_ns=0, client={}, transactional_id="id")
    transactor = Transactor(spec, notes)
    assert transactor.ready()
    transactor.transact(
        "p.1.1", plan_of(PlannedEnd.ZOMBIE, late=late), send_offsets=lambda each: zombie._call("offsets")
    )
    after = zombie.calls[zombie.calls.index("taken over") + 1 :]
    assert after == (["b", "flush", "offsets", "commit"] if late else ["commit"])
    assert [end.outcome for end in notes.of(End)] == [Outcome.UNKNOWN]


class Message:
    """A record, or the end of a partition."""

    def __init__(self, offset: int, *, end: bool = False) -> None:
        self._offset, self._end = offset, end

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes:
        return b"v"

    def error(self) -> KafkaError | None:
        return KafkaError(KafkaError._PARTITION_EOF) if self._end else None


def final_read(monkeypatch: pytest.MonkeyPatch, comes: list[Message], every_s: float, end: int) -> tuple[Kept, float]:
    """Read a partition of which one message comes with each poll, and then none."""
    now_s = 0.0
    coming = iter(comes)

    class Reader:
        def consume(self, most: int, timeout_s: float) -> list[Message]:
            nonlocal now_s
            now_s += every_s
            return [message] if (message := next(coming, None)) else []

        def close(self) -> None:
            pass

    monkeypatch.setattr(reading, "assigned", lambda spec, **more: Reader())
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    notes = Kept()
    spec = Spec(
        role=Role.FINAL, process="final", incarnation=1, seed="", epoch_ns=0, client={}, topics={"t": 1},
        isolation=Isolation.UNCOMMITTED, until={"t": [end]},
    )  # fmt: skip
    reading.read_to_the_end(spec, notes)
    return notes, now_s


def test_the_final_read_goes_on_as_long_as_something_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    comes = [*(Message(offset) for offset in range(20)), Message(20, end=True)]
    notes, now_s = final_read(monkeypatch, comes, 30.0, 20)
    (read,) = notes.of(ReadTo)
    assert (read.whole, read.next_offset, read.process) == (True, 20, "final")
    assert now_s > 600
    assert len(notes.of(Poll)) == 20


@pytest.mark.parametrize(
    ("comes", "reached"),
    [
        ([], 0),
        ([Message(offset) for offset in range(10)], 10),
        ([Message(0)] * 10_000, 1),
        ([Message(5, end=True)] * 10_000, 5),
    ],
    ids=["nothing", "a part", "always the same", "an early end"],
)
def test_the_final_read_gives_up_when_nothing_new_comes(
    monkeypatch: pytest.MonkeyPatch, comes: list[Message], reached: int
) -> None:
    notes, now_s = final_read(monkeypatch, comes, 1.0, 20)
    (read,) = notes.of(ReadTo)
    assert (read.whole, read.next_offset) == (False, reached)
    assert now_s < 100


def test_librdkafka_still_speaks_version_1_of_the_transaction_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    """If this fails, librdkafka has learnt KIP-890, and `docs/how-to/verify.md` says that it has not."""
    versions = []

    def seen(**command: Any) -> EndTransaction:
        versions.append(command["version"])
        return EndTransaction(**command)

    monkeypatch.setattr(k26_end_txn, "EndTransaction", seen)
    with exacta.Broker() as broker:
        spec = Spec(
            role=Role.APPEND, process="append-0", incarnation=1, seed="1", epoch_ns=0, topics={"t": 1},
            client={"bootstrap.servers": broker.bootstrap_servers}, transactional_id="id", rate=1000.0,
        )  # fmt: skip
        notes = Kept()
        transactor = Transactor(spec, notes)
        assert transactor.ready()
        transactor.transact("append-0.1.1", plan_of(PlannedEnd.COMMIT))
    assert [end.outcome for end in notes.of(End)] == [Outcome.OK]
    assert set(versions) == {TransactionVersion.V1}


def test_a_callback_that_fails_does_so_where_it_can_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception that confluent_kafka raises in a callback comes out as something that no `except` clause catches."""
    with exacta.Broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce("t", b"made by this")
        assert producer.flush(30) == 0
        member = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"})
        beginning = Beginning()
        monkeypatch.setattr(transforming, "CALL_S", 0.000001)
        try:
            member.subscribe(["t"], on_assign=beginning)
            deadline = time.monotonic() + 30
            while beginning._failure is None and time.monotonic() < deadline:
                member.consume(1, 0.1)
            with pytest.raises(KafkaException):
                beginning.check()
            beginning.check()
            assert member.assignment() == []
        finally:
            member.close()
