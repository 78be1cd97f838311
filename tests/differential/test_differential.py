"""Random sequences of frames on Exacta and on a real Apache Kafka: the same answers, and the same logs afterwards.

Runs where EXACTA_TEST_DIFFERENTIAL says how many sequences (`make test-with WHAT=differential`); needs Java and
Maven. Hypothesis makes the sequences, the same ones for the same EXACTA_TEST_SEED, and shortens one that fails. What it
then prints belongs into `test_regressions.py`, which needs no Kafka.
"""

from tests.differential import flights, members, odd, reads, steps
from tests.differential.agree import agree, marks, on_both
from tests.differential.side import Side
from tests.differential.steps import Step

pytestmark = marks


@on_both(steps.sequences, share=0.3)
def test_transactions(sides: tuple[Side, Side], sequence: list[Step]) -> None:
    agree(sides, sequence)


@on_both(members.sequences, share=0.3)
def test_members(sides: tuple[Side, Side], sequence: list[Step]) -> None:
    agree(sides, sequence)


@on_both(reads.sequences, share=0.2)
def test_reads(sides: tuple[Side, Side], sequence: list[Step]) -> None:
    agree(sides, sequence)


@on_both(flights.sequences, share=0.2)
def test_flights(sides: tuple[Side, Side], sequence: list[Step]) -> None:
    agree(sides, sequence)


@on_both(steps.sequences, share=0.1)
def test_epochs_that_are_used_up(sides: tuple[Side, Side], sequence: list[Step]) -> None:
    agree(sides, sequence, near_the_last_epoch=True)


@on_both(odd.sequences, share=0.1)
def test_odd_frames(sides: tuple[Side, Side], sequence: list[Step]) -> None:
    agree(sides, sequence)
