"""Take a sequence of steps on both brokers, and compare: every answer, then logs, aborted lists and offsets."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, note, seed, settings
from hypothesis.strategies import SearchStrategy

from tests.differential.answered import Answered
from tests.differential.calls import Answer, Place
from tests.differential.differences import meant
from tests.differential.side import Side
from tests.differential.steps import CLIENTS, PARTITIONS, Step

SEED = int(os.environ.get("EXACTA_TEST_SEED", "1"))
SEQUENCES = int(os.environ.get("EXACTA_TEST_DIFFERENTIAL", "0"))

marks = [
    pytest.mark.skipif(not SEQUENCES, reason="set EXACTA_TEST_DIFFERENTIAL to a number of sequences"),
    pytest.mark.timeout(7200),
]


def on_both(
    sequences: SearchStrategy[Sequence[object]], share: float
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test with this share of all sequences."""

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        return settings(
            max_examples=max(1, round(SEQUENCES * share)),
            database=None,
            report_multiple_bugs=False,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        )(seed(SEED)(given(sequence=sequences)(test)))

    return decorate


def agree(sides: tuple[Side, Side], sequence: Sequence[Step], *, near_the_last_epoch: bool = False) -> None:
    """Take the steps on Exacta and on Kafka; raises AssertionError where they part."""
    kafka, exacta = sides
    history: list[Answered] = []
    for side in sides:
        side.begin(near_the_last_epoch=near_the_last_epoch)
    for step in sequence:
        exacta.run(step)
        kafka.run(step, like=exacta)
        for (part, ours), (_, kafkas) in zip(exacta.parts, kafka.parts, strict=True):
            found = Answered(part, kafkas, ours)
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
            theirs = _places(kafka, found.kafkas)
            assert theirs == _places(exacta, found.ours), f"{found.step}: records before the offset"
    for partition in PARTITIONS:
        assert kafka.records(partition) == exacta.records(partition)
        assert kafka.aborted(partition) == exacta.aborted(partition)
        for client in CLIENTS:
            assert kafka.ends(partition, client) == exacta.ends(partition, client)


def _without_places(answer: Any) -> Any:
    if isinstance(answer, Place):
        return "place"
    return tuple(map(_without_places, answer)) if isinstance(answer, tuple) else answer


def _places(side: Side, answer: Answer) -> list[int]:
    found: list[int] = []
    for part in answer:
        if isinstance(part, Place):
            found.append(side.records_before(part))
        elif isinstance(part, tuple):
            found.extend(_places(side, part))
    return found
