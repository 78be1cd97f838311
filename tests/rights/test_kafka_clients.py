"""Other people's Kafka clients work with exactly the rights that the page names, and are refused with one less."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rights.kafka_clients import TASKS
from tests.rights.page import Row, rows
from tests.rights.place import Place, furnished

ROWS = [(row, client) for row in rows("Kafka clients") for client in row.clients]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with furnished(tmp_path) as place:
        yield place


def in_letters(error: object) -> str:
    """Return what an error says without what clients write differently: `Topic authorization failed`, and so on."""
    return re.sub("[^a-z]", "", f"{error!r} {error}".lower())


def test_the_page_has_what_is_tested() -> None:
    assert {(row.task, client) for row, client in ROWS} == TASKS.keys()


@pytest.mark.parametrize(("row", "client"), ROWS, ids=lambda each: each if isinstance(each, str) else each.task)
def test_a_client_needs_what_the_page_says(place: Place, row: Row, client: str) -> None:
    task = TASKS[row.task, client]
    for missing in row.needs:
        place.allow({*row.needs} - {missing})
        with pytest.raises(Exception) as refused:
            task(place)
        kinds = {missing.resource.lower()} | ({"cluster"} if row.task == "idempotent producer" else set())
        assert any(f"{kind}authorizationfailed" in in_letters(refused.value) for kind in kinds), (missing, refused)
    place.allow(row.needs)
    task(place)
