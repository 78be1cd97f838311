"""Run all checks, and come to a verdict.

This module makes sure that a run which could not have found anything does not pass: each workload must have committed
something, every partition must have been read to its end in both isolations, a reader must have watched, and the faults
that were asked for must have been.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator

from msgspec import Struct

from exacta.verify.analysis import checks_etl, checks_fates, checks_order, checks_sidecar, checks_visibility, cycles
from exacta.verify.analysis.anomalies import Anomaly, Kind
from exacta.verify.analysis.ledger import Fate, Ledger, fold, workload_of
from exacta.verify.history import (
    BROKER_KILLED,
    BROKER_RESTARTED,
    RESTART_COMMAND,
    Isolation,
    Op,
    Outcome,
    Run,
    Workload,
)

CHECKS: tuple[Callable[[Ledger], Iterator[Anomaly]], ...] = (
    checks_fates.lost_writes,
    checks_fates.aborted_reads,
    checks_fates.dirty_reads,
    checks_fates.torn_transactions,
    checks_fates.protocols_apart,
    checks_fates.zombie_commits,
    checks_fates.unexpected_values,
    checks_order.duplicates,
    checks_order.inconsistent_offsets,
    checks_order.reordered,
    checks_order.nonmonotonic_polls,
    checks_order.skipped,
    checks_sidecar.not_contiguous,
    checks_sidecar.not_in_commit_order,
    checks_visibility.moved_back,
    checks_visibility.hanging,
    checks_visibility.partly_visible,
    checks_etl.offsets_and_data_apart,
    cycles.cycles,
)
OF_PULSAR = {
    Workload.APPEND: ("append-pulsar",),
    Workload.TRANSFER: ("transfer-pulsar", "transfer-joint"),
    Workload.ETL: ("load-pulsar",),
}
"""The beginnings of the names of Pulsar's clients in each workload."""
_MANY = 10
"""This many cases are no coincidence."""
MOST_KEPT = 20
"""Cases that are kept of each kind; the others are counted."""


class Verdict(Struct, kw_only=True):
    """The outcome of an analysis: its findings, what could not be checked, and how much there was."""

    run: Run
    counts: dict[Kind, int]
    examples: dict[Kind, list[Anomaly]]
    unchecked: list[str]
    operations: dict[tuple[str, str], int]
    faults: dict[str, int]
    figures: dict[str, int]
    strict: frozenset[Kind] = frozenset()

    @property
    def anomalies(self) -> list[Kind]:
        """Return the kinds that were found and are not allowed, in the order of their definitions."""
        return [kind for kind in Kind if self.counts.get(kind) and not self.allowed(kind)]

    @property
    def information(self) -> list[Kind]:
        """Return the kinds that were found and are allowed."""
        return [kind for kind in Kind if self.counts.get(kind) and self.allowed(kind)]

    def allowed(self, kind: Kind) -> bool:
        """Return whether a kind is only information."""
        return kind.information and kind not in self.strict and not self.run.sidecar

    @property
    def passed(self) -> bool:
        """Return whether everything was checked and nothing was found."""
        return not self.anomalies and not self.unchecked


def analyse(history: Iterable[Op], *, strict: Collection[Kind] = ()) -> Verdict:
    """Return what a history proves; `strict` are kinds of information that count as anomalies here."""
    ledger = fold(history)
    assert ledger.run is not None
    counts: dict[Kind, int] = {}
    examples: dict[Kind, list[Anomaly]] = {}
    for check in CHECKS:
        for anomaly in check(ledger):
            counts[anomaly.kind] = counts.get(anomaly.kind, 0) + 1
            kept = examples.setdefault(anomaly.kind, [])
            if len(kept) < MOST_KEPT:
                kept.append(anomaly)
    faults: dict[str, int] = {}
    for fault in ledger.faults:
        name = fault.kind if fault.outcome is Outcome.OK else f"{fault.kind} (failed)"
        faults[name] = faults.get(name, 0) + 1
    return Verdict(
        run=ledger.run,
        counts=counts,
        examples=examples,
        unchecked=list(_unchecked(ledger, ledger.run)),
        operations=dict(sorted(ledger.operations.items())),
        faults=dict(sorted(faults.items())),
        figures=_figures(ledger),
        strict=frozenset(strict),
    )


