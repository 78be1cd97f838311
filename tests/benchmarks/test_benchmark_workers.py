"""Client processes of the benchmark: in step, and ended whatever happens."""

import os
import time

import pytest
from benchmarks.processes import Usage
from benchmarks.session import Phase, phase_figures
from benchmarks.workers import Outcome, Tally, WorkerFailedError, WorkerGroup

TIMEOUT_S = 60.0


def count(gate, *, operations):
    with gate.measured():
        ended_s = time.process_time() + 0.05
        while time.process_time() < ended_s:
            pass
    return Tally(operations=operations, seconds=1.0)


def fail_warming_up(gate):
    raise ValueError("not today")


def die(gate):
    os._exit(3)


def leave_out_the_gate(gate):
    return Tally(operations=1, seconds=1.0)


def never_ready(gate):
    time.sleep(600)


def test_a_group_goes_through_its_steps_and_reports_in_order():
    with WorkerGroup(count, [{"operations": 1}, {"operations": 2}]) as group:
        group.wait_until_ready(TIMEOUT_S)
        group.go()
        group.wait_until_measured(TIMEOUT_S)
        outcomes = group.outcomes(TIMEOUT_S)
    assert [outcome.tally.operations for outcome in outcomes] == [1, 2]
    assert all(0.05 <= outcome.cpu_s < 5 for outcome in outcomes)


@pytest.mark.parametrize(
    ("load", "reason"),
    [
        (fail_warming_up, "ValueError: not today"),
        (die, "a client process died"),
        (leave_out_the_gate, "left out a step"),
    ],
)
def test_a_worker_that_goes_wrong_ends_the_group(load, reason):
    with WorkerGroup(load, [{}]) as group, pytest.raises(WorkerFailedError, match=reason):
        group.wait_until_ready(TIMEOUT_S)


def test_a_worker_that_takes_too_long_is_ended():
    started_s = time.monotonic()
    with WorkerGroup(never_ready, [{}]) as group, pytest.raises(WorkerFailedError, match="until it was ready"):
        group.wait_until_ready(0.05)
    assert time.monotonic() - started_s < 60


def outcome(operations, seconds, latencies_ms=(), payload_bytes=0, busiest_thread=0.1):
    tally = Tally(operations=operations, seconds=seconds, latencies_ms=list(latencies_ms), payload_bytes=payload_bytes)
    return Outcome(tally=tally, cpu_s=0.5, busiest_thread=busiest_thread)


def test_phase_figures_add_the_workers_and_take_the_slowest_time():
    before = Usage(cpu_s=10.0, resident_bytes=50_000_000)
    after = Usage(cpu_s=12.0, resident_bytes=60_000_000)
    outcomes = [outcome(30, 2.0, [1.0, 2.0], 2_000_000), outcome(70, 4.0, [3.0], 2_000_000, busiest_thread=0.7)]
    phase = Phase(outcomes=outcomes, broker_before=before, broker_after=after, machine_cpu_s=5.0, elapsed_s=4.0)
    figures = {figure.name: figure.value for figure in phase_figures("case", "txn/s", phase)}
    assert figures == {
        "txn/s": 25.0,
        "MB/s": 1.0,
        "p50 ms": 2.0,
        "p99 ms": 3.0,
        "p99.9 ms": 3.0,
        "broker CPU s": 2.0,
        "broker CPU µs per operation": 20_000.0,
        "client CPU s": 1.0,
        "busiest client thread, cores": 0.7,
        "others, cores": 0.5,
        "RSS before MB": 50.0,
        "RSS after MB": 60.0,
    }


def test_phase_figures_leave_out_what_is_not_known():
    outcomes = [outcome(10, 1.0)]
    phase = Phase(outcomes=outcomes, broker_before=None, broker_after=None, machine_cpu_s=1.0, elapsed_s=1.0)
    figures = phase_figures("case", "msg/s", phase)
    assert {figure.name for figure in figures} == {"msg/s", "client CPU s", "busiest client thread, cores"}
