"""Other people's Kafka clients work with exactly the rights that the page names, and are refused with one less."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rights.kafka_clients import TASKS, is_refusal
from tests.rights.page import Row, rows
from tests.rights.place import Place, furnished, refusal

ROWS = [(row, client) for row in rows("Kafka clients") for client in row.clients]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with furnished(tmp_path) as place:
        yield place


def test_the_page_has_what_is_tested() -> None:
    assert {(row.task, client) for row, client in ROWS} == TASKS.keys()


@pytest.mark.parametrize(("row", "client"), ROWS, ids=lambda each: each if isinstance(each, str) else each.task)
def test_a_client_needs_what_the_page_says(place: Place, row: Row, client: str) -> None:
    task = TASKS[row.task, client]
    for missing in row.needs:
        place.allow({*row.needs} - {missing})
        refused = refusal(task, place)
        # Who may write into no topic at all gets no producer id: that is told as a right on the cluster.
        more = ("cluster",) if row.task == "idempotent producer" else ()
        assert is_refusal(missing, refused, *more), (missing, refused)
    place.allow(row.needs)
    task(place)
