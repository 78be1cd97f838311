"""Each anomaly, planted into clean histories, is found, and nothing else is."""

from typing import cast

import msgspec
import pytest

from exacta.verify.analysis import cycles as analysis
from exacta.verify.analysis.anomalies import Kind
from exacta.verify.analysis.cycles import components, mixed_cycle, shortest_cycle
from exacta.verify.analysis.ledger import Ledger
from exacta.verify.analysis.verdict import analyse
from exacta.verify.history import Isolation
from tests.verify import planted
from tests.verify.model import clean_history, sidecar_history

SEEDS = range(12)
LIVE, FINAL = planted.is_live(Isolation.COMMITTED), planted.is_final(Isolation.COMMITTED)
TABLE = [
    (planted.lost, Kind.LOST_WRITE),
    (planted.lost_at_the_end, Kind.LOST_WRITE),
    (planted.lost_for(Isolation.UNCOMMITTED), Kind.LOST_WRITE),
    (planted.seen_and_gone, Kind.LOST_WRITE),
    (planted.aborted(LIVE), Kind.ABORTED_READ),
    (planted.aborted(FINAL), Kind.ABORTED_READ),
    (planted.aborted_after_a_refused_commit, Kind.ABORTED_READ),
    (planted.dirty(Isolation.COMMITTED), Kind.DIRTY_READ),
    (planted.torn, Kind.TORN_TRANSACTION),
    (planted.zombie, Kind.ZOMBIE_COMMIT),
    (planted.duplicate, Kind.DUPLICATE),
    (planted.reordered, Kind.REORDERED),
    (planted.reordered_in_time, Kind.REORDERED),
    (planted.outputs_reordered, Kind.REORDERED),
    (planted.inconsistent_delivery, Kind.INCONSISTENT_OFFSET),
    (planted.inconsistent_readers, Kind.INCONSISTENT_OFFSET),
    (planted.group_ahead, Kind.OFFSET_AND_DATA_APART),
    (planted.group_behind, Kind.OFFSET_AND_DATA_APART),
    (planted.transformed_twice, Kind.OFFSET_AND_DATA_APART),
    (planted.nonmonotonic, Kind.NONMONOTONIC_POLL),
    (planted.skipped(Isolation.COMMITTED), Kind.SKIPPED),
    (planted.skipped(Isolation.UNCOMMITTED), Kind.SKIPPED),
    (planted.lso_back, Kind.LSO_MOVED_BACK),
    (planted.hanging, Kind.HANGING_TRANSACTION),
    (planted.unexpected, Kind.UNEXPECTED_VALUE),
    (planted.in_the_wrong_partition, Kind.UNEXPECTED_VALUE),
    (planted.reads_in_a_circle, Kind.G1C),
]
OF_PULSAR = [
    (planted.lost, Kind.LOST_WRITE),
    (planted.lost_for(Isolation.PULSAR), Kind.LOST_WRITE),
    (planted.aborted(planted.is_live(Isolation.PULSAR)), Kind.ABORTED_READ),
    (planted.aborted(planted.is_final(Isolation.PULSAR)), Kind.ABORTED_READ),
    (planted.dirty(Isolation.PULSAR), Kind.DIRTY_READ),
    (planted.torn, Kind.TORN_TRANSACTION),
    (planted.apart, Kind.PROTOCOLS_APART),
    (planted.skipped(Isolation.PULSAR), Kind.SKIPPED),
]
"""These are planted where Pulsar's clients take part."""
EVERYTHING = [(plant, kind, False) for plant, kind in TABLE] + [(plant, kind, True) for plant, kind in OF_PULSAR]
OF_SIDECAR = [
    ([0, 2, 1, 3], [Kind.NOT_CONTIGUOUS, Kind.G0]),
    ([0, 2, 3, 1], [Kind.NOT_CONTIGUOUS, Kind.G0]),
    ([2, 3, 0, 1], [Kind.NOT_IN_COMMIT_ORDER]),
    ([0, 1, 2, 3], []),
]
"""The order in which a broker has put two transactions, and what is found where the topics are sidecar topics."""


@pytest.mark.parametrize(("plant", "kind", "pulsar"), EVERYTHING, ids=lambda each: getattr(each, "title", None))
def test_what_is_planted_is_found_and_nothing_else(plant: planted.Plant, kind: Kind, pulsar: bool) -> None:
    tried = 0
    for seed in SEEDS:
        try:
            history = plant(clean_history(seed, pulsar=pulsar))
        except planted.CannotPlant:
            continue
        tried += 1
        verdict = analyse(history)
        assert verdict.anomalies == [kind], (seed, {each: verdict.examples[each][0] for each in verdict.anomalies})
        assert verdict.examples[kind][0].message
        assert verdict.examples[kind][0].partitions or kind is Kind.ZOMBIE_COMMIT
        assert not verdict.passed
    assert tried >= 3


