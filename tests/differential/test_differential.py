"""Random sequences of frames on Exacta and on a real Apache Kafka: the same answers, and the same logs afterwards.

Runs where EXACTA_TEST_DIFFERENTIAL says how many sequences (`make test-differential`); needs Java and Maven. Hypothesis
makes the sequences, the same ones for the same EXACTA_TEST_SEED, and shortens one that fails. What it then prints
belongs into `test_regressions.py`, which needs no Kafka.
"""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, note, seed, settings

from tests.conformance.brokers import HOST, kafka_process
from tests.differential.differences import Answered, meant
from tests.differential.side import Place, Side
from tests.differential.steps import CLIENTS, PARTITIONS, Step, sequences
from tests.kafka.wire import front

SEED = int(os.environ.get("EXACTA_TEST_SEED", "1"))
SEQUENCES = int(os.environ.get("EXACTA_TEST_DIFFERENTIAL", "0"))

pytestmark = [
    pytest.mark.skipif(not SEQUENCES, reason="set EXACTA_TEST_DIFFERENTIAL to a number of sequences"),
    pytest.mark.timeout(7200),
]


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    """Apache Kafka and Exacta."""
    with (
        kafka_process(tmp_path_factory.mktemp("kafka"), overrides=("num.partitions=2",)) as kafka,
        front(num_partitions=2) as exacta,
    ):
        both = Side((HOST, kafka.port)), Side(exacta.address)
        yield both
        for side in both:
            side.close()


@settings(
    max_examples=SEQUENCES or 1,
    deadline=None,
    database=None,
    report_multiple_bugs=False,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
@seed(SEED)
@given(sequence=sequences)
def test_kafka_and_exacta_agree(sides: tuple[Side, Side], sequence: list[Step]) -> None:
    kafka, exacta = sides
    history: list[Answered] = []
    for side in sides:
        side.begin()
    for step in sequence:
        found = Answered(step, kafka.run(step), exacta.run(step))
        note(str(found))
        difference = meant(found, history)
        if difference is None:
            same = _without_places(found.kafkas) == _without_places(found.ours)
            assert same, f"{step}: Kafka answers {found.kafkas}, Exacta {found.ours}"
        elif difference.parts:
            for side in sides:
                side.finish()
            return
        history.append(found)
    for side in sides:
        side.finish()
        side.read()
    for found in history:
        if found.codes[0] == found.codes[1]:
            theirs, ours = _places(kafka, found.kafkas), _places(exacta, found.ours)
            assert theirs == ours, f"{found.step}: records before the offset"
    for partition in PARTITIONS:
        assert kafka.records(partition) == exacta.records(partition)
        assert kafka.aborted(partition) == exacta.aborted(partition)
        for client in CLIENTS:
            assert kafka.ends(partition, client) == exacta.ends(partition, client)


def _without_places(answer: tuple[Any, ...]) -> list[Any]:
    return [part for part in answer if not isinstance(part, Place)]


def _places(side: Side, answer: tuple[Any, ...]) -> list[int]:
    return [side.records_before(part) for part in answer if isinstance(part, Place)]
