"""Nothing is found where nothing is wrong, whatever the clients did; what could find nothing does not pass."""

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exacta.verify.analysis.anomalies import Kind
from exacta.verify.analysis.verdict import analyse
from exacta.verify.history import (
    BROKER_KILLED,
    RESTART_COMMAND,
    CommitAsked,
    End,
    Fault,
    GroupOffsets,
    Isolation,
    Op,
    Outcome,
    Poll,
    ReadTo,
    Run,
    Watermarks,
    Workload,
    decode,
    encode,
)
from tests.verify.model import OF_PULSAR, clean_history, held_back_history


@given(st.integers(0, 2**32), st.integers(200, 600), st.booleans(), st.booleans())
def test_clean_histories_have_no_anomaly(seed: int, steps: int, pulsar: bool, sidecar: bool) -> None:
    verdict = analyse(clean_history(seed, steps, pulsar=pulsar, sidecar=sidecar))
    assert [example.message for kind in verdict.anomalies for example in verdict.examples[kind]] == []
    assert not sidecar or not verdict.counts, "what every Kafka is allowed does not happen there"


@given(st.integers(0, 2**32))
def test_lines_of_different_processes_come_in_any_order(seed: int) -> None:
    run, *ops = clean_history(seed, 200)
    chance = random.Random(seed)
    of: dict[str, list[Op]] = {}
    for op in ops:
        of.setdefault(getattr(op, "process", "run"), []).append(op)
    mixed = [run]
    while of:
        process = chance.choice(sorted(of))
        mixed.append(of[process].pop(0))
        if not of[process]:
            del of[process]
    assert analyse(mixed).counts == analyse([run, *ops]).counts


@given(st.integers(0, 2**32))
def test_a_history_survives_its_encoding(seed: int) -> None:
    history = clean_history(seed, 100)
    assert [decode(encode(op)) for op in history] == history


def test_write_cycles_and_partly_visible_transactions_are_information() -> None:
    found = set()
    for seed in range(30):
        verdict = analyse(clean_history(seed))
        assert not verdict.anomalies
        found |= set(verdict.information)
    assert {Kind.G0, Kind.PARTLY_VISIBLE} <= found
    seed = next(seed for seed in range(30) if Kind.G0 in analyse(clean_history(seed)).counts)
    assert analyse(clean_history(seed), strict=[Kind.G0]).anomalies == [Kind.G0]


@pytest.mark.parametrize("older_commits", [True, False])
def test_what_an_older_open_transaction_holds_back_is_no_anomaly(older_commits: bool) -> None:
    """One partition of a committed transaction over two is read, and the other only when the older transaction has
    ended."""
    verdict = analyse(held_back_history(older_commits))
    assert verdict.passed
    assert verdict.information == [Kind.PARTLY_VISIBLE]
    (example,) = verdict.examples[Kind.PARTLY_VISIBLE]
    assert example.message == (
        "append-1.1 had been read in part when append-0 was visible up to 0; its record there lies at 1"
    )


def _without(history: list[Op], *kinds: type) -> list[Op]:
    return [op for op in history if not isinstance(op, kinds)]


def test_a_clean_history_passes_and_a_vacuous_one_does_not() -> None:
    history = clean_history(1)
    assert analyse(history).passed
    run = history[0]
    assert isinstance(run, Run)
    assert not analyse([run]).passed
    for kind in (ReadTo, GroupOffsets, Watermarks, Poll):
        assert not analyse(_without(history, kind)).passed, kind
    for final in (True, False):
        unlisted = [
            msgspec.structs.replace(op, partitions=[]) if isinstance(op, Watermarks) and op.final is final else op
            for op in history
        ]
        (said,) = analyse(unlisted).unchecked
        assert said.startswith("the last stable offsets were not listed")
    early = [msgspec.structs.replace(op, next_offset=0) if isinstance(op, ReadTo) else op for op in history]
    assert "append was not read to its end (read_committed, partitions 0, 1, 2)" in analyse(early).unchecked
    failed = Fault(kind=BROKER_KILLED, target="1", start_us=0, end_us=1, outcome=Outcome.FAIL, error="gone")
    assert analyse([*history, failed]).unchecked == ["the broker was to be killed, and never was"]
    assert analyse([*history, failed, msgspec.structs.replace(failed, outcome=Outcome.OK)]).passed
    wanted = {"kill": "pid", "restart command": "restart", "restart every": "20"}
    never = [msgspec.structs.replace(run, options=wanted), *history[1:]]
    assert analyse(never).unchecked == [
        "the broker was to be killed, and never was",
        "the broker was to be restarted, and never was",
    ]
    done = [msgspec.structs.replace(failed, kind=kind, outcome=Outcome.OK) for kind in (BROKER_KILLED, RESTART_COMMAND)]
    assert analyse([*never, *done]).passed
    off = msgspec.structs.replace(run, options={**wanted, "restart every": "0"})
    assert analyse([off, *history[1:]]).passed
    no_aborts = [
        msgspec.structs.replace(op, outcome=Outcome.FAIL) if isinstance(op, End) and not op.committing else op
        for op in clean_history(1, 2000)
    ]
    assert analyse(no_aborts).unchecked == ["no abort was acknowledged, though some were asked for"]
    unacknowledged = [
        msgspec.structs.replace(op, outcome=Outcome.UNKNOWN) if isinstance(op, End) and op.committing else op
        for op in history
    ]
    assert analyse(unacknowledged).unchecked == [
        f"no transaction of workload {workload} was committed" for workload in Workload
    ]
    assert not analyse(_without(history, CommitAsked, End, Poll)).passed
    refused = [
        msgspec.structs.replace(op, outcome=Outcome.UNKNOWN, error="REFUSED") if isinstance(op, End) else op
        for op in history
    ]
    assert "no transaction of workload etl was committed; most often: REFUSED" in analyse(refused).unchecked


def test_a_run_in_which_pulsars_clients_did_nothing_does_not_pass() -> None:
    history = clean_history(1, 1000, pulsar=True)
    assert analyse(history).passed
    unread = [op for op in history if getattr(op, "isolation", None) is not Isolation.PULSAR]
    assert "no pulsar reader got anything while the clients ran" in analyse(unread).unchecked
    assert "append was not read to its end (pulsar, partitions 0, 1, 2)" in analyse(unread).unchecked
    for name in OF_PULSAR:
        unsent = [op for op in history if getattr(op, "process", "") != name]
        assert f"nothing of the clients {name.removesuffix('-0')} was committed" in analyse(unsent).unchecked