def _unchecked(ledger: Ledger, run: Run) -> Iterator[str]:
    committed = {
        workload_of(transaction.process)
        for transaction in ledger.transactions.values()
        if transaction.fate is Fate.COMMITTED
    }
    for workload in run.workloads:
        if workload.value not in committed:
            told = ledger.errors.get(workload.value)
            why = f"; most often: {told.most_common(1)[0][0]}" if told else ""
            yield f"no transaction of workload {workload.value} was committed{why}"
    yield from _clients_of_pulsar_that_did_nothing(ledger, run)
    for isolation in run.views:
        for topic, partitions in run.topics.items():
            unread = [at for at in range(partitions) if not _whole(ledger, isolation, topic, at)]
            if unread:
                numbers = ", ".join(map(str, unread))
                yield f"{topic} was not read to its end ({isolation.value}, partitions {numbers})"
        if not any(reading.offsets for reading in ledger.live(isolation) if reading.session is not None):
            yield f"no {isolation.value} reader got anything while the clients ran"
    if Workload.ETL in run.workloads and ledger.group_offsets is None:
        yield "the offsets of the etl group were not read"
    everything = {(topic, at) for topic, partitions in run.topics.items() for at in range(partitions)}
    if not any(sample.final and everything <= sample.marks.keys() for sample in ledger.samples):
        yield "the last stable offsets were not listed at the end"
    if not any(sample.marks for sample in ledger.samples if not sample.final):
        yield "the last stable offsets were not listed while the clients ran"
    yield from _faults_that_never_were(ledger, run)
    aborts = Counter(each.outcome for each in ledger.transactions.values() if not each.committing)
    if aborts[Outcome.FAIL] >= _MANY and not aborts[Outcome.OK]:
        yield "no abort was acknowledged, though some were asked for"


def _clients_of_pulsar_that_did_nothing(ledger: Ledger, run: Run) -> Iterator[str]:
    names = [name for workload in run.workloads for name in OF_PULSAR[workload]] if run.pulsar else []
    committed = {each.process for each in ledger.transactions.values() if each.fate is Fate.COMMITTED}
    for name in names:
        if not any(process.startswith(name) for process in committed):
            yield f"nothing of the clients {name} was committed"


def _faults_that_never_were(ledger: Ledger, run: Run) -> Iterator[str]:
    wanted = run.options.get("restart every", "0") != "0"
    outcomes = [fault.outcome for fault in ledger.faults if fault.kind == BROKER_KILLED]
    if (outcomes or (wanted and run.options.get("kill"))) and Outcome.OK not in outcomes:
        yield "the broker was to be killed, and never was"
    restarts = [fault for fault in ledger.faults if fault.kind in (BROKER_RESTARTED, RESTART_COMMAND)]
    if wanted and run.options.get("restart command") and not restarts:
        yield "the broker was to be restarted, and never was"


def _whole(ledger: Ledger, isolation: Isolation, topic: str, partition: int) -> bool:
    read = ledger.reached.get((isolation, (topic, partition)))
    ends = [sample.marks[topic, partition][1] for sample in ledger.samples if (topic, partition) in sample.marks]
    return read is not None and read.whole and read.next_offset >= max(ends, default=0)


def _figures(ledger: Ledger) -> dict[str, int]:
    fates = [transaction.fate for transaction in ledger.transactions.values()]
    figures = {f"transactions {fate.value}": fates.count(fate) for fate in Fate}
    figures["of them zombies'"] = sum(transaction.fenced for transaction in ledger.transactions.values())
    figures["records sent"] = sum(len(transaction.records) for transaction in ledger.transactions.values())
    assert ledger.run is not None
    for isolation in ledger.run.views:
        figures[f"records at the end, {isolation.value}"] = sum(
            len(reading.offsets) for reading in ledger.final(isolation).values()
        )
    amounts = [_amount(ledger.records[number].value) for number in _transfers(ledger)]
    if amounts:
        figures["money in the log (0 if nothing is torn)"] = sum(amounts)
    return figures


def _transfers(ledger: Ledger) -> Iterator[int]:
    for reading in ledger.final(Isolation.COMMITTED).values():
        for number in reading.records:
            if ledger.records[number].value.startswith(f"{Workload.TRANSFER.value}-"):
                yield number


def _amount(value: str) -> int:
    _, _, amount = value.partition(" ")
    try:
        return int(amount)
    except ValueError:
        return 0
