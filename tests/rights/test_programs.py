"""Exacta's own clients work with exactly the rights that the page names; with one less they say which is missing."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rights.kafka_clients import is_refusal
from tests.rights.page import Row, is_named, rows
from tests.rights.place import Place, Right, furnished, refusal, skip_on_kafka
from tests.rights.programs import TASKS, topics_of_a_pattern

ROWS = [(row, client) for section in ("Python programs", "Spark") for row in rows(section) for client in row.clients]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with furnished(tmp_path) as place:
        yield place


def test_the_page_has_what_is_tested() -> None:
    assert {(row.task, client) for row, client in ROWS} == TASKS.keys()


def test_a_pattern_matches_what_the_user_may_describe(place: Place) -> None:
    place.allow([Right("Read", "Topic", "copy")])
    assert topics_of_a_pattern(place) == {"copy"}


@pytest.mark.parametrize(("row", "client"), ROWS, ids=lambda each: each if isinstance(each, str) else each.task)
def test_a_program_needs_what_the_page_says(place: Place, row: Row, client: str) -> None:
    skip_on_kafka(row.task)
    task = TASKS[row.task, client]
    for missing in row.needs:
        place.allow({*row.needs} - {missing})
        refused = refusal(task, place)
        if client in ("", "exacta"):
            assert is_named(missing, str(refused)), (missing, refused)
        else:
            assert is_refusal(missing, refused), (missing, refused)
    place.allow(row.needs)
    task(place)