@pytest.mark.parametrize(("order", "kinds"), OF_SIDECAR)
def test_the_order_in_sidecar_topics(order: list[int], kinds: list[Kind]) -> None:
    run, *history = sidecar_history(order)
    verdict = analyse([run, *history])
    assert verdict.anomalies == kinds
    assert verdict.unchecked == []
    for kind in kinds:
        assert verdict.examples[kind][0].partitions == (("append", 0),)
        assert set(verdict.examples[kind][0].transactions) == {"append-0.1", "append-1.1"}
    assert analyse([msgspec.structs.replace(run, sidecar=False), *history]).passed, "every Kafka is allowed this"


def test_on_sidecar_topics_every_reader_gets_committed_records_only() -> None:
    """A record that a read_uncommitted reader got early, or of an aborted transaction, is an anomaly there."""
    history = clean_history(1)
    on_sidecar = [msgspec.structs.replace(history[0], sidecar=True), *history[1:]]
    assert {Kind.ABORTED_READ, Kind.DIRTY_READ} <= set(analyse(on_sidecar).anomalies)


def test_what_an_attempt_got_that_crashed_is_no_final_read() -> None:
    verdict = analyse(planted.lost_between_two_attempts(clean_history(1)))
    assert Kind.LOST_WRITE in verdict.anomalies


def test_the_table_has_every_kind_that_is_not_allowed() -> None:
    found = {kind for _, kind, _ in EVERYTHING} | {kind for _, kinds in OF_SIDECAR for kind in kinds}
    assert found - {kind for kind in Kind if kind.information} == {kind for kind in Kind if not kind.information}


def test_a_read_against_the_order_of_writes_is_information() -> None:
    verdict = analyse(planted.read_against_writes(clean_history(1)))
    assert verdict.counts[Kind.G1C_BY_WRITES] == 1
    assert verdict.passed
    assert not analyse(planted.read_against_writes(clean_history(1)), strict=[Kind.G1C_BY_WRITES]).passed


def test_every_kind_has_a_definition_and_a_name_of_its_own() -> None:
    assert len({kind.title for kind in Kind}) == len(Kind)
    assert all(kind.definition.endswith((".", ".)")) for kind in Kind)


def test_components_are_found_without_recursion() -> None:
    long = {str(number): {str(number + 1)} for number in range(20_000)}
    assert components(long) == []
    long["20000"] = {"0"}
    (component,) = components(long)
    assert len(component) == 20_001
    graph = {"a": {"b"}, "b": {"c", "a"}, "c": {"a"}, "d": {"a", "e"}, "e": set()}
    (component,) = components(graph)
    assert set(component) == {"a", "b", "c"}
    assert len(shortest_cycle(graph, component)) == 2 or component[0] == "c"


WRITES = {"a": {"b"}, "b": {"a"}}


@pytest.mark.parametrize(
    ("reads", "writes", "cycle"),
    [
        ({"b": {"a"}}, WRITES, []),  # the read says what a write says too: this is a g0
        ({"a": {"c"}, "c": {"a"}}, WRITES, []),  # a cycle of each class, that share a node
        ({"b": {"a"}}, {"a": {"b"}}, ["a", "b"]),
        ({"b": {"c"}, "c": {"a"}}, {**WRITES, "c": {"d"}, "d": {"a"}}, ["c", "a", "b"]),
    ],
)
def test_a_cycle_of_both_has_a_step_of_each(
    reads: dict[str, set[str]], writes: dict[str, set[str]], cycle: list[str]
) -> None:
    assert mixed_cycle(reads, writes, ["a", "b", "c", "d"]) == cycle


def test_cycles_are_told_in_the_same_order_whatever_the_order_of_a_set(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [(f"p.{number}", f"q.{number}") for number in range(10, 30)]
    monkeypatch.setattr(analysis, "_writes", lambda ledger: {one: {other} for one, other in pairs})
    monkeypatch.setattr(analysis, "_reads", lambda ledger: {other: {one} for one, other in pairs})
    monkeypatch.setattr(analysis, "_anomaly", lambda kind, ledger, cycle, component, by_reads: sorted(cycle))
    told: list[object] = list(analysis.cycles(cast(Ledger, None)))
    assert told == [[one, other] for one, other in pairs]


def test_the_example_is_of_the_class_that_is_named() -> None:
    seen = 0
    for seed in range(60):
        history = clean_history(seed)
        try:
            verdict = analyse(planted.read_against_writes(history))
        except planted.CannotPlant:
            continue
        for example in verdict.examples.get(Kind.G1C_BY_WRITES, []):
            seen += 1
            assert "was read by" in example.message
            assert "wrote before" in example.message
    assert seen > 10
