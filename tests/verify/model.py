"""Clean histories: a log as Kafka's should be, clients that use it at random, and what they write down.

The log is a list per partition, of values and markers. A transaction's markers are written one partition after the
other, as on Kafka, so that partitions become visible one after the other. A sidecar topic has no markers. What was sent
lies aside, and is put behind all partitions at once when its transaction commits.
"""

import random
from collections.abc import Iterable

from msgspec import Struct

from exacta.verify.history import (
    FORMAT,
    Begin,
    CommitAsked,
    End,
    GroupOffsets,
    Init,
    Isolation,
    Op,
    Outcome,
    Poll,
    ReadTo,
    Run,
    Watermarks,
    Workload,
)

TOPICS = {"append": 3, "transfer": 2, "etl-in": 2, "etl-out": 2}
GROUP = "group"


class Open(Struct):
    """A transaction that has not ended."""

    name: str
    producer: str
    transactional_id: str
    records: list[tuple[str, int, str]]
    offsets: list[int | None] = []
    claims: dict[tuple[str, int], int] = {}
    asked: bool = False


class Model:
    """One run."""

    def __init__(self, seed: int, *, pulsar: bool = False, sidecar: bool = False) -> None:
        self.staged: dict[str, list[tuple[tuple[str, int], str]]] | None = {} if sidecar else None
        self.chance = random.Random(seed)
        self.views = [each for each in Isolation if pulsar or each is not Isolation.PULSAR]
        self.ops: list[Op] = []
        self.log: dict[tuple[str, int], list[tuple[str, str]]] = {  # (transaction, value); a marker has no value
            (topic, partition): [] for topic, partitions in TOPICS.items() for partition in range(partitions)
        }
        self.ended: dict[str, bool] = {}  # committed?
        self.marked: set[tuple[str, tuple[str, int]]] = set()
        self.unmarked: list[tuple[str, tuple[str, int]]] = []
        self.group: dict[tuple[str, int], int] = {}
        self.claimed_by: str | None = None
        self.open: dict[str, Open] = {}  # by process
        self.producers: dict[str, int] = {}
        self.positions: dict[tuple[Isolation, tuple[str, int]], int] = {}
        self.us = 0
        self.numbers: dict[str, int] = {}

    def now(self) -> int:
        self.us += 1
        return self.us

    # --- what the broker does

    def stable(self, place: tuple[str, int]) -> int:
        log = self.log[place]
        for offset, (transaction, value) in enumerate(log):
            if value and (transaction, place) not in self.marked:
                return offset
        return len(log)

    def end(self, transaction: str, committed: bool) -> None:
        self.ended[transaction] = committed
        if self.staged is not None:
            for place, value in self.staged.pop(transaction, []):
                if committed:
                    self.log[place].append((transaction, value))
                    self.marked.add((transaction, place))
            return
        places = {place for place, log in self.log.items() if any(entry == transaction for entry, _ in log)}
        self.unmarked += [(transaction, place) for place in sorted(places)]

    def mark(self, count: int) -> None:
        for _ in range(min(count, len(self.unmarked))):
            transaction, place = self.unmarked.pop(0)
            self.marked.add((transaction, place))
            self.log[place].append((transaction, ""))

    def visible(self, isolation: Isolation, place: tuple[str, int], start: int) -> tuple[list[tuple[int, str]], int]:
        end = self.stable(place) if isolation.is_committed else len(self.log[place])
        found = [
            (offset, value)
            for offset, (transaction, value) in enumerate(self.log[place])
            if start <= offset < end and value and (isolation is Isolation.UNCOMMITTED or self.ended[transaction])
        ]
        return found, end

    # --- what the clients do

    def init(self, process: str) -> None:
        self.producers[process] = self.producers.get(process, 0) + 1
        start = self.now()
        if process in self.open:
            opened = self.open[process]
            if opened.name not in self.ended:
                self.end(opened.name, False)
        self.mark(len(self.unmarked))
        self.ops.append(
            Init(
                process=process,
                producer=f"{process}#{self.producers[process]}",
                transactional_id=f"id-{process}",
                start_us=start,
                end_us=self.now(),
                outcome=Outcome.OK,
            )
        )

    def begin(self, process: str, workload: str) -> None:
        number = self.numbers[process] = self.numbers.get(process, 0) + 1
        name = f"{process}.{number}"
        sources: list[tuple[str, int, int]] = []
        claims: dict[tuple[str, int], int] = {}
        if workload == "etl":
            if self.claimed_by is not None:
                return
            place = ("etl-in", self.chance.randrange(TOPICS["etl-in"]))
            found, _ = self.visible(Isolation.COMMITTED, place, self.group.get(place, 0))
            found = found[: self.chance.randint(1, 4)]
            if not found:
                return
            self.claimed_by = process
            self.poll(f"{process}", Isolation.COMMITTED, place, found, session=None)
            sources = [(*place, offset) for offset, _ in found]
            claims[place] = found[-1][0] + 1
            records = [("etl-out", place[1], f"{name}/{i} {place[1]}@{at}") for i, (_, _, at) in enumerate(sources)]
        elif workload == "transfer":
            one, other = self.chance.sample(range(2), 2)
            records = [("transfer", one, f"{name}/0 -5"), ("transfer", other, f"{name}/1 5")]
        else:
            topic = self.chance.choice(["append", "etl-in"]) if workload == "append" else "etl-in"
            records = [
                (topic, self.chance.randrange(TOPICS[topic]), f"{name}/{i}") for i in range(self.chance.randint(1, 5))
            ]
        self.begin_with(process, name, records, sources, claims)

    def begin_with(
        self,
        process: str,
        name: str,
        records: list[tuple[str, int, str]],
        sources: list[tuple[str, int, int]],
        claims: dict[tuple[str, int], int],
    ) -> None:
        opened = Open(name, f"{process}#{self.producers[process]}", f"id-{process}", records, claims=claims)
        self.open[process] = opened
        self.ops.append(
            Begin(
                process=process,
                producer=opened.producer,
                transactional_id=opened.transactional_id,
                transaction=name,
                at_us=self.now(),
                records=records,
                sources=sources,
            )
        )

    def send(self, process: str) -> None:
        opened = self.open[process]
        topic, partition, value = opened.records[len(opened.offsets)]
        if opened.name in self.ended:
            opened.offsets.append(None)
            return
        if self.staged is not None:
            self.staged.setdefault(opened.name, []).append(((topic, partition), value))
            opened.offsets.append(None)
            return
        self.log[topic, partition].append((opened.name, value))
        opened.offsets.append(len(self.log[topic, partition]) - 1)

    def finish(self, process: str, fate: str | None = None) -> None:
        opened = self.open[process]
        fate = fate or self.chance.choice(
            ["commit", "commit", "commit", "abort", "zombie", "answer lost", "killed", "killed"]
        )
        fenced = False
        if fate == "zombie":
            self.init(process)
            fenced = True
        committing = fate not in ("abort", "killed")
        if committing:
            self.ops.append(CommitAsked(process=process, transaction=opened.name, at_us=self.now()))
        committed = committing and not fenced and (fate == "commit" or self.chance.random() < 0.5)
        if opened.name not in self.ended:
            if fate in ("answer lost", "killed") and not committed:
                self.init(process)  # its successor ends it
            else:
                if committed:
                    self.group |= opened.claims
                self.end(opened.name, committed)
        if opened.claims:
            self.claimed_by = None
        del self.open[process]
        if fate == "killed":
            return
        outcome = {"commit": Outcome.OK, "abort": Outcome.OK}.get(fate, Outcome.UNKNOWN)
        self.ops.append(
            End(
                process=process,
                transaction=opened.name,
                at_us=self.now(),
                committing=committing,
                outcome=outcome,
                offsets=opened.offsets,
            )
        )
        if fate == "answer lost":
            self.init(process)

    def poll(
        self,
        process: str,
        isolation: Isolation,
        place: tuple[str, int],
        found: list[tuple[int, str]],
        *,
        session: str | None,
        final: bool = False,
        transaction: str | None = None,
    ) -> None:
        self.ops.append(
            Poll(
                process=process,
                isolation=isolation,
                start_us=self.now(),
                end_us=self.now(),
                topic=place[0],
                partition=place[1],
                records=found,
                session=session,
                final=final,
                transaction=transaction,
            )
        )

    def read(self, isolation: Isolation, place: tuple[str, int], transaction: str | None = None) -> None:
        found, end = self.visible(isolation, place, self.positions.get((isolation, place), 0))
        if found:
            self.poll(f"reader-{isolation}", isolation, place, found, session="1", transaction=transaction)
        self.positions[isolation, place] = end

    def watch(self, final: bool = False) -> None:
        marks = [(*place, self.stable(place), len(log)) for place, log in self.log.items()]
        self.ops.append(Watermarks(start_us=self.now(), end_us=self.now(), partitions=marks, final=final))

    def step(self, processes: dict[str, str]) -> None:
        what = self.chance.random()
        if what < 0.15:
            self.mark(1)
        elif what < 0.3:
            self.read(self.chance.choice(self.views), self.chance.choice(list(self.log)))
        elif what < 0.35:
            self.watch()
        else:
            process = self.chance.choice(list(processes))
            opened = self.open.get(process)
            if opened is None:
                self.mark(len(self.unmarked))
                self.begin(process, processes[process])
            elif len(opened.offsets) < len(opened.records):
                self.send(process)
            elif what < 0.4:
                place = self.chance.choice(list(self.log))
                found, _ = self.visible(Isolation.COMMITTED, place, 0)
                self.poll(process, Isolation.COMMITTED, place, found, session=None, transaction=opened.name)
            else:
                self.finish(process)


