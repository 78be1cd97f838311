"""Exacta is held to what a real Apache Pulsar made of programs, which `record.py` has written down."""

from __future__ import annotations

import pytest

from tests.pulsar.differential.agree import disagreement, ours
from tests.pulsar.differential.differences import DIFFERENCES, meant
from tests.pulsar.differential.found import FOUND
from tests.pulsar.differential.moments import Moment
from tests.pulsar.differential.record import read

RECORDED = read()


@pytest.mark.parametrize("name", RECORDED)
def test_a_program_comes_out_as_on_apache_pulsar(name: str) -> None:
    program, theirs = RECORDED[name]
    found = disagreement(program, theirs, ours(program))
    assert found is None, str(found)


def test_the_programs_that_were_found_are_recorded_as_they_are() -> None:
    assert {name: program for name, (program, _) in RECORDED.items() if name in FOUND} == FOUND


def test_each_difference_that_is_meant_is_shown() -> None:
    shown = set()
    for name in FOUND:
        program, theirs = RECORDED[name]
        for place, (step, their, our) in enumerate(zip(program, theirs, ours(program), strict=False)):
            if their != our and (difference := meant(Moment(step, their, our, program[:place]))) is not None:
                shown.add(difference.why)
                if difference.parts:
                    break
    assert [each.why for each in DIFFERENCES if each.why not in shown] == []
