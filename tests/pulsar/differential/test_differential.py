"""Random programs on Exacta and on a real Apache Pulsar: the same answers, and the same deliveries.

Runs where EXACTA_TEST_PULSAR names a Pulsar (`make test-with WHAT=pulsar-differential`) whose brokers have
acknowledgmentAtBatchIndexLevelEnabled=true; EXACTA_TEST_PULSAR_WEB is its HTTP endpoint. EXACTA_TEST_SEED is the seed
of the first program. What this finds belongs into `found.py`, from where `record.py` takes it into `recorded.json`.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.pulsar.differential.agree import PULSAR_URL, Disagreement, disagreement, ours, real, shortened
from tests.pulsar.differential.links import QUIET_S
from tests.pulsar.differential.programs import Program, program
from tests.pulsar.differential.record import AT_ONCE, settled

PROGRAMS = int(os.environ.get("EXACTA_TEST_PROGRAMS", "200"))
SEED = int(os.environ.get("EXACTA_TEST_SEED", "1000"))

pytestmark = [
    pytest.mark.skipif(not PULSAR_URL, reason="set EXACTA_TEST_PULSAR to the address of an Apache Pulsar"),
    pytest.mark.timeout(7200),
]


def differs(steps: Program) -> Disagreement | None:
    """Return how the two part, if the real one has come out the same twice: a slow machine parts them by chance."""
    theirs = settled(steps)
    return None if theirs is None else disagreement(steps, theirs, ours(steps))


def found(seed: int) -> str:
    """Return how the two part, if patient runs show it, too, the last of them after the program was shortened."""
    steps = program(seed)
    if disagreement(steps, real(steps, QUIET_S), ours(steps)) is None or (confirmed := differs(steps)) is None:
        return ""
    shortest = shortened(confirmed, differs)
    return f"program {seed}: {shortest}" if differs(shortest.program) is not None else ""


def test_programs() -> None:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        reports = list(filter(None, pool.map(found, range(SEED, SEED + PROGRAMS))))
    assert not reports, "\n\n".join(reports)