OF_PULSAR = {
    "append-pulsar-0": "append",
    "transfer-pulsar-0": "transfer",
    "transfer-joint-0": "transfer",
    "load-pulsar-0": "load",
}


def clean_history(seed: int, steps: int = 400, *, pulsar: bool = False, sidecar: bool = False) -> list[Op]:
    """Return a history in which nothing is wrong."""
    model = Model(seed, pulsar=pulsar, sidecar=sidecar)
    processes = {"append-0": "append", "append-1": "append", "transfer-0": "transfer", "load-0": "load", "etl-0": "etl"}
    processes |= OF_PULSAR if pulsar else {}
    for process in processes:
        model.init(process)
    for _ in range(steps):
        model.step(processes)
    for process in list(model.open):
        while len(model.open[process].offsets) < len(model.open[process].records):
            model.send(process)
        model.finish(process)
    return [run_of(seed, list(Workload), pulsar=pulsar, sidecar=sidecar), *finished(model, processes)]


def held_back_history(older_commits: bool) -> list[Op]:
    """Return a history of a broker that writes all markers at once, as Exacta: an older one holds back a part."""
    model = Model(0)
    processes = "append-0", "append-1"
    for process in processes:
        model.init(process)
    places = ("append", 0), ("append", 1)
    model.begin_with("append-0", "append-0.1", [(*places[0], "append-0.1/0")], [], {})
    model.begin_with("append-1", "append-1.1", [(*place, f"append-1.1/{place[1]}") for place in places], [], {})
    for process in ("append-0", "append-1", "append-1"):
        model.send(process)
    model.finish("append-1", "commit")
    model.mark(2)
    for place in places:
        model.read(Isolation.COMMITTED, place)
        model.read(Isolation.UNCOMMITTED, place)
    model.watch()
    model.finish("append-0", "commit" if older_commits else "abort")
    model.mark(1)
    model.watch()
    return [run_of(0, [Workload.APPEND]), *finished(model, processes)]


def sidecar_history(order: list[int]) -> list[Op]:
    """Return a history of two transactions in one partition: 0 and 1 of the first, 2 and 3 of the one that follows.

    `order` is that in which a broker has put them.
    """
    model = Model(0, sidecar=True)
    processes, place = ("append-0", "append-1"), ("append", 0)
    for process in processes:
        model.init(process)
    for process in processes:
        model.begin_with(process, f"{process}.1", [(*place, f"{process}.1/{number}") for number in range(2)], [], {})
        for _ in range(2):
            model.send(process)
    for process in processes:
        model.finish(process, "commit")
    model.log[place] = [model.log[place][number] for number in order]
    for isolation in model.views:
        model.read(isolation, place)
    model.watch()
    return [run_of(0, [Workload.APPEND], sidecar=True), *finished(model, processes)]


def run_of(seed: int, workloads: list[Workload], *, pulsar: bool = False, sidecar: bool = False) -> Run:
    """Return the first line of a history."""
    return Run(
        format=FORMAT,
        run="r",
        version="0",
        started="2026-11-22T00:00:00+00:00",
        cluster="model",
        seed=seed,
        workloads=workloads,
        topics=TOPICS,
        etl=("etl-in", "etl-out", GROUP),
        pulsar="pulsar://model" if pulsar else "",
        sidecar=sidecar,
    )


def finished(model: Model, processes: Iterable[str]) -> list[Op]:
    """Take all transactional ids over, read everything to its end; return all operations."""
    for process in processes:
        model.init(process)
    for isolation in model.views:
        for place in model.log:
            model.read(isolation, place)
            found, end = model.visible(isolation, place, 0)
            if found:
                model.poll(f"final-{isolation}", isolation, place, found, session="final", final=True)
            read = ReadTo(isolation=isolation, topic=place[0], partition=place[1], next_offset=end, whole=True)
            model.ops.append(read)
    model.watch(final=True)
    model.ops.append(GroupOffsets(group=GROUP, partitions=[(*place, at) for place, at in model.group.items()]))
    return model.ops
